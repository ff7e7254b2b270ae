"""`assent reasons`: saved texts for rejections and for requests for a revision."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from assent.errors import NotFound
from assent.review.collaboration.reasons import Use
from assent.surfaces.cli import output
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.remote import Place, Remote, View, call, keeper, placed

PATH = "/api/reasons"
_COLUMNS = ["name", "use", "text"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(placed(list_reasons))
    app.command()(placed(add))
    app.command()(placed(remove))
    return app


def list_reasons(place: Place) -> None:
    """List the saved reasons of the tenant."""
    saved = call(place, _all, who=keeper)
    if place.as_json:
        return output.emit(saved)
    output.table(saved, _COLUMNS, empty="No reasons yet. Add one: assent reasons add NAME TEXT")


def add(
    place: Place,
    label: Annotated[str, typer.Argument(help="Its name, as reviewers choose it.", metavar="NAME")],
    text: Annotated[str, typer.Argument(help="The text for the agent.")],
    use: Annotated[Use, typer.Option(help="Where it is offered.")] = Use.BOTH,
) -> None:
    """Save a reason, or change the one with this name."""

    async def save(server: Remote) -> View:
        body = {"name": label, "text": text, "use": use}
        known = next((reason for reason in await _all(server) if reason["name"] == label), None)
        if known is None:
            made: View = await server.send("POST", PATH, body)
            return made
        changed: View = await server.send("PUT", _path(known), body)
        return changed

    _report(place, "saved", call(place, save, who=keeper))


def remove(
    place: Place,
    label: Annotated[str, typer.Argument(help="The name that `assent reasons list` shows.", metavar="NAME")],
) -> None:
    """Remove a reason; decisions that used it stay."""

    async def drop(server: Remote) -> View:
        removed: View = await server.send("DELETE", _path(await named(server, label)), repeatable=False)
        return removed

    _report(place, "removed", call(place, drop, who=keeper))


async def named(server: Remote, name: str) -> View:
    """The reason with this name."""
    reason = next((reason for reason in await _all(server) if reason["name"] == name), None)
    if reason is None:
        raise NotFound(f"there is no reason {name!r}", hint="assent reasons list")
    return reason


async def _all(server: Remote) -> list[View]:
    saved: list[View] = await server.get(PATH)
    return saved


def _path(reason: View) -> str:
    return f"{PATH}/{quote(reason['id'], safe='')}"


def _report(place: Place, done: str, reason: View) -> None:
    if place.as_json:
        return output.emit(reason)
    output.say(f"{done}: {escaped(reason['name'])}")
