"""`assent inboxes`: your saved views of the inbox, as the web shows them in its sidebar."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from assent.cli import output
from assent.cli.escapes import emit, escaped
from assent.cli.remote import Place, Remote, View, call, known, placed

_COLUMNS = ["id", "name", "filter", "url", "waiting"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(placed(list_inboxes))
    app.command()(placed(add))
    app.command()(placed(remove))
    return app


def list_inboxes(place: Place) -> None:
    """List your inboxes, and how much waits in each."""

    async def use(server: Remote) -> list[View]:
        found: list[View] = await server.get("/api/inboxes")
        return found

    found = call(place, use, who=known)
    if place.as_json:
        return emit(found)
    rows = [
        {name: escaped(str(one[name] or "")) for name in ("id", "name", "filter", "url")} | {"waiting": one["count"]}
        for one in found
    ]
    output.table(rows, _COLUMNS, empty="No inboxes yet. Add one: assent inboxes add GRAPH")


def add(
    place: Place,
    graph: Annotated[
        str | None, typer.Argument(help="A graph's name or an assistant's id.", metavar="[GRAPH]", show_default=False)
    ] = None,
    filter: Annotated[str | None, typer.Option(help='A search instead, such as "is:pending risk:high".')] = None,
    label: Annotated[str | None, typer.Option("--name", help="What it is called; the graph where left out.")] = None,
    deployment: Annotated[str | None, typer.Option(help="The server that runs the graph.", metavar="URL")] = None,
) -> None:
    """Add an inbox: the items of a graph, or those that a search finds."""
    body = {"graph_id": graph, "filter": filter, "name": label, "url": deployment}

    async def use(server: Remote) -> View:
        made: View = await server.send("POST", "/api/inboxes", body)
        return made

    made = call(place, use)
    if place.as_json:
        return emit(made)
    output.say(f"added: {escaped(made['name'])} ({escaped(made['filter'])}), id {made['id']}")


def remove(
    place: Place,
    inbox_id: Annotated[str, typer.Argument(help="The id that `assent inboxes list` shows.", metavar="ID")],
) -> None:
    """Remove an inbox; its items stay."""

    async def use(server: Remote) -> View:
        gone: View = await server.send("DELETE", f"/api/inboxes/{quote(inbox_id, safe='')}", repeatable=False)
        return gone

    gone = call(place, use, who=known)
    if place.as_json:
        return emit(gone)
    output.say(f"removed: {escaped(gone['name'])}")
