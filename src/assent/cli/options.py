"""Options that several commands share, and how a command gets its settings and services from them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from assent import logs
from assent.app import Services, open_services
from assent.domain.access import DEFAULT_TENANT, Principal, operator
from assent.settings import Loaded, Settings, load

T = TypeVar("T")

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
    return found


def settings(**options: Any) -> Settings:
    return loaded(**options).settings


def run_beside(
    database: str | None, config: Path | None, tenant: str, use: Callable[[Services, Principal], Awaitable[T]]
) -> T:
    """Runs one use case on the database itself, as the operator of a tenant. A server may be running meanwhile."""

    async def main() -> T:
        async with open_services(settings(database=database, config=config)) as services:
            return await use(services, operator(tenant))

    return asyncio.run(main())
