"""The first start on someone's own machine: a person who can sign in, and a key of each kind to hand out."""

from __future__ import annotations

from dataclasses import dataclass

from assent.domain.access import Kind, Role, operator
from assent.errors import AlreadyExists, Conflict, NotFound
from assent.services.access import Access
from assent.services.keys import Keys
from assent.services.users import Users

LOCAL_USER = "local"


@dataclass(frozen=True, slots=True)
class Welcome:
    """What a start prints. The keys come with the first start only; a sign-in link comes with each."""

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
        except AlreadyExists:  # disabled on purpose, with everyone else
            return Welcome(None)
        agent = await self._keys.create(operator(), kind=Kind.AGENT, name="local agent")
        reviewer = await self._keys.create(operator(), kind=Kind.REVIEWER, name="local reviewer", user=LOCAL_USER)
        return Welcome(await self._link(), agent.secret, reviewer.secret)

    async def _link(self) -> str | None:
        """None where the operator has set up people of their own: then `assent users login-link` is the way."""
        try:
            return await self._users.login_link(operator(), LOCAL_USER)
        except (NotFound, Conflict):  # not here, or disabled
            return None
