"""`assent backfill` as a command; tests/contract/test_backfill.py has its effects."""

import asyncio
from pathlib import Path

import pytest

from assent.kernel.store.drivers.sqlite import SqliteStore
from tests.cli.conftest import Assent
from tests.contract.test_backfill import pause


async def _paused(file: Path, *tenants: str) -> None:
    store = SqliteStore(f"sqlite:///{file}")
    await store.open()
    try:
        for number, tenant in enumerate(tenants):
            await store.write(tenant, pause, number)
    finally:
        await store.close()


@pytest.mark.promise("REVIEW-45")
def test_missing_items_are_counted_then_created_once(assent: Assent, folder: Path) -> None:
    assent("db", "upgrade")
    asyncio.run(_paused(folder / ".assent" / "assent.db", "default", "default", "acme"))
    dry = assent("backfill", "--dry-run", "--json")
    assert dry.json == {"threads": 3, "created": 3, "dry_run": True, "problems": []}
    assert "paused threads: 3 of 3" in dry.err
    assert assent("backfill", "--tenant", "acme", "--json").json["created"] == 1
    assert assent("backfill").out == "paused threads: 3, 2 items created\n"
    assert assent("backfill", "--json").json["created"] == 0


def test_backfill_without_a_database_exits_with_error(assent: Assent) -> None:
    refused = assent("backfill", "--database", "sqlite:///nothing.db")
    assert refused.code == 5
    assert "database not found" in refused.err
