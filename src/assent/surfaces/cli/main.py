"""The command `assent`: adds the commands of each noun and turns errors into one line and an exit code."""

from __future__ import annotations

import sqlite3
import sys

import typer
from sqlalchemy.exc import DBAPIError

from assent.errors import AssentError, ConfigError
from assent.kernel.store import faults
from assent.surfaces import extensions
from assent.surfaces.cli import output
from assent.surfaces.cli.admin import (
    agents,
    audit,
    backfill,
    config,
    crons,
    database,
    deliveries,
    deployments,
    imports,
    keys,
    login,
    passkeys,
    policy,
    repair,
    samples,
    status,
    threads,
    users,
)
from assent.surfaces.cli.inbox import inbox, inboxes, insights, reasons
from assent.surfaces.cli.server import mcp, serve, worker


def application() -> typer.Typer:
    app = typer.Typer(
        name="assent",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        help="Runs LangGraph agents, stops them where a person must agree, and gives people one place to decide.",
    )
    serve.add_to(app)
    worker.add_to(app)
    mcp.add_to(app)
    login.add_to(app)
    config.add_to(app)
    status.add_to(app)
    imports.add_to(app)
    insights.add_to(app)
    repair.add_to(app)
    backfill.add_to(app)
    app.add_typer(inbox.commands(), name="inbox", help="Pending items and decisions.")
    app.add_typer(inboxes.commands(), name="inboxes", help="Your saved views of the inbox.")
    app.add_typer(reasons.commands(), name="reasons", help="Saved reasons for rejections and revision requests.")
    app.add_typer(policy.commands(), name="policy", help="Rules: which calls need approval, run freely, or never run.")
    app.add_typer(database.commands(), name="db", help="The database: schema, backup, retention.")
    app.add_typer(keys.commands(), name="keys", help="API keys of people, agents and services.")
    app.add_typer(agents.commands(), name="agents", help="Agents, whom they work for, and who reviews their work.")
    app.add_typer(users.commands(), name="users", help="People, their roles, and how they sign in.")
    app.add_typer(passkeys.commands(), name="passkeys", help="Passkeys that confirm approvals.")
    app.add_typer(audit.commands(), name="audit", help="The timeline: list, verify, export.")
    app.add_typer(deliveries.commands(), name="deliveries", help="The outbox: webhooks and their delivery status.")
    app.add_typer(samples.commands(), name="sample", help="The sample data of a demonstration.")
    app.add_typer(crons.commands(), name="crons", help="Runs that start by a schedule.")
    app.add_typer(deployments.commands(), name="deployments", help="Other servers whose questions are listed here.")
    app.add_typer(threads.threads(), name="threads", help="Threads of agents on a server.")
    app.add_typer(threads.runs(), name="runs", help="Runs of agents on a server.")
    audit.add_erase_to(app)
    for extension in extensions.installed():
        extension.add_commands(app)
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
