"""`assent policy`: what is in force, what was, what another one would have done, and what may always run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from assent.cli import edits, output
from assent.cli.escapes import emit, escaped
from assent.cli.item_views import when
from assent.cli.remote import Place, Remote, View, call, keeper, placed
from assent.domain.canonical import Json
from assent.domain.policy_text import to_toml
from assent.errors import NotFound

PolicyFile = Annotated[Path, typer.Argument(help="The policy: TOML, or JSON in a .json file.", metavar="FILE")]

_VERSIONS = ["version", "hash", "source", "by", "written"]
_DIFFERENCES = ["item_id", "tool", "before", "after", "rule", "problems"]
_STANDING = ["id", "tool", "graph", "condition", "only_these_arguments", "uses_left", "ends", "by"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command()(placed(show))
    app.command("set")(placed(put))
    app.command()(placed(test))
    app.command()(placed(versions))
    app.command()(placed(standing))
    app.command()(placed(revoke))
    return app


def show(
    place: Place,
    version: Annotated[int | None, typer.Option(help="One from before.", metavar="N")] = None,
) -> None:
    """Print the policy in force as TOML, ready to be changed and set again."""

    async def use(server: Remote) -> View:
        if version is None:
            found: View = await server.get("/api/policies")
            return found
        return await _version(server, version)

    found = call(place, use, who=keeper)
    if place.as_json:
        return emit(found)
    output.say(_described(found), to_stderr=True)
    output.say(to_toml(found["policy"]))


def put(place: Place, file: PolicyFile) -> None:
    """Put a policy in force; what was asked before keeps the one it was asked under."""
    document = _read(file)

    async def use(server: Remote) -> View:
        done: View = await server.send("PUT", "/api/policies", {"policy": document}, repeatable=False)
        return done

    done = call(place, use, who=keeper)
    if place.as_json:
        return emit(done)
    output.say(f"in force: {_described(done)}")


def test(place: Place, file: PolicyFile) -> None:
    """Say which calls of the past a policy would have treated differently; nothing is changed."""
    document = _read(file)

    async def use(server: Remote) -> View:
        found: View = await server.send("POST", "/api/policies/test", {"policy": document})
        return found

    found = call(place, use, who=keeper)
    if place.as_json:
        return emit(found)
    differences = found["differences"]
    output.say(f"{_counted(found['looked_at'], 'call')} looked at, {len(differences)} would be treated differently")
    if differences:
        output.table([_escaped(one) for one in differences], _DIFFERENCES, empty="")


def versions(place: Place, limit: Annotated[int, typer.Option(help="How many at most.", min=1)] = 50) -> None:
    """List the versions that were in force, newest first."""
    rows = _listed(place, "/api/policies/versions", limit)
    if place.as_json:
        return emit(rows)
    told = [{**row, "hash": row["hash"][:12], "by": row["actor"], "written": when(row["created_at"])} for row in rows]
    empty = "Nobody has written one: everything is asked about. Write one: assent policy set FILE"
    output.table([_escaped(row) for row in told], _VERSIONS, empty=empty)


def standing(place: Place, limit: Annotated[int, typer.Option(help="How many at most.", min=1)] = 50) -> None:
    """List the standing approvals, newest first: calls that run without being asked for."""
    rows = _listed(place, "/api/standing-approvals", limit)
    if place.as_json:
        return emit(rows)
    told = [
        {**row, "only_these_arguments": "yes" if row["same_args"] else "", "ends": _ends(row), "by": row["actor"]}
        for row in rows
    ]
    output.table([_escaped(row) for row in told], _STANDING, empty="None: whatever has to be asked for is asked for.")


def revoke(
    place: Place,
    approval_id: Annotated[str, typer.Argument(help="The id that `assent policy standing` shows.", metavar="ID")],
) -> None:
    """End a standing approval: from now on a person is asked again."""

    async def use(server: Remote) -> View:
        done: View = await server.send("DELETE", f"/api/standing-approvals/{quote(approval_id, safe='')}")
        return done

    done = call(place, use, who=keeper)
    if place.as_json:
        return emit(done)
    output.say(f"revoked: {escaped(done['tool'])} is asked for again ({done['id']})")


async def _version(server: Remote, number: int) -> View:
    async for page in server.pages("/api/policies/versions"):
        for one in page["items"]:
            if one["version"] == number:
                found: View = one
                return found
    raise NotFound(f"there is no version {number}", hint="assent policy versions lists them")


def _listed(place: Place, path: str, limit: int) -> list[View]:
    async def use(server: Remote) -> list[View]:
        return [row async for page in server.pages(path, most=limit) for row in page["items"]]

    return call(place, use, who=keeper)


def _read(file: Path) -> Json:
    text = edits.read(file)
    return edits.parsed(text, str(file)) if file.suffix == ".json" else text


def _described(found: View) -> str:
    if not found["version"]:
        return "nobody has written a policy: everything is asked about"
    by = f"by {escaped(found['actor'])}, {when(found['created_at'])}"
    return f"version {found['version']} ({found['source']}), {by}, hash {found['hash']}"


def _ends(row: View) -> str:
    return "revoked" if row["revoked_at"] else when(row["expires_at"])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _escaped(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: escaped(value)
        if isinstance(value, str)
        else [escaped(str(one)) for one in value]
        if isinstance(value, list)
        else value
        for name, value in row.items()
    }
