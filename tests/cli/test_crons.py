"""`assent crons`: what starts by itself is listed with what it missed, and deleted."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from assent.identity import mandates
from assent.identity.model.access import operator
from assent.kernel.ids import new_id
from assent.kernel.store.drivers.sqlite import SqliteStore
from assent.kernel.store.transaction import Tx
from assent.threads.model.assistants import graphs_own
from assent.threads.model.crons import Completion, Cron
from assent.threads.model.threads import Visibility
from assent.threads.rows import assistants, crons
from tests.cli.conftest import Assent


def add(tx: Tx, schedule: str) -> str:
    own = graphs_own("agent", "agent", None, tx.now())
    assistants.insert(tx, own)
    cron = Cron(
        id=new_id(),
        assistant_id=own.id,
        thread_id=None,
        owner="agent:a",
        visibility=Visibility.PRIVATE,
        mandate=mandates.record(operator(tx.tenant)),
        schedule=schedule,
        timezone="Europe/Paris",
        end_time=None,
        enabled=True,
        on_run_completed=Completion.DELETE,
        payload={"assistant_id": own.id},
        metadata={},
        next_run_at=None,
        created_at=tx.now(),
        updated_at=tx.now(),
        missed=2,
        problem="the API key of its author was revoked",
    )
    crons.insert(tx, replace(cron, next_run_at=cron.following(tx.now())))
    return cron.id


async def _made(file: Path) -> list[str]:
    store = SqliteStore(f"sqlite:///{file}")
    await store.open()
    try:
        return [await store.write("default", add, schedule) for schedule in ("0 9 * * *", "@hourly")]
    finally:
        await store.close()


@pytest.fixture
def made(folder: Path) -> list[str]:
    return asyncio.run(_made(folder / ".assent" / "assent.db"))


def test_no_crons_are_reported(assent: Assent) -> None:
    assert "No crons." in assent("crons", "list").out


def test_crons_are_listed_with_what_they_missed(assent: Assent, made: list[str]) -> None:
    rows = assent("crons", "list", "--json").json
    assert [(row["id"], row["schedule"]) for row in rows] == [(made[1], "@hourly"), (made[0], "0 9 * * *")]
    assert {(row["missed"], row["problem"], row["timezone"]) for row in rows} == {
        (2, "the API key of its author was revoked", "Europe/Paris")
    }
    assert "@hourly" in assent("crons", "list").out
    assert assent("crons", "list", "--tenant", "other", "--json").json == []


def test_crons_are_deleted_by_id(assent: Assent, made: list[str]) -> None:
    assert f"deleted: {made[0]}" in assent("crons", "delete", made[0]).out
    assert [row["id"] for row in assent("crons", "list", "--json").json] == [made[1]]


def test_unknown_cron_exits_with_error(assent: Assent, made: list[str]) -> None:
    for cron_id, words in ((made[0][:-1] + "x", "must be a UUID"), (new_id(), "not found")):
        refused = assent("crons", "delete", cron_id)
        assert refused.code != 0
        assert words in refused.err
    assert len(assent("crons", "list", "--json").json) == 2
