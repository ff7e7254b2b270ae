"""`assent inbox`: what waits for people, and everything around deciding it; `deciding.py` has the deciding itself."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from assent.cli import deciding, edits, item_views, output
from assent.cli.deciding import ItemId
from assent.cli.escapes import emit, escaped
from assent.cli.remote import Place, Remote, View, call, item_path, placed, reader
from assent.domain import canonical
from assent.errors import Invalid
from assent.settings import parse_duration

_PENDING = "is:pending"
_MOST_COUNTED = 10_000


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(placed(list_items))
    app.command()(placed(get))
    deciding.add_to(app)
    for command in (resubmit, cancel, settle, reveal, comment, claim, snooze):
        app.command()(placed(command))
    app.command()(types)
    return app


def types(typescript: Annotated[bool, typer.Option("--typescript", help="For TypeScript.")] = False) -> None:
    """Print the Agent Inbox types for other languages, as JSON Schema."""
    from assent.dialects import published

    if typescript:
        return output.say(published.typescript())
    output.emit(published.json_schema())


def list_items(
    place: Place,
    filter: Annotated[str | None, typer.Option(help='Such as "is:pending type:tool older:2h refund".')] = None,
    all: Annotated[bool, typer.Option("--all", help="Also what is decided already.")] = False,
    limit: Annotated[int, typer.Option(help="How many at most.", min=1)] = 50,
) -> None:
    """List what waits for a decision, newest first."""
    wanted = filter if filter is not None else "" if all else _PENDING

    async def use(server: Remote) -> tuple[list[View], View, bool]:
        items: list[View] = []
        counts: View = {}
        more = False
        async for page in server.pages("/api/inbox/items", most=limit, filter=wanted):
            items, counts, more = [*items, *page["items"]], page["counts"], page["next"] is not None
        return items, counts, more

    items, counts, more = call(place, use, who=reader)
    if place.as_json:
        return emit({"items": items, "counts": counts, "more": more})
    if items:
        item_views.table(items)
    told = ", ".join(f"{_count(counts[name])} {name}" for name in ("pending", "resolved"))
    shown = f"{len(items)} shown, more with --limit; " if more else "" if items else "Nothing here. "
    output.say(f"{shown}{told}")


def get(
    place: Place,
    item_id: ItemId,
    timeline: Annotated[bool, typer.Option("--timeline", help="Also everything that happened to it.")] = False,
) -> None:
    """Show an item: what will run, what the agent says about it, what you may do."""

    async def use(server: Remote) -> tuple[View, list[View], list[View]]:
        item = await server.item(item_id)
        comments = await server.get(item_path(item["id"], "comments")) if item["comments"] else []
        happened = await server.get(item_path(item["id"], "timeline")) if timeline else []
        return item, comments, happened

    item, comments, happened = call(place, use, who=reader)
    if place.as_json:
        return emit(item | ({"timeline": happened} if timeline else {}))
    lines = item_views.shown(item, comments)
    if timeline:
        lines += ["", "timeline:", *(f"  {item_views.event(entry)}" for entry in happened)]
    output.say("\n".join(lines))


def resubmit(
    place: Place,
    item_id: ItemId,
    title: Annotated[str | None, typer.Option(help="The new title.")] = None,
    description: Annotated[str | None, typer.Option(help="The new description.")] = None,
    payload: Annotated[str | None, typer.Option(help="The new payload, as JSON.", metavar="JSON")] = None,
    file: Annotated[
        Path | None, typer.Option(help="JSON with title, description, payload, actions.", metavar="FILE")
    ] = None,
) -> None:
    """Ask again after a revision was requested; what is not named stays as it was."""
    given: dict[str, Any] = edits.parsed(edits.read(file), str(file)) if file else {}
    if not isinstance(given, dict):
        raise Invalid(f"{file} has to hold an object")
    named = {"title": title, "description": description}
    given |= {name: value for name, value in named.items() if value is not None}
    given |= {} if payload is None else {"payload": edits.parsed(payload, "--payload")}
    if not given:
        raise Invalid("say what is different", hint="--title, --description, --payload or --file")
    _report(place, item_id, "POST", "resubmission", given)


def cancel(
    place: Place,
    item_id: ItemId,
    notes: Annotated[str | None, typer.Option(help="Why; the agent hears it.")] = None,
) -> None:
    """Close an item without a decision; the agent hears its own word for no."""
    _report(place, item_id, "POST", "cancellation", {"notes": notes})


def settle(
    place: Place,
    item_id: ItemId,
    outcome: Annotated[Literal["done", "run_again", "abandon"], typer.Argument(help="What became of the call.")],
    notes: Annotated[str | None, typer.Option(help="How you know.")] = None,
) -> None:
    """Say what became of a call that was cut off while it ran."""
    _report(place, item_id, "POST", "in-doubt", {"outcome": outcome, "notes": notes})


def reveal(place: Place, item_id: ItemId) -> None:
    """Show the arguments with their secrets; the timeline keeps that you looked."""
    revealed: Any = _changed(place, item_id, "POST", "reveal")
    if place.as_json:
        return emit(revealed)
    for action in revealed:
        output.say(escaped(f"{action['name']} {canonical.text(action['args'])}"))


def comment(place: Place, item_id: ItemId, text: Annotated[str, typer.Argument(help="What you say.")]) -> None:
    """Say something about an item, to other people and to the agent that resubmits it."""
    done = _changed(place, item_id, "POST", "comments", {"text": text})
    if place.as_json:
        return emit(done)
    output.say(f"commented: {done['id']}")


def claim(
    place: Place,
    item_id: ItemId,
    release: Annotated[bool, typer.Option("--release", help="Leave it to others again.")] = False,
) -> None:
    """Tell others that you are at it, for five minutes; it keeps nobody from deciding."""
    _report(place, item_id, "DELETE" if release else "PUT", "claim", said="released" if release else "claimed")


def snooze(
    place: Place,
    item_id: ItemId,
    length: Annotated[str | None, typer.Argument(help="For how long, such as 2h or 1d.", metavar="[LENGTH]")] = None,
    wake: Annotated[bool, typer.Option("--wake", help="Show it again now.")] = False,
) -> None:
    """Leave an item out of your own list for a while."""
    if (length is None) is not wake:
        raise Invalid("say for how long, such as 2h; or --wake")
    until = None if length is None else (datetime.now(UTC) + parse_duration(length)).isoformat()
    said = "back in your list" if until is None else f"out of your list until {until[:19]}"
    _report(place, item_id, "PUT", "snooze", {"until": until}, said=said)


def _changed(place: Place, item_id: str, method: str, below: str, body: Any = None) -> View:
    async def use(server: Remote) -> View:
        item = await server.item(item_id)
        done: View = await server.send(method, item_path(item["id"], below), body)
        return done

    return call(place, use)


def _report(place: Place, item_id: str, method: str, below: str, body: Any = None, *, said: str | None = None) -> None:
    item = _changed(place, item_id, method, below, body)
    if place.as_json:
        return emit(item)
    output.say(f"{said or item_views.state(item)}: item {item['id']}, revision {item['revision']}")


def _count(number: int) -> str:
    return f"{number} or more" if number >= _MOST_COUNTED else str(number)
