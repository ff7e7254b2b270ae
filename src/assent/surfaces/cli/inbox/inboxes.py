"""`assent inboxes`: your saved views of the inbox, as the web shows them in its sidebar."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from assent.surfaces.cli import output
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.remote import Place, Remote, View, call, existing_person, placed

_COLUMNS = ["id", "name", "filter", "url", "waiting"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(placed(list_inboxes))
    app.command()(placed(add))
    app.command()(placed(remove))
    return app


def list_inboxes(place: Place) -> None:
    """List your inboxes with the number of pending items."""

    async def use(server: Remote) -> list[View]:
        views: list[View] = await server.get("/api/inboxes")
        return views

    inboxes = call(place, use, who=existing_person)
    if place.as_json:
        return output.emit(inboxes)
    rows = [{**inbox, "waiting": inbox["count"]} for inbox in inboxes]
    output.table(rows, _COLUMNS, empty="No inboxes yet. Add one: assent inboxes add GRAPH")


def add(
    place: Place,
    graph: Annotated[
        str | None, typer.Argument(help="A graph's name or an assistant's id.", metavar="[GRAPH]", show_default=False)
    ] = None,
    filter: Annotated[str | None, typer.Option(help='A filter instead, such as "is:pending risk:high".')] = None,
    label: Annotated[str | None, typer.Option("--name", help="Its name; by default the graph's.")] = None,
    deployment: Annotated[str | None, typer.Option(help="The server that runs the graph.", metavar="URL")] = None,
) -> None:
    """Add an inbox: the items of a graph, or those that match a filter."""
    body = {"graph_id": graph, "filter": filter, "name": label, "url": deployment}

    async def use(server: Remote) -> View:
        inbox: View = await server.send("POST", "/api/inboxes", body)
        return inbox

    inbox = call(place, use)
    if place.as_json:
        return output.emit(inbox)
    output.say(f"added: {escaped(inbox['name'])} ({escaped(inbox['filter'])}), id {inbox['id']}")


def remove(
    place: Place,
    inbox_id: Annotated[str, typer.Argument(help="The id that `assent inboxes list` shows.", metavar="ID")],
) -> None:
    """Remove an inbox; its items stay."""

    async def use(server: Remote) -> View:
        removed: View = await server.send("DELETE", f"/api/inboxes/{quote(inbox_id, safe='')}", repeatable=False)
        return removed

    removed = call(place, use, who=existing_person)
    if place.as_json:
        return output.emit(removed)
    output.say(f"removed: {escaped(removed['name'])}")
