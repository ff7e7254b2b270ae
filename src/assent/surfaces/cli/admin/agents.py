"""`assent agents`: the registry of agents, on a server or a database."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from assent.identity.model.agents import Source
from assent.surfaces.cli import output
from assent.surfaces.cli.remote import Place, Remote, View, call, keeper, placed

Named = Annotated[str, typer.Argument(help="The agent, by name or id.")]
Parent = Annotated[str | None, typer.Option(help="The agent that it works for, by name or id (in lists by name).")]
Human = Annotated[str | None, typer.Option(help="The person who reviews its work.")]
FromSource = Annotated[Source | None, typer.Option(help="`system` for agents of the operators.")]
_PATH = "/api/agents"
_COLUMNS = ["name", "parent", "human", "source", "id"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(list_agents)
    app.command()(show)
    app.command()(add)
    app.command()(change)
    app.command()(remove)
    return app


@placed
def list_agents(
    place: Place,
    text: Annotated[str | None, typer.Option(help="A part of the name.")] = None,
    parent: Parent = None,
    human: Human = None,
    source: FromSource = None,
) -> None:
    """List the agents by name, or those that match all options."""
    given: dict[str, Any] = {"text": text, "parent": parent, "human": human, "source": source}
    wanted = {name: value for name, value in given.items() if value is not None}

    async def use(remote: Remote) -> list[View]:
        return [agent async for page in remote.pages(_PATH, **wanted) for agent in page["items"]]

    rows = call(place, use, who=keeper)
    if place.as_json:
        return output.emit(rows)
    output.table(rows, _COLUMNS, empty="No agents yet. Register one: assent agents add NAME")


@placed
def show(place: Place, agent: Named) -> None:
    """Show an agent."""

    async def use(remote: Remote) -> View:
        shown: View = await remote.get(_path(agent))
        return shown

    _say(place, call(place, use, who=keeper))


@placed
def add(
    place: Place,
    agent: Annotated[str, typer.Argument(help="The name of the agent.")],
    parent: Parent = None,
    human: Human = None,
    source: FromSource = None,
) -> None:
    """Register an agent without a key; `assent keys create --agent NAME` gives it one."""
    body = {"name": agent, "parent": parent, "human": human, "source": source}
    _say(place, _sent(place, "POST", _PATH, {field: value for field, value in body.items() if value is not None}))


@placed
def change(
    place: Place,
    agent: Named,
    rename: Annotated[str | None, typer.Option(help="The new name; not for an agent with keys.")] = None,
    parent: Parent = None,
    human: Human = None,
    source: FromSource = None,
    no_parent: Annotated[bool, typer.Option("--no-parent", help="It works for no other agent.")] = False,
    no_human: Annotated[bool, typer.Option("--no-human", help="No person is paired with it.")] = False,
) -> None:
    """Change the fields that are given."""
    if (parent and no_parent) or (human and no_human):
        raise typer.BadParameter("give a value or remove it, not both")
    body: dict[str, Any] = {"name": rename, "parent": parent, "human": human, "source": source}
    body = {field: value for field, value in body.items() if value is not None}
    body |= {field: None for field, gone in (("parent", no_parent), ("human", no_human)) if gone}
    if not body:
        raise typer.BadParameter("nothing to change: give an option")
    _say(place, _sent(place, "PATCH", _path(agent), body))


@placed
def remove(place: Place, agent: Named) -> None:
    """Remove an agent whose keys are revoked. Agents below it become orphans."""
    removed = _sent(place, "DELETE", _path(agent))
    if place.as_json:
        return output.emit(removed)
    output.say(f"removed {removed['name']} ({removed['id']})")


def _sent(place: Place, method: str, path: str, body: Any = None) -> View:
    async def use(remote: Remote) -> View:
        agent: View = await remote.send(method, path, body, repeatable=False)
        return agent

    return call(place, use, who=keeper)


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"


def _say(place: Place, agent: View) -> None:
    if place.as_json:
        return output.emit(agent)
    output.table([agent], _COLUMNS, empty="")
