"""`assent deliveries`: what failed is seen, and sent again by the server that runs."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from assent.kernel.store.drivers.sqlite import SqliteStore
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.outbox.model import WEBHOOK, Failure
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
        for delivery in claimed:
            await store.write("default", deliveries.settle, delivery, Failure("no way", final=True), dice=0)
        return ids
    finally:
        await store.close()


@pytest.fixture
def failed(folder: Path) -> list[str]:
    return asyncio.run(_made(folder / ".assent" / "assent.db", 3))


def statuses(assent: Assent) -> dict[str, str]:
    return {row["id"]: row["status"] for row in assent("deliveries", "list", "--json").json}


def test_empty_outbox_is_reported(assent: Assent) -> None:
    assert "No deliveries yet" in assent("deliveries", "list").out


def test_failed_delivery_is_listed_with_its_reason(assent: Assent, failed: list[str]) -> None:
    shown = assent("deliveries", "list", "--status", "failed").out
    assert all(one in shown for one in failed)
    assert "no way" in shown
    assert "No deliveries yet" in assent("deliveries", "list", "--status", "delivered").out


def test_single_delivery_is_sent_again(assent: Assent, failed: list[str]) -> None:
    result = assent("deliveries", "retry", failed[0])
    assert result.out == f"will be sent again: {failed[0]} (run:1)\n"
    assert statuses(assent) == {failed[0]: "pending", failed[1]: "failed", failed[2]: "failed"}
    assert assent("deliveries", "retry", failed[0]).code == 6
    assert assent("deliveries", "retry", "none").code == 5


def test_all_failed_deliveries_are_sent_again(assent: Assent, failed: list[str]) -> None:
    assert assent("deliveries", "retry", "--all-failed").code == 0
    assert set(statuses(assent).values()) == {"pending"}


@pytest.mark.parametrize("arguments", [(), ("some-id", "--all-failed")])
def test_retry_without_exactly_one_selection_exits_with_2(assent: Assent, arguments: tuple[str, ...]) -> None:
    assert assent("deliveries", "retry", *arguments).code == 2


def test_secret_is_stable_and_shows_its_origin(assent: Assent, monkeypatch: pytest.MonkeyPatch) -> None:
    first = assent("deliveries", "secret")
    assert first.out.startswith("whsec_")
    assert "assent.key" in first.err
    assert assent("deliveries", "secret").out == first.out
    assert assent("deliveries", "secret", "--tenant", "other").out != first.out
    monkeypatch.setenv("ASSENT_SECRET_KEY", "0123456789abcdef0123456789abcdef")
    other = assent("deliveries", "secret")
    assert other.out != first.out
    assert "ASSENT_SECRET_KEY" in other.err
