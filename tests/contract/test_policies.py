"""A policy is put in force by one at a time, however many servers start together."""

import asyncio

from assent.domain.access import operator
from assent.domain.policies import parse
from assent.services.policies import BUILT_IN, Policies
from assent.store import policies as rows
from tests.contract.stores import AnyStore


async def test_servers_that_start_together_put_one_policy_in_force(store: AnyStore) -> None:
    policies = Policies(store)
    await asyncio.gather(*(policies.provide("default", parse('default = "never"'), BUILT_IN) for _ in range(12)))
    assert (await store.read("default", rows.in_force)).number == 1


async def test_policies_put_at_once_get_a_version_each(store: AnyStore) -> None:
    policies = Policies(store)
    texts = [f'default = "ask"\n[[rules]]\nname = "n{one}"\ntool = "t{one}"\nthen = "never"' for one in range(12)]
    put = await asyncio.gather(*(policies.put(operator(), text) for text in texts))
    assert sorted(one.number for one in put) == list(range(1, 13))
