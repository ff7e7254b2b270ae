"""Headers of a request as configuration of the runs that it starts (`http.configurable_headers` in langgraph.json)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from assent.threads.run_requests import RunRequest

_SECRET = frozenset(
    {"x-api-key", "authorization", "cookie", "x-tenant-id", "x-service-key", "proxy-authorization", "set-cookie"}
)
"""Never copied: a graph's config is stored, and shown to callers."""

present: ContextVar[Mapping[str, str]] = ContextVar("configurable_headers", default={})  # noqa: B039 - never changed
"""The headers of the current request that the project selected."""


@dataclass(frozen=True, slots=True)
class HeaderRules:
    """Names of headers, with `*` for any text. A name that is excluded is not included."""

    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    def chosen(self, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
        named = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers)
        return {name: value for name, value in named if self._includes(name)}

    def _includes(self, name: str) -> bool:
        if name in _SECRET or any(_matches(name, pattern) for pattern in self.excludes):
            return False
        return any(_matches(name, pattern) for pattern in self.includes)


def with_headers(request: RunRequest) -> RunRequest:
    """The request with the selected headers of the current one."""
    headers = present.get()
    return replace(request, headers=headers) if headers else request


def _matches(name: str, pattern: str) -> bool:
    literal = pattern.lower().replace("[", "[[]").replace("?", "[?]")
    return fnmatchcase(name, literal)
