"""The local person: `assent demo` authenticates loopback callers without a key as this person."""

from __future__ import annotations

from assent.identity.model.access import DEFAULT_TENANT, ROLE_SCOPES, Kind, Principal, Role
from assent.identity.onboarding import LOCAL_USER
from assent.identity.rows import users
from assent.kernel.store.ports import Store


class LocalPerson:
    """The local person, created at the first start; None where the operator has disabled them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self) -> Principal | None:
        user = await self._store.read(DEFAULT_TENANT, users.by_name, LOCAL_USER)
        if user is None or user.disabled_at is not None:
            return None
        scopes = ROLE_SCOPES[user.role] & ROLE_SCOPES[Role.REVIEWER]
        return Principal(Kind.REVIEWER, user.id, user.name, DEFAULT_TENANT, scopes)
