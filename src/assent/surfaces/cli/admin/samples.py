"""`assent sample`: the sample data of a demonstration, counted and removed."""

from __future__ import annotations

import typer

from assent.surfaces.cli import output
from assent.surfaces.cli.remote import Place, Remote, View, call, keeper, placed

_PATH = "/api/sample-data"


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command()(placed(show))
    app.command()(placed(remove))
    return app


def show(place: Place) -> None:
    """Count the items of sample data."""

    async def use(server: Remote) -> View:
        counted: View = await server.get(_PATH)
        return counted

    counted = call(place, use, who=keeper)
    if place.as_json:
        return output.emit(counted)
    output.say(f"{counted['items']} items of sample data")


def remove(place: Place) -> None:
    """Remove all sample data; real items stay."""

    async def use(server: Remote) -> View:
        removed: View = await server.send("DELETE", _PATH)
        return removed

    removed = call(place, use, who=keeper)
    if place.as_json:
        return output.emit(removed)
    output.say(f"removed: {removed['items']} items of sample data")
