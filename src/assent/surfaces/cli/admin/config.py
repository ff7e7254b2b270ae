"""`assent config` and `assent version`: the settings in force, their origins, and the versions."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed

import typer

from assent.settings import read_assistant_settings
from assent.surfaces.cli import output
from assent.surfaces.cli.options import AsJson, Config, Database, loaded


def add_to(app: typer.Typer) -> None:
    app.command()(config)
    app.command()(version)


def config(config: Config = None, database: Database = None, as_json: AsJson = False) -> None:
    """Print every setting in force, the assistant's included, and where it comes from."""
    conf = loaded(config=config, database=database)
    values = conf.settings.model_dump(mode="json")
    values["database"] = conf.settings.database_shown
    rows = [{"setting": name, "value": value, "from": conf.origins[name]} for name, value in values.items()]
    given = read_assistant_settings()
    names = dict(zip(given.shown(), type(given).model_fields, strict=True))
    rows += [
        {"setting": name, "value": value, "from": name if names[name] in given.model_fields_set else "default"}
        for name, value in given.shown().items()
    ]
    if as_json:
        return output.emit(rows)
    output.table(rows, ["setting", "value", "from"], empty="")


def version(as_json: AsJson = False) -> None:
    """Print the versions of Assent and its main dependencies."""
    names = ("assent", "langgraph", "langgraph-sdk", "fastapi", "sqlalchemy")
    versions = {name: installed(name) for name in names} | {"python": platform.python_version()}
    if as_json:
        return output.emit(versions)
    output.say("\n".join(f"{name} {number}" for name, number in versions.items()))
