"""Many writers at once: nothing is lost, nothing is counted twice, from one process or from several."""

import asyncio

from sqlalchemy import bindparam, update

from assent.kernel.store.tables import TENANT
from assent.kernel.store.transaction import Tx
from tests.contract.stores import AnyStore, both_databases, opened
from tests.contract.tables import add, compare_and_set, counters, values

ACME = "acme"
_INCREMENT = (
    update(counters)
    .where(counters.c.tenant_id == TENANT, counters.c.name == bindparam("which"))
    .values(value=counters.c.value + 1)
)


def increment(tx: Tx, name: str) -> None:
    tx.change(_INCREMENT, which=name)


async def test_hundreds_of_concurrent_writes_are_all_stored(store: AnyStore) -> None:
    names = [f"n{number:03}" for number in range(400)]
    told = await asyncio.gather(*(store.write(ACME, add, name) for name in names))
    assert told == names
    assert list(await store.read(ACME, values)) == names


async def test_concurrent_increments_are_neither_lost_nor_doubled(store: AnyStore) -> None:
    await store.write(ACME, add, "x")
    await asyncio.gather(*(store.write(ACME, increment, "x") for _ in range(200)))
    assert await store.read(ACME, values) == {"x": 200}


async def test_read_after_a_confirmed_write_sees_it(store: AnyStore) -> None:
    async def write_then_read(name: str) -> bool:
        await store.write(ACME, add, name)
        return name in await store.read(ACME, values)

    assert all(await asyncio.gather(*(write_then_read(f"n{number}") for number in range(50))))


@both_databases
async def test_two_processes_write_to_one_database_without_loss(database: str, store: AnyStore) -> None:
    """The command line beside a running server."""
    await store.write(ACME, add, "x")
    await store.write(ACME, add, "won")
    async with opened(database) as beside:
        pairs = [(at, each) for each in range(30) for at in (store, beside)]
        await asyncio.gather(*(at.write(ACME, increment, "x") for at, _ in pairs))
        won = await asyncio.gather(*(at.write(ACME, compare_and_set, "won", 0, each + 1) for at, each in pairs))
    assert sorted(won) == [False] * 59 + [True]
    assert (await store.read(ACME, values))["x"] == 60
