"""The people of a tenant and the rights of their roles."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from assent.identity.model.access import ROLE_SCOPES, Kind, Role, Scope


@dataclass(frozen=True, slots=True)
class User:
    id: str
    name: str
    email: str | None
    role: Role
    created_at: datetime
    disabled_at: datetime | None
    groups: frozenset[str] = frozenset()

    @property
    def actor(self) -> str:
        return f"{Kind.REVIEWER}:{self.id}"

    def may(self, scope: Scope) -> bool:
        """Whether the person's current role has this scope. A disabled person has none."""
        return self.disabled_at is None and scope in ROLE_SCOPES[self.role]
