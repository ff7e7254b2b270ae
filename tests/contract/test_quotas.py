"""Quotas of a tenant on every store: what it may have is counted in its own rows, and in no one else's."""

from __future__ import annotations

import random
from typing import Any

import pytest

from assent.errors import QuotaExceeded, TooLarge
from assent.kernel.limits import Limits
from assent.kernel.quotas import quotas
from assent.kernel.quotas.usage import UsageCount
from assent.review import requests
from assent.review.decisions import decide
from assent.review.model.questions import Verb
from assent.review.requests import Request
from assent.threads.rows import threads
from assent.threads.rows.memory import items as memory
from assent.threads.rows.state import checkpoints, thread_storage
from assent.threads.rows.state.checkpoints import Stored
from tests.contract.asks import agent, confirmation, person, proposal, wait_for
from tests.contract.stores import AnyStore

ACME, OTHER = "acme", "other"
PAY = confirmation("c", "pay", {"n": 1})


async def new_thread(store: AnyStore, thread_id: str, *, tenant: str = ACME) -> None:
    await store.write(tenant, lambda tx: threads.insert(tx, thread_id, {}))


async def refused(store: AnyStore, function: Any, *args: Any, tenant: str = ACME) -> str:
    with pytest.raises(QuotaExceeded) as refusal:
        await store.write(tenant, function, *args)
    assert "quota_" in str(refusal.value.hint)
    return str(refusal.value.extra["quota"])


async def test_threads_are_counted_by_tenant_and_those_that_are_gone_are_counted_off(store: AnyStore) -> None:
    store.limits = Limits(threads=2)
    for name in ("a", "b"):
        await new_thread(store, name, tenant=ACME)
    assert await refused(store, lambda tx: threads.insert(tx, "c", {})) == "threads"
    await new_thread(store, "c", tenant=OTHER)
    await store.write(ACME, threads.remove, "a")
    await UsageCount(store).refresh()
    await new_thread(store, "c", tenant=ACME)


async def test_a_thread_that_is_there_already_counts_once(store: AnyStore) -> None:
    store.limits = Limits(threads=2)
    for _ in range(2):
        await new_thread(store, "a", tenant=ACME)
    await new_thread(store, "b", tenant=ACME)


async def test_pending_items_count_until_they_are_decided(store: AnyStore) -> None:
    store.limits = Limits(pending_items=1)
    [item] = await store.write(ACME, wait_for, "t", i=PAY)
    request = Request("note", "Look")
    assert await refused(store, requests.create, agent(ACME), request) == "pending_items"
    assert await refused(store, quotas.require_run) == "pending_items"
    await store.write(OTHER, requests.create, agent(OTHER), request)
    await store.write(ACME, decide.decide, person("ana", ACME), item.id, proposal(item, Verb.APPROVE))
    await store.write(ACME, requests.create, agent(ACME), request)


async def test_question_of_a_running_thread_is_kept_over_the_quota(store: AnyStore) -> None:
    store.limits = Limits(pending_items=1)
    for thread in ("t", "u"):
        assert len(await store.write(ACME, wait_for, thread, i=PAY)) == 1


async def test_stored_bytes_come_from_the_last_count(store: AnyStore) -> None:
    store.limits = Limits(stored_bytes=500)
    await new_thread(store, "t", tenant=ACME)
    stored = Stored("c1", "", None, "msgpack", b"x" * 600, "{}")
    await store.write(ACME, checkpoints.put, "t", stored, None)
    await store.write(ACME, quotas.require_run)
    await UsageCount(store).refresh()
    assert store.usage.stored_bytes[ACME] >= 600
    assert await refused(store, quotas.require_run) == "stored_bytes"
    await store.write(OTHER, quotas.require_run)


async def test_question_over_the_size_limit_makes_no_item(store: AnyStore) -> None:
    store.limits = Limits(item_bytes=1000)
    for payload in ({"text": "é" * 600}, {"text": "x" * 1200}):
        with pytest.raises(TooLarge, match="max_item_bytes"):
            await store.write(ACME, requests.create, agent(ACME), Request("note", "Look", payload=payload))
    await store.write(ACME, requests.create, agent(ACME), Request("note", "Look", payload={"text": "é" * 300}))


async def test_copies_of_a_history_count_at_once_and_have_a_largest_size(
    store: AnyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.limits = Limits(stored_bytes=1500)
    for name in ("a", "b", "c", "d"):
        await new_thread(store, name)
    await store.write(ACME, checkpoints.put, "a", Stored("c1", "", None, "msgpack", b"x" * 600, "{}"), None)
    for copy in ("b", "c"):
        await store.write(ACME, thread_storage.copy_checkpoints, "a", copy)
    assert await refused(store, thread_storage.copy_checkpoints, "a", "d") == "stored_bytes"
    store.limits = Limits()
    monkeypatch.setattr(thread_storage, "_LARGEST_COPY", 500)
    with pytest.raises(TooLarge, match="at most 500 are copied"):
        await store.write(ACME, thread_storage.copy_checkpoints, "a", "d")


async def test_stored_bytes_include_documents_outside_of_checkpoints(store: AnyStore) -> None:
    text = random.Random(1).randbytes(3000).hex()
    await store.write(ACME, lambda tx: threads.insert(tx, "t", {"text": text}))
    await UsageCount(store).refresh()
    before = store.usage.stored_bytes[ACME]
    assert before >= 3000
    await store.write(ACME, memory.put, [memory.Put(("a",), "k", {"text": text})])
    await store.write(ACME, requests.create, agent(ACME), Request("note", "Look", payload={"text": text}))
    await UsageCount(store).refresh()
    assert store.usage.stored_bytes[ACME] >= before + 6000
    assert store.usage.stored_bytes[OTHER] == 0


async def test_memory_over_the_quota_is_refused_and_can_be_deleted(store: AnyStore) -> None:
    store.limits = Limits(stored_bytes=500)
    await store.write(ACME, memory.put, [memory.Put(("a",), "k", {"text": "x" * 600})])
    store.usage.stored_bytes[ACME] = 600
    assert await refused(store, memory.put, [memory.Put(("a",), "l", {})]) == "stored_bytes"
    await store.write(ACME, memory.put, [memory.Put(("a",), "k", None)])


async def test_a_large_document_comes_back_as_it_was_stored(store: AnyStore) -> None:
    """On Postgres it is read in a thread."""
    document = {"text": "é" * 200_000, "number": 2**70, "list": [1.5, None, True] * 20_000}
    await store.write(ACME, lambda tx: threads.insert(tx, "t", document))
    thread_row = await store.read(ACME, threads.get, "t")
    assert thread_row is not None
    assert thread_row.metadata == document
