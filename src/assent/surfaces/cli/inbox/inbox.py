"""`assent inbox`: items and everything about them, except the decisions, which are in `decide.py`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from assent.client.inbox import item_path
from assent.errors import Invalid
from assent.kernel import canonical
from assent.settings import parse_duration
from assent.surfaces.cli import item_views, output
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.inbox import decide, edits
from assent.surfaces.cli.inbox.decide import ItemId, ItemIds
from assent.surfaces.cli.inbox.triage import triage
from assent.surfaces.cli.inbox.watch import watch
from assent.surfaces.cli.remote import Place, Remote, View, call, placed, reader

_PENDING = "is:pending"
_MOST_COUNTED = 10_000
_SORTS = {"newest": "-created_at", "oldest": "created_at"}


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(placed(list_items))
    app.command()(placed(get))
    decide.add_to(app)
    for command in (resubmit, cancel, settle, reveal, comment, recommend, assign, claim, snooze):
        app.command()(placed(command))
    app.command()(placed(watch, database=False))
    app.command()(placed(triage, database=False))
    app.command()(types)
    return app


def types(typescript: Annotated[bool, typer.Option("--typescript", help="For TypeScript.")] = False) -> None:
    """Print the Agent Inbox types for other languages, as JSON Schema."""
    from assent.review.dialects import published

    if typescript:
        return output.say(published.typescript())
    output.emit(published.json_schema())


def list_items(
    place: Place,
    filter: Annotated[str | None, typer.Option(help='Such as "is:pending type:tool older:2h refund".')] = None,
    all: Annotated[bool, typer.Option("--all", help="Include decided items.")] = False,
    sort: Annotated[Literal["newest", "oldest", "deadline", "risk"], typer.Option(help="The order.")] = "newest",
    group: Annotated[
        Literal["agent", "thread", "type"] | None, typer.Option(help="Items with the same one follow each other.")
    ] = None,
    limit: Annotated[int, typer.Option(help="The maximum number.", min=1)] = 50,
) -> None:
    """List pending items, newest first."""
    wanted = filter if filter is not None else "" if all else _PENDING
    order = {"sort": _SORTS.get(sort, sort)} | ({"group": group} if group else {})

    async def use(server: Remote) -> tuple[list[View], View, bool]:
        items: list[View] = []
        counts: View = {}
        more = False
        async for page in server.pages("/api/inbox/items", most=limit, filter=wanted, arguments=True, **order):
            items, counts, more = [*items, *page["items"]], page["counts"], page["next"] is not None
        return items, counts, more

    items, counts, more = call(place, use, who=reader)
    if place.as_json:
        return output.emit({"items": items, "counts": counts, "more": more})
    if items:
        item_views.table(items)
    totals = ", ".join(f"{_count(counts[name])} {name}" for name in ("pending", "resolved"))
    shown = f"{len(items)} shown, more with --limit; " if more else "" if items else "No items. "
    output.say(f"{shown}{totals}")


def get(
    place: Place,
    item_id: ItemId,
    timeline: Annotated[bool, typer.Option("--timeline", help="Include all its events.")] = False,
) -> None:
    """Show an item: its calls, the agent's description, your options."""

    async def use(server: Remote) -> tuple[View, list[View], list[View]]:
        item = await server.item(item_id)
        comments = await server.get(item_path(item["id"], "comments")) if item["comments"] else []
        happened = await server.get(item_path(item["id"], "timeline")) if timeline else []
        return item, comments, happened

    item, comments, happened = call(place, use, who=reader)
    if place.as_json:
        return output.emit(item | ({"timeline": happened} if timeline else {}))
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
    """Submit a revision that was requested; fields that are left out stay unchanged."""
    changes: dict[str, Any] = edits.parsed(edits.read(file), str(file)) if file else {}
    if not isinstance(changes, dict):
        raise Invalid(f"{file} must contain a JSON object")
    named = {"title": title, "description": description}
    changes |= {name: value for name, value in named.items() if value is not None}
    changes |= {} if payload is None else {"payload": edits.parsed(payload, "--payload")}
    if not changes:
        raise Invalid("nothing would be changed", hint="use --title, --description, --payload or --file")
    _report(place, item_id, "POST", "resubmission", changes)


def cancel(
    place: Place,
    item_ids: ItemIds,
    notes: Annotated[str | None, typer.Option(help="The reason; the agent receives it.")] = None,
) -> None:
    """Close items without a decision; the agent receives a rejection in its own format."""
    decide.each(item_ids, lambda item_id: _report(place, item_id, "POST", "cancellation", {"notes": notes}))


def settle(
    place: Place,
    item_id: ItemId,
    outcome: Annotated[Literal["done", "run_again", "abandon"], typer.Argument(help="The outcome of the call.")],
    notes: Annotated[str | None, typer.Option(help="The evidence.")] = None,
    grant: Annotated[
        str | None, typer.Option(help="The call's grant, if several calls are in doubt or it ran again.", metavar="ID")
    ] = None,
) -> None:
    """Record the outcome of a call that was interrupted while it ran."""
    _report(place, item_id, "POST", "in-doubt", {"outcome": outcome, "notes": notes, "grant_id": grant})


def reveal(place: Place, item_id: ItemId) -> None:
    """Show the arguments with their secrets; the timeline records the access."""
    revealed: Any = _changed(place, item_id, "POST", "reveal")
    if place.as_json:
        return output.emit(revealed)
    for action in revealed:
        output.say(escaped(f"{action['name']} {canonical.text(action['args'])}"))


def comment(place: Place, item_id: ItemId, text: Annotated[str, typer.Argument(help="The comment.")]) -> None:
    """Comment on an item, for other people and for the agent; @NAME mentions a person."""

    async def use(server: Remote) -> View:
        return dict(await server.inbox.comment((await server.item(item_id))["id"], text))

    done = call(place, use)
    if place.as_json:
        return output.emit(done)
    output.say(f"commented: {done['id']}")


def recommend(
    place: Place,
    item_id: ItemId,
    verb: Annotated[
        Literal["approve", "edit", "reject", "respond", "ignore"], typer.Argument(help="The recommended decision.")
    ],
    reason: Annotated[str, typer.Option(help="The reason, for the people who decide.")],
    revision: decide.Revision = None,
    hash: decide.Hash = None,
) -> None:
    """Recommend a decision to the people who decide; agents may, and it decides nothing."""
    seen = decide.Seen(revision, hash)

    async def use(server: Remote) -> View:
        item: Any = await server.item(item_id)
        seen.check(item)
        return dict(await server.inbox.recommend(item, verb, reason))

    done = call(place, use)
    if place.as_json:
        return output.emit(done)
    output.say(f"recommended: {done['id']}")


def assign(
    place: Place,
    item_id: ItemId,
    person: Annotated[str | None, typer.Argument(help="A name, or me.", metavar="[PERSON]")] = None,
    nobody: Annotated[bool, typer.Option("--nobody", help="Remove the owner.")] = False,
) -> None:
    """Make a person the owner of an item; others can still decide it."""
    if (person is None) is not nobody:
        raise Invalid("name a person, or --nobody")
    body = None if nobody else {"owner": person}
    _report(place, item_id, "DELETE" if nobody else "PUT", "owner", body, outcome="no owner" if nobody else "assigned")


def claim(
    place: Place,
    item_id: ItemId,
    release: Annotated[bool, typer.Option("--release", help="Release the claim.")] = False,
) -> None:
    """Show others that you are reviewing an item, for five minutes; others can still decide it."""
    _report(place, item_id, "DELETE" if release else "PUT", "claim", outcome="released" if release else "claimed")


def snooze(
    place: Place,
    item_id: ItemId,
    length: Annotated[str | None, typer.Argument(help="The duration, such as 2h or 1d.", metavar="[LENGTH]")] = None,
    wake: Annotated[bool, typer.Option("--wake", help="Show it again now.")] = False,
) -> None:
    """Hide an item from your own list for a while."""
    if (length is None) is not wake:
        raise Invalid("set a duration such as 2h, or --wake")
    until = None if length is None else (datetime.now(UTC) + parse_duration(length)).isoformat()
    outcome = "back in your list" if until is None else f"out of your list until {until[:19]}"
    _report(place, item_id, "PUT", "snooze", {"until": until}, outcome=outcome)


def _changed(place: Place, item_id: str, method: str, below: str, body: Any = None) -> View:
    async def use(server: Remote) -> View:
        item = await server.item(item_id)
        done: View = await server.send(method, item_path(item["id"], below), body)
        return done

    return call(place, use)


def _report(
    place: Place, item_id: str, method: str, below: str, body: Any = None, *, outcome: str | None = None
) -> None:
    item = _changed(place, item_id, method, below, body)
    if place.as_json:
        return output.emit(item)
    output.say(f"{outcome or item_views.state(item)}: item {item['id']}, revision {item['revision']}")


def _count(number: int) -> str:
    return f"{number} or more" if number >= _MOST_COUNTED else str(number)
