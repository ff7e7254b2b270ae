"""The timeline on real databases: one unbroken chain per tenant, whoever writes and however many at once."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, text

from assent.audit import service
from assent.audit.service import Audit, Verdict, verify_export
from assent.errors import Conflict, Invalid
from assent.identity.model.access import operator
from assent.kernel import events
from assent.kernel.store.tables import TENANT, event_payloads
from assent.kernel.store.transaction import Tx
from assent.kernel.timeline import Head
from tests.contract.stores import AnyStore, all_at_once, both_databases, outside
from tests.contract.tables import add, values

ACME = "acme"
AUDITOR = operator(ACME)

pytestmark = pytest.mark.promise("P9")


def tell(tx: Tx, what: str, payload: dict[str, Any] | None = None) -> int:
    return events.append(tx, "service:test", "test.told", what, payload or {"what": what}).seq


async def tell_all(store: AnyStore, subjects: Iterable[str]) -> None:
    for subject in subjects:
        await store.write(ACME, tell, subject)


async def reasons(store: AnyStore, anchor: Head | None = None) -> list[tuple[int, str]]:
    verdict = await Audit(store).verify(AUDITOR, anchor=anchor)
    return [(chain_break.seq, chain_break.reason) for chain_break in verdict.breaks]


async def export(store: AnyStore) -> list[str]:
    return [line async for line in Audit(store).export(AUDITOR)]


async def test_many_writers_make_one_unbroken_chain(store: AnyStore) -> None:
    told = await asyncio.gather(*(store.write(ACME, tell, f"s{number}") for number in range(200)))
    assert sorted(told) == list(range(1, 201))
    verdict = await Audit(store).verify(AUDITOR)
    assert (verdict.breaks, verdict.head.seq) == ([], 200)


async def test_each_tenant_has_a_chain_of_its_own(store: AnyStore) -> None:
    tenants = ["acme", "other", "third"]
    await asyncio.gather(*(store.write(tenant, tell, "x") for tenant in tenants * 20))
    verdicts = [await Audit(store).verify(operator(tenant)) for tenant in tenants]
    assert [(verdict.breaks, verdict.head.seq) for verdict in verdicts] == [([], 20)] * 3
    assert await Audit(store).tenants() == tenants


async def test_change_and_its_event_commit_together(store: AnyStore) -> None:
    def act(tx: Tx, name: str, *, fail: bool = False) -> None:
        add(tx, name)
        tell(tx, name)
        if fail:
            raise Conflict("refused")

    outcomes = await all_at_once(
        store,
        ACME,
        lambda tx: act(tx, "before"),
        lambda tx: act(tx, "half", fail=True),
        lambda tx: act(tx, "after"),
    )
    assert isinstance(outcomes[1], Conflict)
    told = await Audit(store).search(AUDITOR)
    assert {event.subject for event, _ in told.items} == set(await store.read(ACME, values)) == {"before", "after"}
    assert await reasons(store) == []


@pytest.mark.parametrize("length", [13, 14, 15])
async def test_a_chain_longer_than_a_chunk_is_walked_to_its_end(
    store: AnyStore, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(service, "_CHUNK", 7)
    await store.write(ACME, lambda tx: [tell(tx, f"s{number}") for number in range(length)])
    verdict = await Audit(store).verify(AUDITOR)
    assert (verdict.breaks, verdict.head.seq) == ([], length)
    assert len(await export(store)) == length + 1


async def test_chain_with_an_erased_payload_verifies(store: AnyStore) -> None:
    await tell_all(store, ["keep", "forget", "keep", "forget"])
    assert await Audit(store).erase(AUDITOR, "forget") == 2
    payloads = {event.seq: payload for event, payload in (await Audit(store).search(AUDITOR)).items}
    assert [seq for seq, payload in payloads.items() if payload is None] == [4, 2]
    assert await reasons(store) == []
    assert await Audit(store).erase(AUDITOR, "forget") == 0


async def test_a_payload_that_is_gone_without_an_erasure_is_found(store: AnyStore) -> None:
    await tell_all(store, ["a", "b", "c"])
    gone = delete(event_payloads).where(event_payloads.c.tenant_id == TENANT, event_payloads.c.seq == 2)
    await store.write(ACME, lambda tx: tx.change(gone))
    assert await reasons(store) == [(2, "its payload is missing and no erasure event covers it")]


async def test_chain_with_expired_payloads_verifies(store: AnyStore) -> None:
    await tell_all(store, ["old", "old"])
    store.clock_offset = timedelta(days=40)
    await tell_all(store, ["new"])
    assert await Audit(store).expire_payloads(AUDITOR, timedelta(days=30)) == 2
    assert await reasons(store) == []


CUT = "DELETE FROM {} WHERE seq > 3"


@both_databases
async def test_a_cut_off_tail_is_found_by_the_stored_head(database: str, store: AnyStore) -> None:
    await tell_all(store, "abcde")
    with outside(database).connect() as connection:
        for table in ("events", "event_payloads"):
            connection.execute(text(CUT.format(table)))
    assert await reasons(store) == [(5, "the stored head differs from the last event")]


@both_databases
async def test_cut_off_tail_with_a_rewritten_head_is_found_by_an_exported_head(database: str, store: AnyStore) -> None:
    await tell_all(store, "abcde")
    exported = (await Audit(store).verify(AUDITOR)).head
    with outside(database).connect() as connection:
        for table in ("events", "event_payloads"):
            connection.execute(text(CUT.format(table)))
        connection.execute(text("UPDATE event_heads SET seq = 3, hash = (SELECT hash FROM events WHERE seq = 3)"))
    assert await reasons(store) == []  # the control: nothing inside the database shows it
    assert await reasons(store, anchor=exported) == [(5, "events up to the exported head are missing")]


@both_databases
async def test_deleted_chain_is_found_by_an_exported_head(database: str, store: AnyStore) -> None:
    await tell_all(store, "abc")
    exported = (await Audit(store).verify(AUDITOR)).head
    with outside(database).connect() as connection:
        for table in ("events", "event_payloads", "event_heads"):
            connection.execute(text(f"DELETE FROM {table}"))
    assert await reasons(store, anchor=exported) == [(3, "events up to the exported head are missing")]


@both_databases
async def test_a_lost_head_does_not_hide_its_tenant(database: str, store: AnyStore) -> None:
    await tell_all(store, "abc")
    with outside(database).connect() as connection:
        connection.execute(text("DELETE FROM event_heads"))
    assert await Audit(store).tenants() == [ACME]
    assert await reasons(store) == [(3, "the stored head is missing")]


async def test_an_export_can_be_checked_without_the_database(store: AnyStore) -> None:
    await tell_all(store, ["a", "b"])
    await store.write(ACME, tell, "ünï \U0001f600", {"text": "line\nbreak \u2028 and NUL \x00", "number": 2**70})
    await Audit(store).erase(AUDITOR, "a")
    lines = await export(store)
    verdict = verify_export(lines)
    assert (verdict.tenant, verdict.head.seq, verdict.breaks) == (ACME, 4, [])
    assert verdict.head == (await Audit(store).verify(AUDITOR)).head


async def test_empty_timeline_verifies(store: AnyStore) -> None:
    assert await reasons(store) == []
    assert verify_export(await export(store)) == Verdict(ACME, Head(), [])
    with pytest.raises(Invalid, match="no head"):
        verify_export([])
