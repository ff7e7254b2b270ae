"""Principals and their rights.

Three kinds of principal: a *reviewer* is a person, an *agent* acts for a graph, a *service* is a program of the
operator. Rights are scopes, listed one by one; none implies another. The ceiling below enforces "an agent never
approves" on every surface: no key of an agent or a service can be given the scope `decide`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
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
    Kind.SERVICE: _AGENT | {Scope.POLICY_WRITE, Scope.AUDIT_READ, Scope.ADMIN},
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
    """The user that the project's auth handler returned; None for callers with a credential of Assent."""
    credential: str | None = field(default=None, compare=False, repr=False)
    """The hash of the caller's key or session, for work that outlives a request and has to check rights again."""

    @property
    def actor(self) -> str:
        """The principal's name in the timeline: `reviewer:<id>`. Ids only, so that names can be erased."""
        return f"{self.kind}:{self.id}"

    @property
    def is_person(self) -> bool:
        return self.kind is Kind.REVIEWER

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    def require(self, scope: Scope) -> None:
        if scope not in self.scopes:
            raise Forbidden(f"{self.kind} {self.name!r} lacks the scope {scope}", missing=[scope.value])

    def without(self, scope: Scope) -> Principal:
        return replace(self, scopes=self.scopes - {scope})

    def require_any(self, *scopes: Scope) -> None:
        """One of these scopes is enough."""
        if self.scopes.isdisjoint(scopes):
            raise Forbidden(f"{self.kind} {self.name!r} lacks the scopes {' or '.join(scopes)}", missing=list(scopes))


def is_program(actor: str) -> bool:
    return actor.startswith((f"{Kind.AGENT}:", f"{Kind.SERVICE}:"))


def parse_scopes(kind: Kind, names: Iterable[str]) -> frozenset[Scope]:
    """The named scopes, or the defaults of this kind where none is named; refuses scopes beyond the kind's ceiling."""
    scopes = frozenset(_parse_scope(name) for name in names) or DEFAULT_SCOPES[kind]
    beyond = sorted(scopes - SCOPE_CEILING[kind])
    if beyond:
        raise Forbidden(f"a key of kind {kind} can never hold {', '.join(beyond)}", missing=beyond)
    return scopes


def known_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """The valid scopes. A stored key may list one that was taken out of use; it has no effect."""
    return frozenset(scope for scope in Scope if scope in set(names))


def _parse_scope(name: str) -> Scope:
    try:
        return Scope(name)
    except ValueError:
        raise Invalid(f"unknown scope {name!r}", hint=f"one of: {', '.join(Scope)}") from None


def local_agent(tenant: str = DEFAULT_TENANT) -> Principal:
    """A caller of `assent dev` on loopback without a key: may run graphs, never decide."""
    scopes = frozenset({Scope.RUNS_WRITE, Scope.ITEMS_READ})
    return Principal(Kind.AGENT, "local-agent", "local-agent", tenant, scopes)


def operator(tenant: str = DEFAULT_TENANT) -> Principal:
    """The user of an `assent` command beside the database: the file system is the credential."""
    return Principal(Kind.SERVICE, "operator", "operator", tenant, SCOPE_CEILING[Kind.SERVICE])


def system(tenant: str) -> Principal:
    """This server, executing an earlier decision."""
    return Principal(Kind.REVIEWER, "system", "system", tenant, frozenset({Scope.RUNS_WRITE, Scope.DECIDE}))


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent that wants to make a call: its key's name and its id, both empty where a person started the run."""

    name: str = ""
    id: str = ""
