"""`assent insights`: how long decisions take, what they come to, and how old the backlog is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from assent.cli import output
from assent.cli.escapes import emit, escaped
from assent.cli.remote import Place, Remote, View, call, keeper, placed

_OUTCOMES = ("approved", "changed", "rejected", "sent_back", "undecided")
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def add_to(app: typer.Typer) -> None:
    app.command("insights")(placed(insights))


def insights(
    place: Place, days: Annotated[int, typer.Option(help="Of what was asked in the last 7, 30 or 90 days.")] = 30
) -> None:
    """Say how long decisions take, what they come to by tool and reviewer, and how old the backlog is."""

    async def use(server: Remote) -> View:
        found: View = await server.get("/api/insights", days=days)
        return found

    found = call(place, use, who=keeper)
    if place.as_json:
        return emit(found)
    _summary(found)
    for name, rows in (("tool", found["tools"]), ("reviewer", found["reviewers"])):
        output.say()
        output.table([_row(name, row) for row in rows], [name, "total", *_OUTCOMES, "median"], empty=f"No {name} yet.")


def _summary(found: View) -> None:
    waits = found["waits"]
    sample = f" (an even sample of {found['counted']} counted)" if found["counted"] < found["asked"] else ""
    output.say(f"{found['days']} days: {found['asked']} asked{sample}, {waits['count']} decided, {found['open']} open")
    output.say(f"time to decision: median {_duration(waits['median'])}, nine of ten within {_duration(waits['p90'])}")
    output.say("open by age: " + ", ".join(f"{_age(one)} {one['items']}" for one in found["backlog"]))
    for one in found["stamps"]:
        output.say(
            f"look again: {escaped(one['actor'])} approved {one['approved']} of {one['decisions']}, "
            f"with about {_duration(one['pace'])} for each"
        )


def _row(name: str, rates: View) -> dict[str, Any]:
    counts = {outcome: rates[outcome] for outcome in _OUTCOMES}
    return {
        name: escaped(rates["name"]),
        "total": rates["total"],
        **counts,
        "median": _duration(rates["waits"]["median"]),
    }


def _age(one: View) -> str:
    return f"under {_duration(one['under'])}" if one["under"] is not None else f"over {_duration(one['over'])}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
