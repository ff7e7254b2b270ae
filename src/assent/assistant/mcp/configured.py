"""The MCP servers that the settings name; without any, the calendar in this process."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from assent.assistant.mcp.client import MODERN, McpClient, TimeLimits
from assent.assistant.mcp.connection import START_SECONDS
from assent.assistant.mcp.faults import shown
from assent.assistant.mcp.login.desk import link_to
from assent.assistant.mcp.places import calendar_file
from assent.assistant.mcp.servers import McpServers
from assent.assistant.mcp.sharing import shared
from assent.assistant.mcp.targets import calendar, server_at, server_of
from assent.assistant.mcp.trust import trusted_by_default
from assent.errors import ConfigError
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.settings import AssistantSettings, CaldavServer, McpServerSettings

_STARTED = "that ASSISTANT_MCP_COMMAND starts"
_HTTP_CALLS = 4
"""Calls at once over the handshake's protocol: one connection each. A command is started once, because it may have a
state."""

Factory = Callable[[], McpClient]


def create_client(settings: AssistantSettings) -> McpServers:
    """Connections of one's own."""
    return McpServers({name: create() for name, (_, create) in _factories(settings)})


def shared_client(settings: AssistantSettings) -> McpServers:
    """The connections of this process, which outlive a turn."""
    return McpServers({name: shared(key, create) for name, (key, create) in _factories(settings)})


def shared_servers(settings: AssistantSettings) -> McpServers | None:
    """As `shared_client`, but None where only the calendar in this process would be used."""
    return shared_client(settings) if _servers(settings) else None


def _factories(settings: AssistantSettings) -> Iterator[tuple[str, tuple[str, Factory]]]:
    limits = TimeLimits(by_tool={tool: limit.total_seconds() for tool, limit in settings.mcp_timeouts.items()})
    servers = _servers(settings)
    for name, (shown_name, server) in servers.items():
        trusted = _is_trusted(name, settings)
        create = partial(_client_of, server, shown_name, trusted, limits)
        key = canonical.digest([name, trusted, dict(limits.by_tool), _plain(server)])
        yield name, (key, create)
    if not servers:
        file = calendar_file(settings)
        mode = MODERN if settings.mcp_mode == "auto" else settings.mcp_mode  # its questions survive a restart
        key = canonical.digest([mode, str(file), *_calendar_parts(settings)])
        yield "calendar", (f"calendar {key}", partial(_calendar, file, mode, settings.caldav))


def require_calendar(settings: AssistantSettings) -> None:
    """Stops the start if the calendar in this process is on a server that cannot be used."""
    if settings.caldav and not _servers(settings):
        from assent.assistant.calendar import choice

        choice.require_calendar(settings.caldav)


def _calendar(file: Path, mode: str, caldav: CaldavServer | None) -> McpClient:
    return McpClient(calendar(file, caldav), name="in this process", mode=mode, parallel=_HTTP_CALLS)


def _calendar_parts(settings: AssistantSettings) -> list[str]:
    secrets = (settings.caldav_password, settings.caldav_token)
    parts = (settings.caldav_url, settings.caldav_user, settings.caldav_calendar)
    return [part or "" for part in parts] + [secret.get_secret_value() if secret else "" for secret in secrets]


def _servers(settings: AssistantSettings) -> Mapping[str, tuple[str, McpServerSettings]]:
    """The servers by name, each with its name in messages."""
    servers = {name: (name, server) for name, server in settings.mcp_servers.items() if not server.disabled}
    if settings.mcp_url:
        at = McpServerSettings(url=settings.mcp_url, headers=settings.mcp_headers, mode=settings.mcp_mode)
        servers["url"] = (shown(settings.mcp_url), at)
    if settings.mcp_command:
        command, *args = shlex.split(settings.mcp_command) or [""]
        if not command:
            raise ConfigError("ASSISTANT_MCP_COMMAND is empty")
        of = McpServerSettings(command=command, args=tuple(args), env=settings.mcp_env, mode=settings.mcp_mode)
        servers["command"] = (_STARTED, of)
    return servers


def _client_of(server: McpServerSettings, name: str, trusted: bool, limits: TimeLimits) -> McpClient:
    if server.url:
        target = server_at(server.url, _secrets(server.headers), sse=server.uses_sse)
        sign_in = partial(link_to, server.url)
        return McpClient(
            target,
            name=name,
            mode=server.mode,
            trusted=trusted,
            limits=limits,
            parallel=_HTTP_CALLS,
            sign_in=sign_in,
        )
    target = server_of(server.command or "", list(server.args), _secrets(server.env), server.cwd)
    return McpClient(target, name=name, mode=server.mode, trusted=trusted, limits=limits, connect_seconds=START_SECONDS)


def _is_trusted(name: str, settings: AssistantSettings) -> bool:
    if settings.trusted_servers is None:
        return trusted_by_default()
    return any(fnmatchcase(name, pattern) for pattern in settings.trusted_servers)


def _plain(server: McpServerSettings) -> Json:
    open_parts = server.model_dump(mode="json", exclude={"env", "headers"})
    return {**open_parts, "env": _secrets(server.env), "headers": _secrets(server.headers)}


def _secrets(values: Mapping[str, SecretStr]) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in values.items()}
