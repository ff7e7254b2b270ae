"""The command `assent`: adds the commands of each noun and turns errors into one line and an exit code."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import typer
from sqlalchemy.exc import DBAPIError

from assent.errors import AssentError, ConfigError
from assent.kernel.store import faults
from assent.settings import read_env_file
from assent.surfaces import extensions
from assent.surfaces.cli import groups, output
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
    repair,
    samples,
    status,
    threads,
)
from assent.surfaces.cli.admin.people import keys, login, passkeys, users
from assent.surfaces.cli.admin.policies import policy
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
    groups.add(app, "inbox", inbox.commands, help="Pending items and decisions.")
    groups.add(app, "inboxes", inboxes.commands, help="Your saved views of the inbox.")
    groups.add(app, "reasons", reasons.commands, help="Saved reasons for rejections and revision requests.")
    groups.add(app, "policy", policy.commands, help="Rules: which calls need approval, run freely, or never run.")
    groups.add(app, "db", database.commands, help="The database: schema, backup, retention.")
    groups.add(app, "keys", keys.commands, help="API keys of people, agents and services.")
    groups.add(app, "agents", agents.commands, help="Agents, whom they work for, and who reviews their work.")
    groups.add(app, "users", users.commands, help="People, their roles, and how they sign in.")
    groups.add(app, "passkeys", passkeys.commands, help="Passkeys that confirm approvals.")
    groups.add(app, "audit", audit.commands, help="The timeline: list, verify, export.")
    groups.add(app, "deliveries", deliveries.commands, help="The outbox: webhooks and their delivery status.")
    groups.add(app, "sample", samples.commands, help="The sample data of a demonstration.")
    groups.add(app, "crons", crons.commands, help="Runs that start by a schedule.")
    groups.add(app, "deployments", deployments.commands, help="Other servers whose questions are listed here.")
    groups.add(app, "threads", threads.threads, help="Threads of agents on a server.")
    groups.add(app, "runs", threads.runs, help="Runs of agents on a server.")
    audit.add_erase_to(app)
    for extension in extensions.installed():
        extension.add_commands(app)
    return app


def main() -> None:
    try:
        read_env_file(Path.cwd())
        application()()
    except AssentError as error:
        sys.exit(output.fail(error))
    except DBAPIError as error:
        sys.exit(output.fail(faults.translate(error) or ConfigError(f"the database cannot be used: {error.orig}")))
    except sqlite3.Error as error:
        sys.exit(output.fail(ConfigError(f"a database file cannot be used: {error}")))
    except OSError as error:
        sys.exit(output.fail(ConfigError(f"{error.filename or 'a file'}: {error.strerror or error}")))
