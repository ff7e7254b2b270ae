"""Signed heads reveal a rewritten chain, also with recomputed hashes, by the public key alone."""

import asyncio
import base64
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assent.audit import anchors as anchoring
from assent.audit.anchors import Anchoring, HeadFile
from assent.audit.service import Audit, Heads, read_heads, verify_export
from assent.audit.signatures import AuditKey, PublicKeys
from assent.errors import AuditBroken
from assent.identity.model.access import operator
from assent.kernel import events
from assent.kernel.store.transaction import Tx
from assent.kernel.timeline import Break, Head, SignedHead
from assent.outbox import deliveries
from assent.outbox.model import AUDIT_HEAD, Failure
from assent.outbox.sender import Sender
from tests.contract.stores import PATIENCE, AnyStore, both_databases, opened, outside
from tests.contract.tampering import REWRITES, Dice, load, rewrite, save
from tests.scoreboard import Count, RecordScore

pytestmark = pytest.mark.promise("P9")

TENANTS = ["acme", "other"]
SEED = 20261116
KEY = AuditKey.derived(b"0123456789abcdef0123456789abcdef")
OTHER_KEY = AuditKey.derived(b"another secret, which nobody gave")
EVERY = timedelta(minutes=5)


def public(*keys: AuditKey) -> PublicKeys:
    return PublicKeys([key.public_pem().encode() for key in keys])


def happen(tx: Tx, length: int) -> None:
    for number in range(length):
        told = {"n": number, "text": ["", "plain", "ünï \U0001f600"][number % 3]}
        events.append(tx, f"reviewer:{number % 5}", f"item.kind{number % 3}", f"item:{number % 7}", told)


async def anchored(store: AnyStore, key: AuditKey = KEY) -> list[SignedHead]:
    """A head of each tenant, now."""
    return [await signed(store, tenant, key) for tenant in TENANTS]


async def signed(store: AnyStore, tenant: str, key: AuditKey = KEY) -> SignedHead:
    head = await Audit(store, key=lambda: key).head(operator(tenant))
    assert isinstance(head, SignedHead)
    return head


def lines(heads: list[SignedHead]) -> list[str]:
    return [json.dumps(head.to_json()) for head in heads]


async def breaks(store: AnyStore, heads: Heads | None = None) -> list[Break]:
    audit = Audit(store)
    there = {*await audit.tenants(), *(heads.tenants if heads else ())}
    verdicts = [await audit.verify(operator(tenant), heads=heads) for tenant in there]
    return [chain_break for verdict in verdicts for chain_break in verdict.breaks]


@both_databases
@pytest.mark.scoreboard
async def test_every_rewritten_chain_is_found(
    database: str, store: AnyStore, count: Count, record_score: RecordScore
) -> None:
    """The forger computes every hash again, so that without the signed heads nothing is to be seen."""
    kept: list[SignedHead] = []
    for length in (9, 12):
        for tenant in TENANTS:
            await store.write(tenant, happen, length)
        kept += await anchored(store)
    heads = read_heads(lines(kept), public(KEY))
    engine, dice = outside(database), Dice(SEED)
    original, done, unseen, missed = load(engine), Counter[str](), 0, []
    for _ in range(count(full=500, quick=60)):
        act, rows = rewrite(original, dice)
        save(engine, rows)
        done[act] += 1
        unseen += await breaks(store) == []
        if not await breaks(store, heads):
            missed.append(act)
    save(engine, original)
    assert await breaks(store, heads) == [], "the control: without a change it is green"
    assert unseen == done.total(), "the control: the chain alone says nothing"
    record_score(
        f"rewritten chains with every hash computed again, found by signed heads, {engine.dialect.name}",
        "100 % detected; 0 without the heads",
        f"{done.total() - len(missed)} of {done.total()}; {done.total() - unseen} without",
    )
    assert missed == []
    assert len(done) == len(REWRITES)


@both_databases
async def test_events_after_the_last_signed_head_are_reported_as_not_covered(store: AnyStore) -> None:
    await store.write("acme", happen, 5)
    heads = read_heads(lines([await signed(store, "acme")]), public(KEY))
    await store.write("acme", happen, 3)
    verdict = await Audit(store).verify(operator("acme"), heads=heads)
    assert (verdict.breaks, verdict.signed, verdict.signed_until, verdict.head.seq) == ([], 1, 5, 8)


@both_databases
async def test_removed_tenant_is_found(database: str, store: AnyStore) -> None:
    for tenant in TENANTS:
        await store.write(tenant, happen, 4)
    heads = read_heads(lines(await anchored(store)), public(KEY))
    engine = outside(database)
    save(engine, {name: [row for row in rows if row["tenant_id"] != "acme"] for name, rows in load(engine).items()})
    assert await breaks(store) == []
    assert await breaks(store, heads) == [Break(4, "events up to the signed head are missing")]


class TestASignedHead:
    HEAD = KEY.sign("acme", Head(3, "a" * 64), datetime(2026, 11, 16, tzinfo=UTC))

    @pytest.mark.parametrize(
        "change",
        [
            {"tenant": "other"},
            {"seq": 4},
            {"hash": "b" * 64},
            {"at": "2026-01-01T00:00:00.000000+00:00"},
            {"signature": ""},
            {"signature": "nonsense"},
            {"signature": base64.b64encode(b"x" * 64).decode()},
            {"key": OTHER_KEY.id},
        ],
    )
    def test_changed_head_has_a_wrong_signature(self, change: dict[str, Any]) -> None:
        good, forged = [self.HEAD.to_json() | more for more in ({}, change)]
        heads = read_heads([json.dumps(good)], public(KEY, OTHER_KEY))
        assert (len(heads.signed["acme"]), heads.flaws) == (1, {})
        heads = read_heads([json.dumps(forged)], public(KEY, OTHER_KEY))
        assert heads.signed == {}
        assert "wrong signature" in heads.flaws[forged["tenant"]][0].reason

    def test_head_signed_by_an_unknown_key_is_a_flaw(self) -> None:
        heads = read_heads(lines([self.HEAD]), public(OTHER_KEY))
        assert "whose public key is missing" in heads.flaws["acme"][0].reason

    def test_truncated_lines_are_counted_as_unreadable(self) -> None:
        whole = lines([self.HEAD])[0]
        heads = read_heads([whole[:40], whole, "", "[]", '{"tenant":1}'], public(KEY))
        assert (heads.signed, heads.flaws, heads.unreadable) == ({"acme": [self.HEAD]}, {}, 4)


@both_databases
async def test_after_a_key_rotation_signatures_of_both_keys_are_accepted(database: str, store: AnyStore) -> None:
    await store.write("acme", happen, 3)
    before = await signed(store, "acme")
    await store.write("acme", happen, 3)
    kept = lines([before, await signed(store, "acme", OTHER_KEY)])
    assert await breaks(store, read_heads(kept, public(KEY, OTHER_KEY))) == []
    assert await breaks(store, read_heads(kept, public(OTHER_KEY))) != [], "a head that cannot be checked is no proof"
    save(outside(database), rewrite(load(outside(database)), Dice(1))[1])
    assert await breaks(store, read_heads(kept, public(KEY, OTHER_KEY))) != []


@both_databases
async def test_an_export_carries_its_signature_and_is_checked_with_the_public_key_alone(
    database: str, store: AnyStore
) -> None:
    async def export(key: AuditKey | None) -> list[str]:
        return [line async for line in Audit(store, key=lambda: key).export(operator("acme"))]

    await store.write("acme", happen, 4)
    whole, unsigned = await export(KEY), await export(None)
    assert (verify_export(whole, keys=public(KEY)).breaks, verify_export(whole).breaks) == ([], [])
    assert verify_export(whole, keys=public(KEY)).signed_until == 4
    save(outside(database), rewrite(load(outside(database)), Dice(2))[1])
    forged = await export(OTHER_KEY)
    assert verify_export(forged).breaks == [], "the control: nothing is to be seen without the key"
    for lines_ in (forged, unsigned, [*forged[:-1], whole[-1]]):
        assert verify_export(lines_, keys=public(KEY)).breaks != []


class TestTheSchedule:
    async def test_each_new_head_is_written_to_the_file_once(self, store: AnyStore, tmp_path: Path) -> None:
        file = tmp_path / "heads.jsonl"
        anchors = Anchoring(store, lambda: KEY, file=file, url=None, every=EVERY)
        for expected in (2, 2, 4):
            if expected != len(await written(store, file)):
                for tenant in TENANTS:
                    await store.write(tenant, happen, 2)
            await anchors.sign_heads(KEY)
            assert len(await written(store, file)) == expected
            store.clock_offset += EVERY
        heads = read_heads(file.read_text().splitlines(), public(KEY))
        assert sorted((tenant, [event.seq for event in each]) for tenant, each in heads.signed.items()) == [
            ("acme", [2, 4]),
            ("other", [2, 4]),
        ]
        assert await breaks(store, heads) == []

    async def test_next_head_is_signed_only_after_the_interval(self, store: AnyStore, tmp_path: Path) -> None:
        anchors = Anchoring(store, lambda: KEY, file=tmp_path / "heads", url=None, every=EVERY)
        for _ in range(2):
            await store.write("acme", happen, 2)
            await anchors.sign_heads(KEY)
        assert len(await written(store, tmp_path / "heads")) == 1

    @both_databases
    async def test_only_one_of_several_processes_signs(self, database: str, store: AnyStore, tmp_path: Path) -> None:
        await store.write("acme", happen, 2)
        async with opened(database) as other:
            each = [
                Anchoring(each_store, lambda: KEY, file=tmp_path / "h", url=None, every=EVERY)
                for each_store in (store, other)
            ]
            await asyncio.gather(*(one.sign_heads(KEY) for one in each * 3))
        assert len(await written(store, tmp_path / "h")) == 1

    async def test_signed_head_is_sent_by_webhook(self, store: AnyStore) -> None:
        await store.write("acme", happen, 2)
        await Anchoring(store, lambda: KEY, file=None, url="https://witness.example/heads", every=EVERY).sign_heads(KEY)
        [sent] = (await store.read("acme", _deliveries)).items
        told = json.loads(sent.body)
        assert (sent.kind, sent.target) == ("webhook", "https://witness.example/heads")
        assert told.pop("event") == "audit.head"
        assert public(KEY).flaw(SignedHead.from_json(told)) is None

    @both_databases
    async def test_chain_that_lost_a_signed_head_is_not_signed_again(
        self, database: str, store: AnyStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        file = tmp_path / "heads"
        await store.write("acme", happen, 4)
        anchors = Anchoring(store, lambda: KEY, file=file, url=None, every=EVERY)
        await anchors.sign_heads(KEY)
        assert len(await written(store, file)) == 1
        await store.write("acme", happen, 1)
        original, dice = load(outside(database)), Dice(SEED)
        changed = (rewrite(original, dice)[1] for _ in range(100))
        save(outside(database), next(rows for rows in changed if rows["events"][:4] != original["events"][:4]))
        store.clock_offset += EVERY
        again = Anchoring(store, lambda: KEY, file=file, url=None, every=EVERY)
        again._seen = await asyncio.to_thread(anchoring._newest, file, KEY)
        for one in (anchors, again):
            await one.sign_heads(KEY)
        assert len(await written(store, file)) == 1
        assert "no longer contains the head" in str([getattr(record, "reason", "") for record in caplog.records])
        with pytest.raises(AuditBroken):
            await store.write("acme", anchoring.anchor, KEY, [], EVERY, anchors._seen["acme"])

    async def test_unwritable_file_is_retried(self, store: AnyStore, tmp_path: Path) -> None:
        await store.write("acme", happen, 2)
        missing = tmp_path / "not" / "there"
        await Anchoring(store, lambda: KEY, file=missing, url=None, every=EVERY).sign_heads(KEY)
        [sent] = (await store.read("acme", _deliveries)).items
        failure = await HeadFile(missing)(sent)
        assert failure == Failure("the file cannot be written: No such file or directory")

    async def test_truncated_line_does_not_damage_the_next(self, store: AnyStore, tmp_path: Path) -> None:
        file = tmp_path / "heads"
        file.write_text('{"tenant": "ac')
        await store.write("acme", happen, 2)
        await Anchoring(store, lambda: KEY, file=file, url=None, every=EVERY).sign_heads(KEY)
        await written(store, file)
        assert len(read_heads(file.read_text().splitlines(), public(KEY)).signed["acme"]) == 1


def _deliveries(tx: Tx) -> Any:
    return deliveries.page(tx, status=None, subject="audit", limit=10, cursor=None)


async def written(store: AnyStore, file: Path) -> list[str]:
    """The lines of the file once the outbox is empty."""
    sender = Sender(store, {AUDIT_HEAD: HeadFile(file)}, alone=False)
    await sender.open()
    try:
        async with asyncio.timeout(PATIENCE):
            while await store.read(None, _waiting):  # noqa: ASYNC110 - the sender runs in tasks of its own
                await asyncio.sleep(0.01)
    finally:
        await sender.close()
    return file.read_text().splitlines() if file.exists() else []


def _waiting(tx: Tx) -> bool:
    return bool(tx.sql("SELECT 1 FROM deliveries WHERE due_at IS NOT NULL").first())
