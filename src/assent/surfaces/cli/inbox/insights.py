"""`assent insights`: decision times, outcomes, and the age of the backlog."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from assent.surfaces.cli import output
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.remote import Place, Remote, View, call, keeper, placed

_OUTCOMES = ("approved", "changed", "rejected", "sent_back", "undecided")
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def add_to(app: typer.Typer) -> None:
    app.command("insights")(placed(insights))


def insights(place: Place, days: Annotated[int, typer.Option(help="Items of the last 7, 30 or 90 days.")] = 30) -> None:
    """Show decision times, outcomes by tool and reviewer, and the age of the backlog."""

    async def use(server: Remote) -> View:
        report: View = await server.get("/api/insights", days=days)
        return report

    report = call(place, use, who=keeper)
    if place.as_json:
        return output.emit(report)
    _summary(report)
    for name, rows in (("tool", report["tools"]), ("reviewer", report["reviewers"])):
        output.say()
        output.table([_row(name, row) for row in rows], [name, "total", *_OUTCOMES, "median"], empty=f"No {name} yet.")


def _summary(report: View) -> None:
    waits = report["waits"]
    sample = f" (an even sample of {report['counted']} counted)" if report["counted"] < report["asked"] else ""
    output.say(
        f"{report['days']} days: {report['asked']} asked{sample}, {waits['count']} decided, {report['open']} open"
    )
    if report["samples"]:
        output.say(f"includes {report['samples']} items of sample data; remove them: assent sample remove")
    output.say(f"time to decision: median {_duration(waits['median'])}, nine of ten within {_duration(waits['p90'])}")
    output.say("open by age: " + ", ".join(f"{_age(group)} {group['items']}" for group in report["backlog"]))
    for stamp in report["stamps"]:
        output.say(
            f"check: {escaped(stamp['actor'])} approved {stamp['approved']} of {stamp['decisions']}, "
            f"with about {_duration(stamp['pace'])} for each"
        )


def _row(name: str, rates: View) -> dict[str, Any]:
    counts = {outcome: rates[outcome] for outcome in _OUTCOMES}
    return {
        name: escaped(rates["name"]),
        "total": rates["total"],
        **counts,
        "median": _duration(rates["waits"]["median"]),
    }


def _age(group: View) -> str:
    return f"under {_duration(group['under'])}" if group["under"] is not None else f"over {_duration(group['over'])}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
