"""Options that several commands share, and how a command gets its settings and services from them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from assent import logs
from assent.app import Services, open_services
from assent.domain.access import DEFAULT_TENANT, Principal, operator
from assent.errors import NotFound
from assent.settings import Loaded, Settings, load

T = TypeVar("T")

log = logging.getLogger(__name__)

Config = Annotated[Path | None, typer.Option(help="The graphs to serve: a langgraph.json.", metavar="PATH")]
Host = Annotated[str | None, typer.Option(help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free one.")]
Database = Annotated[str | None, typer.Option(help="sqlite:///path or postgresql://…", metavar="URL")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Tenant = Annotated[str, typer.Option(help="Whose data to work on.")]
TENANT = DEFAULT_TENANT


def loaded(**options: Any) -> Loaded:
    found = load(options)
    logs.configure(found.settings.log_level, found.settings.log_format)
    for remark in found.remarks:
        log.warning(remark)
    return found


def settings(**options: Any) -> Settings:
    return loaded(**options).settings


def run_beside(
    database: str | None,
    config: Path | None,
    tenant: str,
    use: Callable[[Services, Principal], Awaitable[T]],
    *,
    creates: bool = False,
) -> T:
    """Runs one use case on the database itself, as the operator of a tenant. A server may be running meanwhile.

    Where there is no such database yet, only what `creates` something makes one: a mistyped name is not a fresh start.
    """
    found = settings(database=database, config=config)
    file = found.database_file
    if not creates and file is not None and not file.exists():
        raise NotFound(
            f"there is no database {file}", hint="name another with --database, or make it: assent db upgrade"
        )
    return run_with(found, tenant, use)


def run_with(found: Settings, tenant: str, use: Callable[[Services, Principal], Awaitable[T]]) -> T:
    async def main() -> T:
        async with open_services(found) as services:
            return await use(services, operator(tenant))

    return asyncio.run(main())


def address(found: Settings, port: int | None = None) -> str:
    """Where a browser on this machine reaches a server with these settings."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(found.host, found.host)  # noqa: S104 - compared, not bound
    return f"http://{f'[{host}]' if ':' in host else host}:{found.port if port is None else port}"
