"""`assent inbox watch`: changes of items as they happen."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Annotated

import typer

from assent.client import Change
from assent.surfaces.cli import output
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.remote import Place, Remote, call, reader


def watch(
    place: Place,
    after: Annotated[
        int | None, typer.Option(help="Begin after this number of an earlier change.", metavar="SEQ")
    ] = None,
    item: Annotated[str | None, typer.Option(help="Only changes of this item.", metavar="ID")] = None,
    count: Annotated[int | None, typer.Option(help="End after so many changes.", min=1)] = None,
) -> None:
    """Print changes of items as they happen, until Ctrl-C; with --json one line each."""

    async def use(server: Remote) -> None:
        chosen, shown = (await server.item(item))["id"] if item else None, 0
        async with aclosing(server.inbox.watch(after=after)) as changes:
            async for change in changes:
                if chosen in (None, change["item"]["id"]):
                    _print(place, change)
                    shown += 1
                if shown == count:
                    return

    try:
        call(place, use, who=reader)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _print(place: Place, change: Change) -> None:
    if place.as_json:
        return output.say(escaped(json.dumps(change, ensure_ascii=False)))
    item = change["item"]
    state = item["status"].lower().replace("_", " ")
    words = (change["at"][:19], str(change["seq"]), change["kind"].removeprefix("item."), change["actor"], item["id"])
    output.say("  ".join((*words, state, escaped(item["title"]))))
