"""Many people decide about the same things at once: of every item there is one winner, everyone else hears who won, and
what happens is what the winner said."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Role
from assent.kernel.store.transaction import Tx
from assent.review.decisions import decide
from assent.review.model import lifecycle
from assent.review.model.items import Item, ItemStatus
from assent.review.model.lifecycle import Decided
from assent.review.rows import decisions
from assent.settings import Mode
from tests.api.house import Builder
from tests.contract.stores import both_databases
from tests.graphs_gated.serving import GRAPHS, make_keys, open_site
from tests.scoreboard import Count, RecordScore
from tests.waiting import until

VERBS = ("approve", "reject", "respond", "edit")
Waiting = dict[str, Any]


class Table:
    """Items that wait, and the people around them."""

    def __init__(self, people: list[httpx.AsyncClient], log: Path) -> None:
        self.people = people
        self.log = log
        self.items: list[Waiting] = []

    async def set(self, count: int) -> None:
        script = {"log": str(self.log), "pause": 0}
        for number in range(count):
            call = [{"name": "act", "args": {**script, "tag": f"t{number}"}}]
            body = {"assistant_id": "gated", "input": {"messages": [{"role": "user", "content": json.dumps(call)}]}}
            response = await self.people[0].post("/runs", json={**body, "on_completion": "keep"})
            assert response.status_code == 200, response.text
        await until(lambda: self._all_there(count), "not every item came", patience=120)

    async def _all_there(self, count: int) -> bool:
        response = await self.people[0].get("/api/inbox/items", params={"filter": "is:pending", "limit": 100})
        self.items = response.json()["items"]
        return len(self.items) == count

    async def race(self) -> list[tuple[Waiting, str, httpx.Response]]:
        """Everybody decides about everything, in an order of their own."""
        return [one for each in await asyncio.gather(*map(self._decide_all, self.people)) for one in each]

    async def _decide_all(self, person: httpx.AsyncClient) -> list[tuple[Waiting, str, httpx.Response]]:
        number = self.people.index(person)
        dice = random.Random(number)
        over_langgraph = number % 8 == 7
        said = []
        for item in dice.sample(self.items, len(self.items)):
            verb = dice.choice(VERBS)
            answer = self._answer if over_langgraph else self._decide
            said.append((item, verb, await answer(person, item, verb)))
        return said

    async def _decide(self, person: httpx.AsyncClient, item: Waiting, verb: str) -> httpx.Response:
        more: dict[str, dict[str, Any]] = {"edit": {"args": self._edited(item)}, "respond": {"message": "no need"}}
        action = {"key": item["key"], "verb": verb, **more.get(verb, {})}
        body = {"revision": item["revision"], "hash": item["hash"], "actions": [action]}
        return await person.post(f"/api/inbox/items/{item['id']}/decision", json=body)

    async def _answer(self, person: httpx.AsyncClient, item: Waiting, verb: str) -> httpx.Response:
        edited = {"edited_action": {"name": "act", "args": self._edited(item)}}
        more: dict[str, dict[str, Any]] = {"edit": edited, "respond": {"message": "no need"}}
        answer = {"type": verb, **more.get(verb, {})}
        source = item["source"]
        body = {"assistant_id": "gated", "command": {"resume": {source["interrupt_id"]: answer}}}
        return await person.post(f"/threads/{source['thread_id']}/runs", json=body)

    def _edited(self, item: Waiting) -> dict[str, Any]:
        return {**item["args"], "tag": f"{item['args']['tag']}-edited"}

    async def know_all(self) -> None:
        """What the list does not tell: the arguments."""
        for item in self.items:
            [action] = (await self.people[0].get(f"/api/inbox/items/{item['id']}")).json()["actions"]
            item |= {"key": action["key"], "args": action["args"]}

    async def at_rest(self) -> bool:
        counts = [
            await self.people[0].post("/threads/count", json={"status": interrupt})
            for interrupt in ("busy", "interrupted")
        ]
        return all(response.json() == 0 for response in counts)

    def effects(self) -> Counter[str]:
        return Counter(self.log.read_text().splitlines() if self.log.exists() else [])


def expected(said: list[tuple[Waiting, str]]) -> Counter[str]:
    tags = {"approve": "{}", "edit": "{}-edited"}
    return Counter(tags[verb].format(item["args"]["tag"]) for item, verb in said if verb in tags)


@pytest.mark.scoreboard
@pytest.mark.promise("P4")
@pytest.mark.timeout(900)
@both_databases
async def test_every_item_has_one_winner(database: str, folder: Path, count: Count, record_score: RecordScore) -> None:
    crowd, waiting = count(full=32, quick=16), count(full=50, quick=10)
    keys = await asyncio.to_thread(make_keys, database, *(f"person-{number}" for number in range(crowd)))
    [auditor] = (await asyncio.to_thread(lambda: make_keys(database, "auditor", role=Role.ADMIN))).values()
    with open_site(folder, database) as site:
        async with AsyncExitStack() as stack:
            people = [await stack.enter_async_context(caller(site.url, key)) for key in keys.values()]
            audit = await stack.enter_async_context(caller(site.url, auditor))
            table = Table(people, folder / "effects")
            await table.set(waiting)
            await table.know_all()
            said = await table.race()
            await until(table.at_rest, "not every run came to its end", patience=60)
            told = [await _decided(audit, item) for item in table.items]
            verdict = (await audit.get("/api/audit/verification")).json()
    won = [(item, verb) for item, verb, response in said if response.status_code == 200]
    losers = [response for _, _, response in said if response.status_code != 200]
    record_score(
        f"{crowd} people decide about {waiting} items at once, {'Postgres' if 'postgres' in database else 'SQLite'}",
        "one winner each, the rest 409 with the winner, one audit row each",
        f"{len(said)} decisions: {len(won)} winners, {Counter(loser.status_code for loser in losers)[409]} × 409",
    )
    assert Counter(item["id"] for item, _ in won) == Counter(item["id"] for item in table.items)
    assert [loser.text for loser in losers if loser.status_code != 409] == []
    assert [loser.text for loser in losers if not loser.json().get("decision")] == []
    assert told == [1] * waiting
    assert table.effects() == expected(won)
    assert verdict["ok"]


def caller(url: str, key: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, headers={"x-api-key": key}, timeout=60)


async def _decided(audit: httpx.AsyncClient, item: Waiting) -> int:
    """How often the timeline says that it was decided."""
    response = await audit.get("/api/audit/events", params={"subject": f"item:{item['id']}", "limit": 100})
    return sum(event["kind"] in ("item.approved", "item.rejected") for event in response.json()["items"])


@pytest.fixture
async def build(folder: Path, migrated_file: Path) -> AsyncIterator[Builder]:
    async with AsyncExitStack() as stack:
        yield Builder(folder, migrated_file, stack)


@pytest.mark.scoreboard
async def test_control_without_the_comparison_an_item_has_several_winners(
    build: Builder, folder: Path, monkeypatch: pytest.MonkeyPatch, record_score: RecordScore
) -> None:
    """The control: nobody looks whether an item still waits, and the database does not mind two decisions."""

    def anything_goes(tx: Tx, item: Item, revision: int, hash: str, **named: Any) -> None:
        decisions.dismiss(tx, item.id)

    monkeypatch.setattr(decide, "require_open", anything_goes)
    monkeypatch.setattr(Item, "moved", lambda self, status: status)
    anywhere = lifecycle.LIFE[Decided]._replace(starts=frozenset(ItemStatus))
    monkeypatch.setattr(lifecycle, "LIFE", {**lifecycle.LIFE, Decided: anywhere})
    house = await build(Mode.DEV, config=GRAPHS)
    people = [house.client(await house.person(f"person-{number}")) for number in range(8)]
    table = Table(people, folder / "effects")
    await table.set(5)
    await table.know_all()
    won = [response for _, _, response in await table.race() if response.status_code == 200]
    record_score(
        "32 people decide at once: 8 of them about 5 items without the compare-and-set (the control)",
        "more winners than items",
        f"{len(won)} for 5",
    )
    assert len(won) > 5


async def test_two_calls_of_one_turn_decided_concurrently_both_run(build: Builder, folder: Path) -> None:
    """The first answer's run makes both calls, because both have their grant by then."""
    house = await build(Mode.DEV, config=GRAPHS)
    ana, log = house.client(await house.person("ana")), folder / "effects"
    calls = [{"name": "act", "args": {"log": str(log), "tag": tag}} for tag in ("one", "two")]
    thread = (await ana.post("/threads", json={})).json()["thread_id"]
    body = {"assistant_id": "gated", "input": {"messages": [{"role": "user", "content": json.dumps(calls)}]}}
    await ana.post(f"/threads/{thread}/runs/wait", json=body)
    items = (await ana.get("/api/inbox/items", params={"filter": f"thread:{thread}"})).json()["items"]
    said = [{"id": item["id"], "revision": item["revision"], "hash": item["hash"]} for item in items]
    response = await ana.post("/api/inbox/bulk", json={"items": said, "verb": "approve"})
    assert [result["ok"] for result in response.json()["results"]] == [True, True]

    async def ended() -> bool:
        rows = (await ana.get(f"/threads/{thread}/runs")).json()
        return len(rows) == 3 and all(row["status"] not in ("pending", "running") for row in rows)

    await until(ended, "the runs do not end")
    assert sorted(log.read_text().split()) == ["one", "two"]
    assert (await ana.get(f"/threads/{thread}")).json()["status"] == "idle"
