"""The service and the command find edited, deleted, swapped and reordered rows of the timeline."""

import asyncio
import json
import logging
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import text

from assent.audit.service import Audit, verify_export
from assent.errors import Invalid
from assent.identity.model.access import operator
from assent.kernel import events
from assent.kernel.store.transaction import Tx
from assent.kernel.timeline import Break
from assent.surfaces.cli.main import main
from tests.contract.stores import AnyStore, both_databases, only_sqlite, outside
from tests.contract.tampering import ACTS, Dice, load, save, tamper
from tests.scoreboard import Count, RecordScore

Verify = Callable[..., Awaitable[int]]

TENANTS = ["acme", "other"]
SEED = 20261115

pytestmark = pytest.mark.promise("P9")


def tell_a_story(tx: Tx, length: int) -> None:
    """Events as they come: repeated subjects, equal payloads, other scripts, and some erased."""
    for number in range(length):
        payload = {"n": number // 3, "text": ["", "plain", "ünï \U0001f600", "2\u202e1"][number % 4], "big": 2**70}
        events.append(tx, f"reviewer:{number % 5}", f"item.kind{number % 3}", f"item:{number % 7}", payload)
    events.erase(tx, "service:operator", events.erasable(tx, subject="item:3"), reason="asked for")


async def write_stories(store: AnyStore) -> None:
    for tenant, length in zip(TENANTS, [21, 9], strict=True):
        await store.write(tenant, tell_a_story, length)


async def breaks(store: AnyStore) -> list[Break]:
    audit = Audit(store)
    verdicts = [await audit.verify(operator(tenant)) for tenant in await audit.tenants()]
    return [chain_break for verdict in verdicts for chain_break in verdict.breaks]


@pytest.fixture
def verify(database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verify:
    """`assent audit verify`, in this process but outside of this event loop; gives back its exit code."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", root.handlers)
    monkeypatch.setattr(root, "level", root.level)

    async def verify(*options: str) -> int:
        monkeypatch.setattr(sys, "argv", ["assent", "audit", "verify", "--database", database, *options])
        return await asyncio.to_thread(_exit_code)

    return verify


def _exit_code() -> int:
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@both_databases
@pytest.mark.scoreboard
async def test_every_tampering_is_found(
    database: str, store: AnyStore, verify: Verify, count: Count, record_score: RecordScore
) -> None:
    """Through the service each time, and through the command, which takes longer, now and then."""
    await write_stories(store)
    engine, dice = outside(database), Dice(SEED)
    original, done, missed = load(engine), Counter[str](), []
    for number in range(count(full=500, quick=60)):
        act, rows = tamper(original, dice)
        save(engine, rows)
        done[act] += 1
        if not await breaks(store) or (number % 6 == 0 and await verify() != 8):
            missed.append(act)
    save(engine, original)
    assert (await breaks(store), await verify()) == ([], 0)  # the control: without an edit it is green
    record_score(
        f"random edits, deletions and swaps of the audit table, {engine.dialect.name}",
        "100 % detected",
        f"{done.total() - len(missed)} of {done.total()}",
    )
    assert missed == []
    assert len(done) > len(ACTS) / 2


@only_sqlite
async def test_verify_in_another_process_finds_the_position(database: str, store: AnyStore) -> None:
    await store.write("acme", tell_a_story, 9)
    with outside(database).connect() as connection:
        connection.execute(text("UPDATE events SET actor = 'reviewer:innocent' WHERE seq = 4"))
    command = [sys.executable, "-m", "assent", "audit", "verify", "--database", database]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: ASYNC221
    assert (ended.returncode, "event 4: was changed after it was written" in ended.stdout) == (8, True)


@both_databases
async def test_the_command_finds_a_vanished_timeline_by_its_exported_head(
    database: str, store: AnyStore, verify: Verify
) -> None:
    await write_stories(store)
    head = (await Audit(store).verify(operator("acme"))).head
    kept = ["--tenant", "acme", "--head", f"{head.seq}:{head.hash}"]
    assert await verify(*kept) == 0
    engine = outside(database)
    save(engine, {name: [row for row in rows if row["tenant_id"] != "acme"] for name, rows in load(engine).items()})
    assert await verify() == 0  # the control: nothing inside the database tells of it
    assert await verify(*kept) == 8
    save(engine, {name: [] for name in load(engine)})
    assert await verify() == 0
    assert await verify(*kept[2:]) == 8  # nobody is left to name


UNREADABLE = [
    "UPDATE events SET at = 'long ago' WHERE seq = 3",
    "UPDATE events SET at = 9e300 WHERE seq = 3",
    "UPDATE events SET kind = x'ff00' WHERE seq = 3",
    "UPDATE events SET kind = CAST(x'ff' AS TEXT) WHERE seq = 3",
    "UPDATE events SET hash = 5 WHERE seq = 3",
    "UPDATE events SET seq = 'three' WHERE seq = 3",
    "UPDATE events SET seq = 3.5 WHERE seq = 3",
    "UPDATE event_payloads SET payload = x'7b7d' WHERE seq = 3",
    "UPDATE event_heads SET seq = 'many'",
    "UPDATE event_heads SET hash = x'00'",
]


@only_sqlite
@pytest.mark.parametrize("statement", UNREADABLE)
async def test_unreadable_row_is_reported_as_a_break(database: str, store: AnyStore, statement: str) -> None:
    """A SQLite column takes any type."""
    await store.write("acme", tell_a_story, 9)
    with outside(database).connect() as connection:
        connection.execute(text(statement))
    assert await breaks(store)


async def export(store: AnyStore, tenant: str) -> list[str]:
    return [line async for line in Audit(store).export(operator(tenant))]


@both_databases
async def test_every_edit_of_an_export_is_found(store: AnyStore, count: Count) -> None:
    await write_stories(store)
    lines = await export(store, "acme")
    assert verify_export(lines).breaks == []  # the control
    dice = Dice(SEED + 2)
    for _ in range(count(full=2000, quick=300)):
        edited = _edited(lines, dice)
        assert not _passes(edited), edited


def _passes(lines: list[str]) -> bool:
    try:
        return verify_export(lines).breaks == []
    except Invalid:
        return False


def _edited(lines: list[str], dice: random.Random) -> list[str]:
    """The export after one change that alters what it says."""
    while True:
        edited = dice.choice(EXPORT_EDITS)(list(lines), dice)
        if _meaning(edited) != _meaning(lines):
            return edited


def _meaning(lines: list[str]) -> list[object]:
    try:
        return [json.loads(line) for line in lines]
    except ValueError:
        return [None]


def _drop_a_line(lines: list[str], dice: random.Random) -> list[str]:
    del lines[dice.randrange(len(lines))]
    return lines


def _swap_two_lines(lines: list[str], dice: random.Random) -> list[str]:
    first, other = dice.sample(range(len(lines)), 2)
    lines[first], lines[other] = lines[other], lines[first]
    return lines


def _repeat_a_line(lines: list[str], dice: random.Random) -> list[str]:
    lines.insert(dice.randrange(len(lines)), dice.choice(lines[:-1]))
    return lines


def _change_a_character(lines: list[str], dice: random.Random) -> list[str]:
    number = dice.randrange(len(lines))
    place = dice.randrange(len(lines[number]))
    lines[number] = lines[number][:place] + dice.choice('abc0129"\\{}[],:- ') + lines[number][place + 1 :]
    return lines


def _change_a_field(lines: list[str], dice: random.Random) -> list[str]:
    number = dice.randrange(len(lines))
    record = json.loads(lines[number])
    inner = record.get("head", record)
    inner[dice.choice(list(inner))] = dice.choice([None, 0, 1, True, 1.5, "", "x", "\ud800", [], {}, -1, 2**80])
    lines[number] = json.dumps(record)
    return lines


EXPORT_EDITS = [_drop_a_line, _swap_two_lines, _repeat_a_line, _change_a_character, _change_a_field]
