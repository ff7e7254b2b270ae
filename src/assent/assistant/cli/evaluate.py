"""`assent assistant evaluate`: how many requests of a file the configured model gets right."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assent.errors import ConfigError
from assent.settings import read_assistant_settings
from assent.surfaces.cli import output
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.options import AsJson

if TYPE_CHECKING:
    from assent.assistant.evaluation.report import Graded, Score

_FAILED = 1


def commands() -> typer.Typer:
    group = typer.Typer(no_args_is_help=True)
    group.callback()(lambda: None)  # a single command would else be the group itself
    group.command()(evaluate)
    return group


def evaluate(
    file: Annotated[Path, typer.Argument(help="The requests, as JSON lines.", exists=True, dir_okay=False)],
    at_least: Annotated[
        float | None, typer.Option(help="Fail below this percentage, or if a proposal is harmful.", min=0, max=100)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Try the requests of a file with the configured model, over a calendar in a temporary file."""
    from assent.assistant.evaluation import report, requests  # slow to import
    from assent.assistant.models import require_models

    settings = read_assistant_settings()
    require_models(settings)
    listed = list(requests.read(file))
    if not listed:
        raise ConfigError(f"{file} has no requests", hint="docs/assistant.md has the format")

    async def run() -> list[Graded]:
        return [result async for result in report.graded(settings, listed)]

    results = asyncio.run(run())
    scores = report.scores(results)
    if as_json:
        output.emit(
            {
                "model": settings.executor_model or settings.model,
                "languages": {language: score.plain() for language, score in scores.items()},
                "requests": [result.plain() for result in results],
            }
        )
    else:
        _show(results, scores)
    if at_least is not None and any(score.percent < at_least or score.plain()["harmful"] for score in scores.values()):
        raise typer.Exit(_FAILED)


def _show(results: list[Graded], scores: dict[str, Score]) -> None:
    for result in results:
        if result.grade in ("missed", "harmful"):
            output.say(f"{result.grade}: {escaped(result.request.request)}\n    {escaped(str(result.outcome))}")
    rows = [{"language": language, **score.plain()} for language, score in scores.items()]
    output.table(rows, list(rows[0]), empty="no requests")
