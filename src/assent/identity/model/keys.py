"""API keys of principals: kind, scopes, owner, and expiry."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum

from assent.identity.model.access import ROLE_SCOPES, Kind, Principal, Role, Scope

PREFIX = "asnt"
EXPIRES_SOON = timedelta(days=14)
LONGEST_OVERLAP = timedelta(days=30)


class Lifetime(Enum):
    """The default lifetime of a key."""

    USUAL = "usual"


class KeyState(StrEnum):
    """`expiring` works, and stops within two weeks."""

    ACTIVE = "active"
    EXPIRING = "expiring"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class ApiKey:
    id: str
    tenant: str
    kind: Kind
    name: str
    user_id: str | None
    owner: str | None
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    role: Role | None
    owner_disabled: bool
    principal_id: str
    """The key's principal: a person, or the agent or service that its first key created."""
    read_at: datetime

    @property
    def state(self) -> KeyState:
        """As of when it was read, regardless of whether its person is disabled."""
        if self.revoked_at is not None:
            return KeyState.REVOKED
        left = None if self.expires_at is None else self.expires_at - self.read_at
        if left is None or left > EXPIRES_SOON:
            return KeyState.ACTIVE
        return KeyState.EXPIRING if left > timedelta() else KeyState.EXPIRED

    def usable(self, now: datetime) -> bool:
        expired = self.expires_at is not None and self.expires_at <= now
        return not (expired or self.revoked_at or self.owner_disabled)

    def principal(self) -> Principal:
        """A person's key has the rights of the person's *current* role, whatever it was when the key was made."""
        if self.kind is Kind.REVIEWER and self.user_id and self.role:
            scopes = self.scopes & ROLE_SCOPES[self.role]
            return Principal(self.kind, self.user_id, self.owner or self.name, self.tenant, scopes, via=self.id)
        return Principal(self.kind, self.principal_id, self.name, self.tenant, self.scopes)
