"""`assent inbox triage`: decide one item after the other on a screen, with the keys of the web inbox.

It needs Textual: `pip install 'assent[triage]'`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from assent.client import AsyncInbox
from assent.errors import ConfigError
from assent.surfaces.cli.remote import Place, Remote, call


def triage(
    place: Place, filter: Annotated[str, typer.Option(help="The items, as in `assent inbox list`.")] = "is:pending"
) -> None:
    """Decide items on an interactive screen; `?` lists its keys."""
    try:
        from assent.surfaces.cli.inbox.triage_screen import Triage
    except ModuleNotFoundError as error:
        if error.name != "textual":
            raise
        raise ConfigError("this screen needs Textual", hint="pip install 'assent[triage]'") from None

    async def use(server: Remote) -> None:
        await Triage(AsyncInbox(connection=server), filter).run_async()

    call(place, use)
