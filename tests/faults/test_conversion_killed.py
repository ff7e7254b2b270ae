"""Checkpoints of an earlier release are converted by a command that is killed half-way: every state stays what it was,
and the next command converts the rest."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
from langgraph.checkpoint.base import WRITES_IDX_MAP, get_checkpoint_metadata
from sqlalchemy import text

from assent.kernel.store.transaction import Tx
from assent.runs.checkpoints.saver import SCOPE, Scope, StoreSaver, within
from assent.threads.rows import threads
from assent.threads.rows.state import checkpoints
from assent.threads.rows.state.checkpoints import Stored, StoredWrite
from tests.contract.histories import SERDE, TENANT, graph, stored
from tests.contract.stores import PATIENCE, AnyStore, both_databases, outside

THREADS = ("one", "two")
TURNS = 40


class WholeSaver(StoreSaver):
    """Stores as 0.2.0 did: the whole state in every checkpoint."""

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        named, facts = config["configurable"], orjson.dumps(get_checkpoint_metadata(config, metadata), default=str)
        parent, place = named.get("checkpoint_id"), (named["thread_id"], named.get("checkpoint_ns") or "")
        row = Stored(checkpoint["id"], place[1], parent, *SERDE.dumps_typed(checkpoint), facts.decode())
        await self._store.write(TENANT, checkpoints.put, place[0], row, None)
        address = {"thread_id": place[0], "checkpoint_ns": place[1], "checkpoint_id": checkpoint["id"]}
        return {"configurable": address}

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        rows = [
            StoredWrite(task_id, WRITES_IDX_MAP.get(channel, n), task_path, channel, *SERDE.dumps_typed(value))
            for n, (channel, value) in enumerate(writes)
        ]
        named, replace = config["configurable"], all(channel in WRITES_IDX_MAP for channel, _ in writes)
        place = (named["thread_id"], named.get("checkpoint_ns") or "", named["checkpoint_id"])
        await self._store.write(TENANT, checkpoints.put_writes, *place, rows, None, replace=replace)


async def converse(store: AnyStore, thread_id: str) -> None:
    """Long enough that a conversion can be killed; with subgraphs, edits and a question in the end."""
    app, scope = graph(WholeSaver(store, serde=SERDE)), Scope(TENANT)
    acts = ["say", "log", "edit", "fact", "value", "insert", "mutate", "remove"]
    for turn in range(TURNS):
        how = "ask" if turn == TURNS - 1 else acts[turn % len(acts)]
        with within(scope):
            config = {"configurable": {"thread_id": thread_id, SCOPE: scope}}
            said = {"act": (how, turn * 4 + (3 if turn % 5 == 0 else 0), ["x" * 40, turn]), "messages": ["text " * 60]}
            await app.ainvoke(said, config, durability="sync")


def make_thread(tx: Tx, thread_id: str) -> None:
    threads.insert(tx, thread_id, {})


def command(url: str, folder: Path, name: str = "convert") -> subprocess.Popen[str]:
    environment = {**os.environ, "ASSENT_LOG_LEVEL": "warning"}
    arguments = [sys.executable, "-m", "assent", "db", name, "--database", url]
    return subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder
    )


def counts(url: str) -> tuple[int, int, int]:
    """The rows of the earlier format, those in parts, and the bytes of all."""
    with outside(url).connect() as connection:
        old, new, size = 0, 0, 0
        for table, column in (("checkpoints", "checkpoint"), ("checkpoint_writes", "value")):
            rows = connection.execute(text(f"SELECT type, count(*), sum(length({column})) FROM {table} GROUP BY type"))
            for kind, number, bytes in rows:
                old, new, size = old + number * (kind == "msgpack"), new + number * (kind == "parts"), size + bytes
        parts = connection.execute(text("SELECT coalesce(sum(length(data)), 0) FROM checkpoint_parts")).scalar_one()
    return old, new, size + parts


@both_databases
async def test_conversion_that_is_killed_goes_on_and_keeps_every_state(
    store: AnyStore, database: str, folder: Path
) -> None:
    for thread_id in THREADS:
        await store.write(TENANT, make_thread, thread_id)
        await converse(store, thread_id)
    reader = StoreSaver(store, serde=SERDE)
    before, (rows, none, whole) = {name: await stored(reader, name) for name in THREADS}, counts(database)
    assert (rows > 400, none) == (True, 0)

    with command(database, folder) as killed:
        deadline = time.monotonic() + PATIENCE
        while counts(database)[1] == 0:
            assert killed.poll() is None, killed.communicate()[0]
            assert time.monotonic() < deadline
        killed.send_signal(signal.SIGKILL)
    left, done, _ = counts(database)
    assert min(left, done) > 0
    assert {name: await stored(StoreSaver(store, serde=SERDE), name) for name in THREADS} == before

    for said in (
        f"\n{left} checkpoints and writes converted, 0 damaged\n",
        "0 checkpoints and writes converted, 0 damaged\n",
    ):
        with command(database, folder) as finishing:
            output = finishing.communicate()[0]
        assert (finishing.returncode, output.endswith(said)) == (0, True), output
    old, new, shared = counts(database)
    assert (old, new) == (0, rows)
    assert shared < whole / 4
    assert {name: await stored(StoreSaver(store, serde=SERDE), name) for name in THREADS} == before


@both_databases
async def test_damaged_checkpoint_stays_as_it_is(store: AnyStore, database: str, folder: Path) -> None:
    await store.write(TENANT, make_thread, "one")
    await converse(store, "one")
    damage = Stored("0", "", None, "msgpack", b"\x82\xa1k\x93\x01", "{}")
    await store.write(TENANT, checkpoints.put, "one", damage, None)
    with command(database, folder) as converting:
        output = converting.communicate()[0]
    assert (converting.returncode, counts(database)[0]) == (1, 1), output
    assert "damaged, stays as it is: checkpoints tenant_id=acme thread_id=one ns= checkpoint_id=0: " in output
    assert output.endswith(", 1 damaged\n")
    row = await store.read(TENANT, checkpoints.at, "one", "", "0")
    assert row is not None
    assert row.checkpoint == damage.checkpoint
    with command(database, folder, "upgrade") as upgrading:
        output = upgrading.communicate()[0]
    assert (upgrading.returncode, "assent db convert" in output) == (0, True), output
