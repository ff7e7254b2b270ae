"""The registry of agents on real databases: changes that are valid alone make no cycle together."""

from functools import partial

from assent.errors import Invalid
from assent.identity.agents import AgentChange, _change, _create
from assent.identity.model.access import operator
from assent.identity.model.agents import RegisteredAgent
from assent.identity.rows import agents
from tests.contract.stores import AnyStore, all_at_once, both_databases

ACME = "acme"
NAMES = ("a", "b", "c", "d")


@both_databases
async def test_concurrent_changes_make_no_cycle(store: AnyStore) -> None:
    for name in NAMES:
        await store.write(ACME, _create, operator(ACME), name, AgentChange())
    for _ in range(5):
        pairs = zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True)
        tries = [
            partial(_change, caller=operator(ACME), name_or_id=name, wanted=AgentChange(parent=parent))
            for name, parent in pairs
        ]
        outcomes = await all_at_once(store, ACME, *tries)
        assert len([outcome for outcome in outcomes if isinstance(outcome, RegisteredAgent)]) == len(NAMES) - 1
        assert len([outcome for outcome in outcomes if isinstance(outcome, Invalid)]) == 1
        for name in NAMES:
            await store.write(ACME, _change, operator(ACME), name, AgentChange(parent=None))
    assert await store.read("other", agents.named, "a") == []
