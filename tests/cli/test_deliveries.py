"""`assent deliveries`: what failed is seen, and sent again by the server that runs."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from assent.domain.deliveries import WEBHOOK, Failure
from assent.store import deliveries
from assent.store.sqlite import SqliteStore
from assent.store.transaction import Tx
from tests.cli.conftest import Assent


def leave(tx: Tx, number: int) -> str:
    return deliveries.add(tx, WEBHOOK, subject=f"run:{number}", target=f"http://10.0.0.{number}/", body="{}")


async def _made(file: Path, count: int) -> list[str]:
    """Deliveries that have failed for good."""
    store = SqliteStore(f"sqlite:///{file}")
    await store.open()
    try:
        ids = [await store.write("default", leave, number) for number in range(1, count + 1)]
        claimed, _ = await store.write(
            None, deliveries.claim, leases={WEBHOOK: timedelta(minutes=1)}, busy=(), limit=count
        )
        for one in claimed:
            await store.write("default", deliveries.settle, one, Failure("no way", final=True), dice=0)
        return ids
    finally:
        await store.close()


@pytest.fixture
def failed(folder: Path) -> list[str]:
    return asyncio.run(_made(folder / ".assent" / "assent.db", 3))


def statuses(assent: Assent) -> dict[str, str]:
    return {row["id"]: row["status"] for row in assent("deliveries", "list", "--json").json}


def test_nothing_yet(assent: Assent) -> None:
    assert "Nothing here" in assent("deliveries", "list").out


def test_what_failed_is_listed_with_its_reason(assent: Assent, failed: list[str]) -> None:
    shown = assent("deliveries", "list", "--status", "failed").out
    assert all(one in shown for one in failed)
    assert "no way" in shown
    assert "Nothing here" in assent("deliveries", "list", "--status", "delivered").out


def test_one_is_sent_again(assent: Assent, failed: list[str]) -> None:
    result = assent("deliveries", "retry", failed[0])
    assert result.out == f"will be sent again: {failed[0]} (run:1)\n"
    assert statuses(assent) == {failed[0]: "pending", failed[1]: "failed", failed[2]: "failed"}
    assert assent("deliveries", "retry", failed[0]).code == 6
    assert assent("deliveries", "retry", "none").code == 5


def test_all_are_sent_again(assent: Assent, failed: list[str]) -> None:
    assert assent("deliveries", "retry", "--all-failed").code == 0
    assert set(statuses(assent).values()) == {"pending"}


@pytest.mark.parametrize("arguments", [(), ("some-id", "--all-failed")])
def test_it_is_said_which(assent: Assent, arguments: tuple[str, ...]) -> None:
    assert assent("deliveries", "retry", *arguments).code == 2


def test_the_secret_is_the_same_each_time_and_tells_where_it_comes_from(
    assent: Assent, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = assent("deliveries", "secret")
    assert first.out.startswith("whsec_")
    assert "assent.key" in first.err
    assert assent("deliveries", "secret").out == first.out
    assert assent("deliveries", "secret", "--tenant", "other").out != first.out
    monkeypatch.setenv("ASSENT_SECRET_KEY", "0123456789abcdef0123456789abcdef")
    other = assent("deliveries", "secret")
    assert other.out != first.out
    assert "ASSENT_SECRET_KEY" in other.err
