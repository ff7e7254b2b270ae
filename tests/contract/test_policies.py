"""A policy is put in force by one at a time, however many servers start together."""

import asyncio

from assent.identity.model.access import operator
from assent.review.model.policies import parse
from assent.review.policy.policies import BUILT_IN, Policies
from assent.review.rows import policies as rows
from tests.contract.stores import AnyStore


async def test_servers_that_start_together_put_one_policy_in_force(store: AnyStore) -> None:
    policies = Policies(store)
    await asyncio.gather(*(policies.provide("default", parse('default = "never"'), BUILT_IN) for _ in range(12)))
    assert (await store.read("default", rows.in_force)).number == 1


async def test_concurrent_policies_get_one_version_each(store: AnyStore) -> None:
    policies = Policies(store)
    texts = [
        f'default = "ask"\n[[rules]]\nname = "n{number}"\ntool = "t{number}"\nthen = "never"' for number in range(12)
    ]
    put = await asyncio.gather(*(policies.put(operator(), text) for text in texts))
    assert sorted(one.number for one in put) == list(range(1, 13))
