"""`assent`: the front door. Adds the commands of each noun and turns errors into one line and an exit code."""

from __future__ import annotations

import sqlite3
import sys

import typer
from sqlalchemy.exc import DBAPIError

from assent.cli import (
    audit,
    calendar,
    chat,
    config,
    database,
    deliveries,
    inbox,
    inboxes,
    insights,
    keys,
    output,
    policy,
    serve,
    users,
    worker,
)
from assent.errors import AssentError, ConfigError
from assent.store import faults


def application() -> typer.Typer:
    app = typer.Typer(
        name="assent",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        help="Runs LangGraph agents, stops them where a person must agree, and gives people one place to decide.",
    )
    serve.add_to(app)
    worker.add_to(app)
    calendar.add_to(app)
    chat.add_to(app)
    config.add_to(app)
    insights.add_to(app)
    app.add_typer(inbox.commands(), name="inbox", help="What waits for people, and deciding it.")
    app.add_typer(inboxes.commands(), name="inboxes", help="Your saved views of the inbox.")
    app.add_typer(policy.commands(), name="policy", help="Which calls need whom, run freely, or never run.")
    app.add_typer(database.commands(), name="db", help="The database: schema, backup, retention.")
    app.add_typer(keys.commands(), name="keys", help="API keys of people, agents and services.")
    app.add_typer(users.commands(), name="users", help="People, their roles, and how they sign in.")
    app.add_typer(audit.commands(), name="audit", help="The timeline: list, verify, export.")
    app.add_typer(deliveries.commands(), name="deliveries", help="The outbox: what was sent, and what was not.")
    audit.add_erase_to(app)
    return app


def main() -> None:
    try:
        application()()
    except AssentError as error:
        sys.exit(output.fail(error))
    except DBAPIError as error:
        sys.exit(output.fail(faults.translate(error) or ConfigError(f"the database cannot be used: {error.orig}")))
    except sqlite3.Error as error:
        sys.exit(output.fail(ConfigError(f"a database file cannot be used: {error}")))
    except OSError as error:
        sys.exit(output.fail(ConfigError(f"{error.filename or 'a file'}: {error.strerror or error}")))
