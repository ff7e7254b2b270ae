"""Keys and the last administrator on real databases: who a key stands for, when it stops, and who comes first."""

from datetime import timedelta
from functools import partial

import pytest

from assent.errors import Conflict, Unauthenticated
from assent.identity import users
from assent.identity.access import Access
from assent.identity.keys import Keys
from assent.identity.model.access import ROLE_SCOPES, Kind, Principal, Role, operator
from assent.identity.model.keys import KeyState
from assent.identity.users import Users
from assent.review.threads.retraction import Retraction
from assent.runs import cancellation
from tests.contract.stores import AnyStore, all_at_once

RETRACTION = Retraction(cancellation.interrupt)

ACME = "acme"
OPERATOR = operator(ACME)


def access(store: AnyStore) -> Access:
    """One that remembers nothing from before."""
    return Access(store, session_lifetime=timedelta(days=7))


async def actor(store: AnyStore, secret: str) -> str:
    return (await access(store).by_key(secret)).actor


@pytest.mark.parametrize("kind", [Kind.AGENT, Kind.SERVICE])
async def test_an_agent_is_the_same_with_each_of_its_keys(store: AnyStore, kind: Kind) -> None:
    keys = Keys(store)
    first = await keys.create(OPERATOR, kind=kind, name="bot")
    further = [await keys.create(OPERATOR, kind=kind, agent=named) for named in ("bot", first.key.id)]
    rotated = await keys.rotate(OPERATOR, first.key.id)
    again = await keys.rotate(OPERATOR, rotated.key.id)
    actors = {await actor(store, one.secret) for one in (first, *further, rotated, again)}
    assert actors == {f"{kind}:{first.key.id}"}
    other = await keys.create(OPERATOR, kind=kind, name="bot")
    assert await actor(store, other.secret) not in actors, "the control: the same name alone is nobody's identity"
    with pytest.raises(Conflict, match="are named"):
        await keys.create(OPERATOR, kind=kind, agent="bot")


async def test_a_rotated_key_is_refused_once_the_overlap_is_over(store: AnyStore) -> None:
    keys = Keys(store)
    old = await keys.create(OPERATOR, kind=Kind.AGENT, name="bot", lifetime=None)
    new = await keys.rotate(OPERATOR, old.key.id, overlap=timedelta(hours=1))
    store.clock_offset += timedelta(minutes=59)
    assert await actor(store, old.secret) == await actor(store, new.secret)
    store.clock_offset += timedelta(minutes=1)
    with pytest.raises(Unauthenticated):
        await actor(store, old.secret)
    assert [item.state for item in (await keys.list(OPERATOR)).items] == [KeyState.ACTIVE, KeyState.EXPIRED]
    store.clock_offset += keys.lifetime
    with pytest.raises(Unauthenticated):
        await actor(store, new.secret)


async def test_a_persons_sessions_end_with_the_key_that_was_rotated(store: AnyStore) -> None:
    await Users(store, RETRACTION).create(OPERATOR, name="ana", role=Role.REVIEWER)
    old = await Keys(store).create(OPERATOR, kind=Kind.REVIEWER, name="laptop", user="ana")
    _, token = await access(store).sign_in_by_key(old.secret)
    await Keys(store).rotate(OPERATOR, old.key.id, overlap=timedelta(hours=1))
    assert (await access(store).by_session(token)).name == "ana"
    store.clock_offset += timedelta(hours=1)
    with pytest.raises(Unauthenticated):
        await access(store).by_session(token)


async def test_of_two_administrators_who_remove_each_other_one_remains(store: AnyStore) -> None:
    for round in range(5):
        tenant = f"tenant {round}"
        made = [
            await Users(store, RETRACTION).create(operator(tenant), name=name, role=Role.ADMIN)
            for name in ("ana", "ben")
        ]
        each = [Principal(Kind.REVIEWER, entry.id, entry.name, tenant, ROLE_SCOPES[Role.ADMIN]) for entry in made]

        acts = [
            partial(
                users._change,
                reviews=RETRACTION,
                caller=caller,
                name=other.name,
                role=Role.REVIEWER,
                disabled=None,
                groups=None,
            )
            for caller, other in zip(each, reversed(made), strict=True)
        ]
        outcomes = await all_at_once(store, tenant, *acts)
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 1, outcomes
        left = (await Users(store, RETRACTION).list(operator(tenant))).items
        assert [one.role for one in left].count(Role.ADMIN) == 1
