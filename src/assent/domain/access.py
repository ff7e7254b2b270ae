"""Who is calling and what they may do.

Three kinds of principal: a *reviewer* is a person, an *agent* acts for a graph, a *service* is a program of the
operator. Rights are scopes, listed one by one; none implies another. The ceiling below is what makes "an agent never
approves" hold on every surface: no key of an agent or a service can be given the scope `decide`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from assent.errors import Forbidden, Invalid

DEFAULT_TENANT = "default"


class Kind(StrEnum):
    REVIEWER = "reviewer"
    AGENT = "agent"
    SERVICE = "service"


class Scope(StrEnum):
    RUNS_WRITE = "runs:write"
    ITEMS_CREATE = "items:create"
    ITEMS_READ = "items:read"
    COMMENTS_WRITE = "comments:write"
    DECIDE = "decide"
    DECIDE_RELAY = "decide:relay"
    POLICY_WRITE = "policy:write"
    AUDIT_READ = "audit:read"
    ADMIN = "admin"


class Role(StrEnum):
    VIEWER = "viewer"
    REVIEWER = "reviewer"
    ADMIN = "admin"


_VIEWER = frozenset({Scope.ITEMS_READ})
_REVIEWER = _VIEWER | {Scope.RUNS_WRITE, Scope.ITEMS_CREATE, Scope.COMMENTS_WRITE, Scope.DECIDE}
_ADMIN = _REVIEWER | {Scope.POLICY_WRITE, Scope.AUDIT_READ, Scope.ADMIN}
_AGENT = frozenset({Scope.RUNS_WRITE, Scope.ITEMS_CREATE, Scope.ITEMS_READ, Scope.COMMENTS_WRITE})

ROLE_SCOPES: dict[Role, frozenset[Scope]] = {Role.VIEWER: _VIEWER, Role.REVIEWER: _REVIEWER, Role.ADMIN: _ADMIN}
SCOPE_CEILING: dict[Kind, frozenset[Scope]] = {
    Kind.REVIEWER: _ADMIN,
    Kind.AGENT: _AGENT,
    Kind.SERVICE: _AGENT | {Scope.DECIDE_RELAY, Scope.POLICY_WRITE, Scope.AUDIT_READ, Scope.ADMIN},
}
DEFAULT_SCOPES: dict[Kind, frozenset[Scope]] = {
    Kind.REVIEWER: _ADMIN,  # narrowed to the person's role each time the key is used
    Kind.AGENT: _AGENT,
    Kind.SERVICE: _AGENT,
}


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller, or the part of the system that acts by itself."""

    kind: Kind
    id: str
    name: str
    tenant: str
    scopes: frozenset[Scope]
    via: str | None = None
    user: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """What the project's auth handler said about its user; None for whoever has a credential of ours."""
    credential: str | None = field(default=None, compare=False, repr=False)
    """The key or session they came with, hashed: for what outlives a request, and has to ask again."""

    @property
    def actor(self) -> str:
        """How the timeline names this principal: `reviewer:<id>`. Ids only, so that names can be erased."""
        return f"{self.kind}:{self.id}"

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    def require(self, scope: Scope) -> None:
        if scope not in self.scopes:
            raise Forbidden(f"{self.kind} {self.name!r} lacks the scope {scope}", missing=[scope.value])

    def require_any(self, *scopes: Scope) -> None:
        """One of these scopes is enough."""
        if self.scopes.isdisjoint(scopes):
            raise Forbidden(f"{self.kind} {self.name!r} lacks the scopes {' or '.join(scopes)}", missing=list(scopes))


def parse_scopes(kind: Kind, names: Iterable[str]) -> frozenset[Scope]:
    """The named scopes, or the usual ones of this kind where none is named; beyond the kind's ceiling is refused."""
    scopes = frozenset(_parse_scope(name) for name in names) or DEFAULT_SCOPES[kind]
    beyond = sorted(scopes - SCOPE_CEILING[kind])
    if beyond:
        raise Forbidden(f"a key of kind {kind} can never hold {', '.join(beyond)}", missing=beyond)
    return scopes


def _parse_scope(name: str) -> Scope:
    try:
        return Scope(name)
    except ValueError:
        raise Invalid(f"unknown scope {name!r}", hint=f"one of: {', '.join(Scope)}") from None


def local_agent(tenant: str = DEFAULT_TENANT) -> Principal:
    """Whoever calls `assent dev` on loopback without a key: may run graphs, never decide."""
    scopes = frozenset({Scope.RUNS_WRITE, Scope.ITEMS_READ})
    return Principal(Kind.AGENT, "local-agent", "local-agent", tenant, scopes)


def operator(tenant: str = DEFAULT_TENANT) -> Principal:
    """Whoever runs an `assent` command beside the database: the file system is the credential."""
    return Principal(Kind.SERVICE, "operator", "operator", tenant, SCOPE_CEILING[Kind.SERVICE])


def system(tenant: str) -> Principal:
    """This server itself, where it carries out what was decided already."""
    return Principal(Kind.REVIEWER, "system", "system", tenant, frozenset({Scope.RUNS_WRITE, Scope.DECIDE}))
