"""`assent inbox triage`: decide one item after the other on a screen, with the keys of the web inbox.

It needs Textual: `pip install 'assent[triage]'`.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from assent.errors import Invalid
from assent.extras import require
from assent.surfaces.cli.remote import Place, Remote, call


def triage(
    place: Place, filter: Annotated[str, typer.Option(help="The items, as in `assent inbox list`.")] = "is:pending"
) -> None:
    """Decide items on an interactive screen; `?` lists its keys."""
    require("triage", "this screen")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Invalid("this screen needs a terminal", hint="assent inbox list and assent inbox approve work in a pipe")
    from assent.surfaces.cli.inbox.triage_screen import Triage

    async def use(server: Remote) -> None:
        await Triage(server.inbox, filter).run_async()

    call(place, use)
