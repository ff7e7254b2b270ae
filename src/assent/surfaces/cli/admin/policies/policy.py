"""`assent policy`: the policy in force, its versions, tests of another policy, and standing approvals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from assent.errors import Invalid, NotFound
from assent.kernel import durations
from assent.kernel.canonical import Json
from assent.review.model.policies import Call
from assent.review.model.policy_text import to_toml
from assent.surfaces.cli import output
from assent.surfaces.cli.admin.policies import policy_test, standing_scope
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.inbox import edits
from assent.surfaces.cli.item_views import when
from assent.surfaces.cli.remote import Place, Remote, View, call, keeper, placed

PolicyFile = Annotated[Path, typer.Argument(help="The policy: TOML, or JSON in a .json file.", metavar="FILE")]

_VERSIONS = ["version", "hash", "source", "by", "written"]
_DIFFERENCES = ["item_id", "tool", "before", "after", "rule", "problems"]
_STANDING = ["id", "tool", "graph", "agent", "condition", "only_these_arguments", "uses_left", "ends", "by"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command()(placed(show))
    app.command("set")(placed(put))
    app.command("test")(placed(try_out))
    app.command()(placed(versions))
    app.command()(placed(standing))
    app.command()(placed(allow))
    app.command()(placed(revoke))
    return app


def show(
    place: Place,
    version: Annotated[int | None, typer.Option(help="An earlier version.", metavar="N")] = None,
) -> None:
    """Print the policy in force as TOML, ready to be edited and set again."""

    async def use(server: Remote) -> View:
        if version is None:
            current: View = await server.get("/api/policies")
            return current
        return await _version(server, version)

    policy = call(place, use, who=keeper)
    if place.as_json:
        return output.emit(policy)
    output.say(_described(policy), to_stderr=True)
    _warn(policy)
    output.say(to_toml(policy["policy"]))


def put(place: Place, file: PolicyFile) -> None:
    """Put a policy in force; existing items keep the version under which they were created."""
    document = _read(file)

    async def use(server: Remote) -> View:
        done: View = await server.send("PUT", "/api/policies", {"policy": document}, repeatable=False)
        return done

    done = call(place, use, who=keeper)
    if place.as_json:
        return output.emit(done)
    output.say(f"in force: {_described(done)}")
    _warn(done)


def try_out(
    place: Place,
    file: Annotated[
        Path | None, typer.Argument(help="The policy: TOML, or JSON in a .json file.", metavar="[FILE]")
    ] = None,
    tool: Annotated[str | None, typer.Option(help="The tool of a call to test.", metavar="NAME")] = None,
    args: Annotated[str, typer.Option(help="Its arguments, as JSON.", metavar="JSON")] = "{}",
    graph: Annotated[str, typer.Option(help="The graph that makes it.", metavar="NAME")] = "",
    agent: Annotated[str, typer.Option(help="The agent that makes it, by its name.", metavar="NAME")] = "",
    question: Annotated[bool, typer.Option("--question", help="The call is a question that approves nothing.")] = False,
) -> None:
    """Show the effect of a policy on a call, or the past calls it would have treated differently."""
    if tool is not None:
        wanted = Call(tool, edits.parsed(args, "--args"), graph, agent, place.tenant, "", question)
        return _try(place, file, wanted)
    if file is None:
        raise Invalid("nothing to test", hint="name a FILE to test against past calls, or a call with --tool")
    document = _read(file)

    async def use(server: Remote) -> View:
        result: View = await server.send("POST", "/api/policies/test", {"policy": document})
        return result

    replay = call(place, use, who=keeper)
    if place.as_json:
        return output.emit(replay)
    differences = replay["differences"]
    output.say(f"{_counted(replay['looked_at'], 'call')} checked, {len(differences)} would be treated differently")
    if differences:
        output.table(differences, _DIFFERENCES, empty="")
    for loosened in replay["loosens"]:
        output.say(f"loosens: {escaped(loosened)}")


def _try(place: Place, file: Path | None, wanted: Call) -> None:
    """Tests the file, locally; without one, the policy in force."""

    async def use(server: Remote) -> Json:
        return (await server.get("/api/policies"))["policy"]

    document = call(place, use, who=keeper) if file is None else _read(file)
    judgement = policy_test.judge(document, wanted)
    if place.as_json:
        return output.emit(policy_test.view(judgement))
    output.say("\n".join(policy_test.spelled(judgement)))


def versions(place: Place, limit: Annotated[int, typer.Option(help="The maximum number.", min=1)] = 50) -> None:
    """List the versions that were in force, newest first."""
    rows = _listed(place, "/api/policies/versions", limit)
    if place.as_json:
        return output.emit(rows)
    shown = [{**row, "hash": row["hash"][:12], "by": row["actor"], "written": when(row["created_at"])} for row in rows]
    empty = "No policy yet: every call needs a person. Set one: assent policy set FILE"
    output.table(shown, _VERSIONS, empty=empty)


def standing(place: Place, limit: Annotated[int, typer.Option(help="The maximum number.", min=1)] = 50) -> None:
    """List the standing approvals, newest first: calls that run without approval."""
    rows = _listed(place, "/api/standing-approvals", limit)
    if place.as_json:
        return output.emit(rows)
    shown = [
        {**row, "only_these_arguments": "yes" if row["same_args"] else "", "ends": _ends(row), "by": row["actor"]}
        for row in rows
    ]
    output.table(shown, _STANDING, empty="No standing approvals.")


def allow(
    place: Place,
    item_id: Annotated[str, typer.Argument(help="The item, or the first characters of its id.", metavar="ITEM")],
    lifetime: Annotated[str, typer.Option("--for", help="How long: at most 90 days.", metavar="DURATION")] = "7d",
    uses: Annotated[int | None, typer.Option(help="The number of calls after which it ends.", min=1)] = None,
    any_arguments: Annotated[bool, typer.Option("--any-arguments", help="Calls with any arguments.")] = False,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Limits an argument: amount<=100, amount>=1, currency, or currency=EUR.", metavar="LIMIT"),
    ] = None,
    same_agent: Annotated[bool, typer.Option("--same-agent", help="Only the agent that asked.")] = False,
    days: Annotated[int, typer.Option(help="How many days of past calls to replay.", min=1, max=365)] = 30,
    yes: Annotated[bool, typer.Option("--yes", help="Give it. Otherwise nothing changes.")] = False,
) -> None:
    """Propose a standing approval for calls like those of an item, and replay past calls; --yes gives it."""
    limits = [standing_scope.limit(text) for text in where or ()]
    scope = {
        "lifetime_seconds": durations.parse(lifetime).total_seconds(),
        "uses": uses,
        "same_args": not (any_arguments or limits),
        "limits": limits,
        "same_agent": same_agent,
    }

    async def use(server: Remote) -> tuple[View, list[View]]:
        item = await server.item(item_id)
        body = {"item_id": item["id"], "revision": item["revision"], "hash": item["hash"], **scope}
        proposal = await server.send("POST", "/api/standing-approvals/proposal", {**body, "days": days})
        given = await server.send("POST", "/api/standing-approvals", body) if yes else []
        return proposal, given

    proposal, given = call(place, use, who=keeper)
    if place.as_json:
        return output.emit({**proposal, "given": given})
    output.say("\n".join(standing_scope.spelled(proposal, days)))
    for approval in given:
        output.say(f"given: {approval['id']}; revoke it: assent policy revoke {approval['id']}")
    if not given:
        output.say("Nothing is given yet. Give it: repeat this command with --yes", to_stderr=True)


def revoke(
    place: Place,
    approval_id: Annotated[str, typer.Argument(help="The id that `assent policy standing` shows.", metavar="ID")],
) -> None:
    """Revoke a standing approval: from now on its calls need a person again."""

    async def use(server: Remote) -> View:
        done: View = await server.send("DELETE", f"/api/standing-approvals/{quote(approval_id, safe='')}")
        return done

    done = call(place, use, who=keeper)
    if place.as_json:
        return output.emit(done)
    output.say(f"revoked: {escaped(done['tool'])} needs approval again ({done['id']})")


async def _version(server: Remote, number: int) -> View:
    async for page in server.pages("/api/policies/versions"):
        for item in page["items"]:
            if item["version"] == number:
                version: View = item
                return version
    raise NotFound(f"there is no version {number}", hint="list them: assent policy versions")


def _listed(place: Place, path: str, limit: int) -> list[View]:
    async def use(server: Remote) -> list[View]:
        return [row async for page in server.pages(path, most=limit) for row in page["items"]]

    return call(place, use, who=keeper)


def _read(file: Path) -> Json:
    text = edits.read(file)
    return edits.parsed(text, str(file)) if file.suffix == ".json" else text


def _warn(policy: View) -> None:
    for warning in policy.get("warnings", ()):
        output.say(f"warning: {escaped(warning)}", to_stderr=True)


def _described(policy: View) -> str:
    if not policy["version"]:
        return "no policy is set: every call needs a person"
    by = f"by {escaped(policy['actor'])}, {when(policy['created_at'])}"
    return f"version {policy['version']} ({policy['source']}), {by}, hash {policy['hash']}"


def _ends(row: View) -> str:
    return "revoked" if row["revoked_at"] else when(row["expires_at"])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
