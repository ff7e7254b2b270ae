"""The first start on a developer's machine: creates a person who can sign in, and a key of each kind."""

from __future__ import annotations

from dataclasses import dataclass

from assent.errors import AlreadyExists, Conflict, NotFound
from assent.identity.access import Access
from assent.identity.keys import Keys
from assent.identity.model.access import Kind, Role, operator
from assent.identity.users import Users

LOCAL_USER = "local"


@dataclass(frozen=True, slots=True)
class Welcome:
    """The output of a start. The keys come with the first start only; a sign-in link comes with each."""

    login_token: str | None
    agent_key: str | None = None
    reviewer_key: str | None = None


class Onboarding:
    def __init__(self, access: Access, users: Users, keys: Keys) -> None:
        self._access = access
        self._users = users
        self._keys = keys

    async def welcome(self) -> Welcome:
        if await self._access.configured():
            return Welcome(await self._link())
        try:
            await self._users.create(operator(), name=LOCAL_USER, role=Role.ADMIN)
        except AlreadyExists:  # disabled by the operator, like all others
            return Welcome(None)
        forever = None  # on a developer's machine keys work until they are revoked
        agent = await self._keys.create(operator(), kind=Kind.AGENT, name="local agent", lifetime=forever)
        reviewer = await self._keys.create(
            operator(), kind=Kind.REVIEWER, name="local reviewer", user=LOCAL_USER, lifetime=forever
        )
        return Welcome(await self._link(), agent.secret, reviewer.secret)

    async def _link(self) -> str | None:
        """None where the operator has created other people: they use `assent users login-link`."""
        try:
            return await self._users.login_link(operator(), LOCAL_USER)
        except (NotFound, Conflict):  # missing or disabled
            return None
