"""API keys as principals hold them: kind, scopes, owner, and when they stop working."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from assent.domain.access import ROLE_SCOPES, Kind, Principal, Role, Scope

PREFIX = "asnt"


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

    def usable(self, now: datetime) -> bool:
        expired = self.expires_at is not None and self.expires_at <= now
        return not (expired or self.revoked_at or self.owner_disabled)

    def principal(self) -> Principal:
        """A person's key acts with what the person's role allows *now*, however the key was made."""
        if self.kind is Kind.REVIEWER and self.user_id and self.role:
            scopes = self.scopes & ROLE_SCOPES[self.role]
            return Principal(self.kind, self.user_id, self.owner or self.name, self.tenant, scopes, via=self.id)
        return Principal(self.kind, self.id, self.name, self.tenant, self.scopes)
