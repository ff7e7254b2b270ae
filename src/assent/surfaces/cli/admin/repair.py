"""`assent repair`: resets a thread to before an answer on which its graph keeps failing."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from assent.errors import Invalid
from assent.surfaces.cli import output
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.remote import Place, Remote, View, call, placed


def add_to(app: typer.Typer) -> None:
    app.command("repair")(placed(repair))


def repair(place: Place, thread_id: Annotated[str, typer.Argument(help="The thread.", metavar="THREAD")]) -> None:
    """Drop the answers of a thread's last step, so that its question can be asked again."""
    if place.database is not None:
        raise Invalid("a thread is repaired by the server that runs its graph", hint="set its address with --url")

    async def use(server: Remote) -> View:
        done: View = await server.send("POST", f"/api/threads/{quote(thread_id, safe='')}/repair")
        return done

    done = call(place, use)
    if place.as_json:
        return output.emit(done)
    output.say(f"repaired: thread {escaped(done['thread_id'])}. A run without input asks the question again.")
