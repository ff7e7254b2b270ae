"""A database that 0.1.0 wrote, with work under way, continues under the current version.

`data/0.1.0.sql` is a dump of what `assent dev` of 0.1.0 left behind when it was killed (`kill -9`) with the graphs of
`tests/graphs_upgrade`: a payment that was approved and made, a payment that waits, an advisory question that waits, and
a run in the middle of its second step. The policy gives the payments ten years, so that the dump does not expire.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.app import open_services
from assent.identity.model.access import operator
from assent.kernel.store import migrations
from assent.settings import Settings
from tests.servers import dev_server, running
from tests.waiting import wait_until

DUMP = Path(__file__).parent / "data" / "0.1.0.sql"
GRAPHS = Path(__file__).parents[1] / "graphs_upgrade" / "langgraph.json"
KEY = "asnt_reviewer_HPpbdrD8rklKdmUDjf9SSPYhtC8hD8wi2RyNu_ur5m8"
"""The reviewer key that 0.1.0 printed at its first start. It opens nothing but this dump."""

PAID, PAYING, ASKING, COUNTING = (f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3, 4))


@pytest.fixture
def url(folder: Path) -> str:
    """A SQLite file as 0.1.0 left it."""
    connection = sqlite3.connect(folder / "assent.db")
    connection.executescript(DUMP.read_text("utf-8"))
    connection.close()
    return f"sqlite:///{folder}/assent.db"


async def chain_breaks(url: str) -> list[Any]:
    async with open_services(Settings(database=url)) as services:
        verdict = await services.audit.verify(operator())
    assert verdict.head.seq >= 12
    return verdict.breaks


async def test_database_of_0_1_0_is_migrated_and_its_audit_chain_verifies(url: str) -> None:
    assert migrations.current(url) == "0003"
    assert migrations.upgrade(url) == migrations.newest()
    assert await chain_breaks(url) == []


class Client:
    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def get(self, path: str) -> Any:
        response = self._http.get(path)
        assert response.status_code == 200, response.text
        return response.json()

    def item(self, thread_id: str) -> Any:
        [listed] = self.get(f"/api/inbox/items?filter=thread:{thread_id}")["items"]
        return self.get(f"/api/inbox/items/{listed['id']}")

    def decide(self, thread_id: str, **said: Any) -> None:
        item = self.item(thread_id)
        body = {"revision": item["revision"], "hash": item["hash"], **said}
        response = self._http.post(f"/api/inbox/items/{item['id']}/decision", json=body)
        assert response.status_code == 200, response.text

    def ended(self, thread_id: str) -> Any:
        """The values of the thread after its last run."""
        wait_until(self._has_status(thread_id, "idle"), f"the thread {thread_id} did not end")
        return self.get(f"/threads/{thread_id}/state")["values"]

    def _has_status(self, thread_id: str, status: str) -> Callable[[], bool]:
        return lambda: bool(self.get(f"/threads/{thread_id}")["status"] == status)


async def test_pending_items_and_running_thread_of_0_1_0_continue(url: str, folder: Path) -> None:
    log = folder / "log"
    server = dev_server(url, config=GRAPHS, UPGRADE_LOG=str(log))
    with running(server), httpx.Client(base_url=server.url, headers={"x-api-key": KEY}, timeout=30) as http:
        client = Client(http)
        assert (client.item(PAID)["status"], client.item(PAID)["execution"]) == ("APPROVED", "done")
        assert (client.item(PAYING)["status"], client.item(ASKING)["gated"]) == ("PENDING", False)
        client.decide(PAYING, verb="approve")
        client.decide(ASKING, verb="respond", message="blue")
        assert client.ended(PAYING) == {"amount": 20, "answer": "paid 20"}
        assert client.ended(ASKING) == {"answer": "blue"}
        assert client.ended(COUNTING) == {"steps": ["began", "ended"]}
        assert client.item(PAYING)["execution"] == "done"
        assert server.stop() == 0
    assert sorted(log.read_text("utf-8").split("\n")) == ["", "ended", "ending", "paid 20"]
    assert await chain_breaks(url) == []
