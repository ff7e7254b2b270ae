"""Shared options of commands, and the settings and services made from them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from assent import logs
from assent.app import Services, open_services
from assent.errors import NotFound
from assent.identity.model.access import DEFAULT_TENANT, Principal, operator
from assent.settings import Loaded, Settings, load

T = TypeVar("T")

log = logging.getLogger(__name__)

Config = Annotated[Path | None, typer.Option(help="The langgraph.json of the project.", metavar="PATH")]
Host = Annotated[str | None, typer.Option(help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free one.")]
Database = Annotated[str | None, typer.Option(help="sqlite:///path or postgresql://…", metavar="URL")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Tenant = Annotated[str, typer.Option(help="The tenant to work on.")]
TENANT = DEFAULT_TENANT


def loaded(**options: Any) -> Loaded:
    conf = load(options)
    logs.configure(conf.settings.log_level, conf.settings.log_format)
    for remark in conf.remarks:
        log.warning(remark)
    return conf


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
    """Runs a use case directly on the database, as the operator of a tenant. A server may run at the same time.

    Only a use case that `creates` something makes a new database: a mistyped name is an error.
    """
    conf = settings(database=database, config=config)
    file = conf.database_file
    if not creates and file is not None and not file.exists():
        raise NotFound(
            f"database not found: {file}", hint="name another with --database, or create it: assent db upgrade"
        )
    return run_with(conf, tenant, use)


def run_with(conf: Settings, tenant: str, use: Callable[[Services, Principal], Awaitable[T]]) -> T:
    async def main() -> T:
        async with open_services(conf) as services:
            return await use(services, operator(tenant))

    return asyncio.run(main())


def address(conf: Settings, port: int | None = None) -> str:
    """The address of a server with these settings for a browser on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(conf.host, conf.host)  # noqa: S104 - compared, not bound
    return f"http://{f'[{host}]' if ':' in host else host}:{conf.port if port is None else port}"
