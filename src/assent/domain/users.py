"""The people of a tenant: who they are and what their role lets them do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from assent.domain.access import Role


@dataclass(frozen=True, slots=True)
class User:
    id: str
    name: str
    email: str | None
    role: Role
    created_at: datetime
    disabled_at: datetime | None
    groups: frozenset[str] = frozenset()
