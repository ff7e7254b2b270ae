"""`assent threads` and `assent runs`: the agents' side of a server, over the LangGraph API."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

import typer

from assent.surfaces.cli import output
from assent.surfaces.cli.remote import Place, Remote, View, call, placed

ThreadId = Annotated[str, typer.Argument(help="The thread's id.", metavar="THREAD")]
RunId = Annotated[str, typer.Argument(help="The run's id.", metavar="RUN")]
Limit = Annotated[int, typer.Option(help="The maximum number.", min=1, max=1000)]
_THREAD = ("thread_id", "status", "graph_id", "updated_at")
_RUN = ("run_id", "status", "assistant_id", "created_at", "updated_at")


def threads() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(placed(list_threads, database=False))
    app.command("get")(placed(get_thread, database=False))
    app.command("delete")(placed(delete_thread, database=False))
    return app


def runs() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(placed(list_runs, database=False))
    app.command("get")(placed(get_run, database=False))
    app.command("cancel")(placed(cancel_run, database=False))
    return app


def list_threads(
    place: Place,
    status: Annotated[
        Literal["idle", "busy", "interrupted", "error"] | None, typer.Option(help="Only threads with this status.")
    ] = None,
    limit: Limit = 50,
) -> None:
    """List threads, the last changed first."""
    wanted = {"limit": limit, "sort_by": "updated_at", "sort_order": "desc"} | ({"status": status} if status else {})
    rows: list[View] = _send(place, "POST", "/threads/search", wanted)
    if place.as_json:
        return output.emit(rows)
    shown = [{**row, "graph_id": (row.get("metadata") or {}).get("graph_id")} for row in rows]
    output.table(shown, _THREAD, empty="No threads.")


def get_thread(place: Place, thread_id: ThreadId) -> None:
    """Show a thread: its status, its values and its open questions."""
    output.emit(_get(place, _path(thread_id)))


def delete_thread(place: Place, thread_id: ThreadId) -> None:
    """Delete a thread with its runs and history."""
    _send(place, "DELETE", _path(thread_id), None)
    output.say(f"deleted: thread {thread_id}")


def list_runs(place: Place, thread_id: ThreadId, limit: Limit = 50) -> None:
    """List the runs of a thread, newest first."""
    rows: list[View] = _get(place, _path(thread_id, "runs"), limit=limit)
    if place.as_json:
        return output.emit(rows)
    output.table(rows, _RUN, empty="No runs.")


def get_run(place: Place, thread_id: ThreadId, run_id: RunId) -> None:
    """Show a run."""
    output.emit(_get(place, _path(thread_id, "runs", run_id)))


def cancel_run(
    place: Place,
    thread_id: ThreadId,
    run_id: RunId,
    rollback: Annotated[bool, typer.Option("--rollback", help="Delete the run and its checkpoints.")] = False,
) -> None:
    """Cancel a run, and wait until it has stopped."""
    query = f"?wait=true&action={'rollback' if rollback else 'interrupt'}"
    _send(place, "POST", _path(thread_id, "runs", run_id, "cancel") + query, None)
    output.say(f"cancelled: run {run_id}")


def _get(place: Place, path: str, **query: Any) -> Any:
    async def use(server: Remote) -> Any:
        return await server.get(path, **query)

    return call(place, use)


def _send(place: Place, method: str, path: str, body: Any) -> Any:
    async def use(server: Remote) -> Any:
        return await server.send(method, path, body)

    return call(place, use)


def _path(*parts: str) -> str:
    return "/".join(["/threads", *(quote(part, safe="") for part in parts)])
