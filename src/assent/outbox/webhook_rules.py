"""The `webhooks` block of a `langgraph.json`: the addresses that runs may name, and additional headers.

The rules narrow the allowed targets and never widen them: an internal address is always refused. With the block
present, plain http is refused by default, as on LangGraph's own server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assent.errors import ConfigError, TargetRefused

_TEMPLATE = re.compile(r"\$\{\{\s*env\.(\w+)\s*\}\}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_DEFAULT_PREFIX = "LG_WEBHOOK_"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class WebhookRules:
    headers: Mapping[str, str] = field(default_factory=dict)
    https_only: bool = False
    domains: tuple[str, ...] = ()
    ports: frozenset[int] = frozenset()
    longest_url: int | None = None
    refuses_loopback: bool = False
    """Also where the operator allows it."""

    def check(self, *, scheme: str, host: str, port: int | None, length: int) -> None:
        if self.https_only and scheme != "https":
            raise TargetRefused("only https:// addresses can be called")
        if self.domains and not any(_matches(domain, host.lower()) for domain in self.domains):
            raise TargetRefused(f"{host} is not among the allowed domains")
        if self.ports and (port or _PORTS[scheme]) not in self.ports:
            raise TargetRefused(f"port {port or _PORTS[scheme]} is not among the allowed ones")
        if self.longest_url is not None and length > self.longest_url:
            raise TargetRefused(f"the URL is longer than {self.longest_url} characters")


def read(section: Mapping[str, Any], environment: Mapping[str, str]) -> WebhookRules:
    """`environment` resolves `${{ env.NAME }}` in a header, if the name has the block's prefix."""
    if not section:
        return WebhookRules()
    policy = _typed(section, "url", dict, {})
    prefix = _typed(section, "env_prefix", str, _DEFAULT_PREFIX)
    headers = _typed(section, "headers", dict, {})
    longest = _typed(policy, "max_url_length", int, 0)
    return WebhookRules(
        headers={name: _header(name, value, prefix, environment) for name, value in headers.items()},
        https_only=_typed(policy, "require_https", bool, True),
        domains=tuple(str(domain).lower() for domain in _typed(policy, "allowed_domains", list, [])),
        ports=frozenset(_port(port) for port in _typed(policy, "allowed_ports", list, [])),
        longest_url=longest or None,
        refuses_loopback=_loopback(policy),
    )


def _loopback(policy: Mapping[str, Any]) -> bool:
    """Only the operator may allow loopback, so `false` could not be honoured."""
    refuses = _typed(policy, "disable_loopback", bool, None)
    if refuses is False:
        raise ConfigError(
            "webhooks.url.disable_loopback: false is not supported",
            hint="the operator names 127.0.0.0/8 in outbound_allow",
        )
    return bool(refuses)


def _header(name: str, value: Any, prefix: str, environment: Mapping[str, str]) -> str:
    def resolved(match: re.Match[str]) -> str:
        if not match[1].startswith(prefix):
            raise ConfigError(f"webhooks.headers.{name}: {match[1]} does not begin with {prefix}")
        if match[1] not in environment:
            raise ConfigError(f"webhooks.headers.{name}: {match[1]} is not set")
        return environment[match[1]]

    if not _HEADER_NAME.fullmatch(name) or not isinstance(value, str):
        raise ConfigError(
            f"webhooks.headers.{name} is not a header", hint='such as "x-api-key": "${{ env.LG_WEBHOOK_KEY }}"'
        )
    text = _TEMPLATE.sub(resolved, value)
    if not (text.isascii() and text.isprintable()):
        raise ConfigError(f"webhooks.headers.{name} has characters that are not allowed in a header")
    return text


def _matches(domain: str, host: str) -> bool:
    """`*.example.com` matches every name below, but not `example.com` itself."""
    return host.endswith(domain[1:]) if domain.startswith("*.") else host == domain


def _port(value: Any) -> int:
    if not isinstance(value, int) or not 0 < value < 65536:
        raise ConfigError(f"webhooks.url.allowed_ports holds {value!r}, which is not a port")
    return value


def _typed(section: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    value = section.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
        raise ConfigError(f"webhooks: {name} must be of type {kind.__name__}", hint="in langgraph.json")
    return value
