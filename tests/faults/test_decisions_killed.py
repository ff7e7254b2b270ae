"""`kill -9` around a decision and the call it allows: no confirmed decision is lost, and nothing is done twice.

People work through errands all the time: a thread whose agent wants to do something, the item that asks for it, a
decision under an Idempotency-Key that is sent again until it is confirmed, and, where a call was cut off, the answer
whether it was made, given by who has looked. Meanwhile processes are killed, mostly right after a decision was sent.
"""

from __future__ import annotations

import json
import queue
import random
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from assent.identity.model.access import Role
from tests.contract.stores import both_databases
from tests.faults.arena import doubted
from tests.graphs_gated.agents import stock_agent
from tests.graphs_gated.serving import FORKS, Site, make_keys, open_site
from tests.scoreboard import Count, RecordScore
from tests.waiting import wait_until

PAUSE = 0.004
"""Before and after the effect: the window in which a kill leaves a doubt."""

PEOPLE = 3
LOOK_EVERY = 0.025
SPREAD = 0.08
"""From a decision that is sent to the end of its run takes about half of it."""

STUCK_AFTER = 60.0
"""Beyond every lease: of a run (2 s here), of what is in the outbox (30 s, on Postgres)."""


@dataclass
class Asked:
    """One call that the agent wants to make, and what its person does about it."""

    tag: str
    verb: str
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    item: dict[str, Any] = field(default_factory=dict)
    confirmed: bool = False
    settled: list[str] = field(default_factory=list)


@dataclass
class Errand:
    calls: list[Asked]
    thread_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    taken: float = 0.0
    problem: str = ""


class Person(threading.Thread):
    """Does one errand after the other, until told to stop, and ends the last one."""

    def __init__(self, site: Site, key: str, log: Path, number: int, moments: queue.Queue[str]) -> None:
        super().__init__(daemon=True)
        self.errands: list[Errand] = []
        self.enough = threading.Event()
        self._site, self._log, self._number, self._moments = site, log, number, moments
        self._dice = random.Random(number)
        self._http = httpx.Client(base_url=site.url, headers={"x-api-key": key}, timeout=20)

    def run(self) -> None:
        with self._http:
            self._work()

    def _work(self) -> None:
        while not self.enough.is_set():
            self.errands.append(errand := self._next())
            began = time.monotonic()
            try:
                self._do(errand)
            except Exception as error:  # noqa: BLE001 - the test tells it, with the errand
                errand.problem = repr(error)
                return
            errand.taken = time.monotonic() - began

    def _next(self) -> Errand:
        """One call, or two at once."""
        name = f"p{self._number}-{len(self.errands)}"
        verbs = self._dice.choices(["approve", "reject"], [4, 1], k=self._dice.choice([1, 2]))
        return Errand([Asked(f"{name}-{index}", verb) for index, verb in enumerate(verbs)])

    def _do(self, errand: Errand) -> None:
        self._moments.put("create")
        self._ask("POST", "/threads", json={"thread_id": errand.thread_id, "if_exists": "do_nothing"})
        self._start_run(errand)
        self._await_items(errand)
        for call in errand.calls:
            self._decide(call)
        self._see_it_end(errand)

    def _start_run(self, errand: Errand) -> None:
        """It has no key of its own: whether the first try counted can be seen."""
        args = {"log": str(self._log), "pause": PAUSE}
        script = [{"name": "act", "args": {**args, "tag": call.tag}} for call in errand.calls]
        body = {"assistant_id": "gated", "input": {"messages": [{"role": "user", "content": json.dumps(script)}]}}
        while not self._ask("GET", f"/threads/{errand.thread_id}/runs"):
            try:
                self._http.post(f"/threads/{errand.thread_id}/runs", json=body)
            except httpx.TransportError:
                continue

    def _await_items(self, errand: Errand) -> None:
        deadline = time.monotonic() + STUCK_AFTER
        wanted = {"filter": f"thread:{errand.thread_id}"}
        while len(listed_items := self._ask("GET", "/api/inbox/items", params=wanted)["items"]) < len(errand.calls):
            assert time.monotonic() < deadline, "an item did not come"
            time.sleep(LOOK_EVERY)
        for item in map(self._item, listed_items):
            [call] = [call for call in errand.calls if call.tag == item["actions"][0]["args"]["tag"]]
            call.item = item

    def _item(self, known: dict[str, Any]) -> dict[str, Any]:
        item: dict[str, Any] = self._ask("GET", f"/api/inbox/items/{known['id']}")
        return item

    def _decide(self, call: Asked) -> None:
        seen = {"revision": call.item["revision"], "hash": call.item["hash"]}
        self._moments.put("decide")
        self._ask(
            "POST",
            f"/api/inbox/items/{call.item['id']}/decision",
            json={**seen, "verb": call.verb},
            headers={"Idempotency-Key": call.key},
        )
        call.confirmed = True

    def _see_it_end(self, errand: Errand) -> None:
        deadline = time.monotonic() + STUCK_AFTER
        while True:
            for call in errand.calls:
                call.item = self._item(call.item)
                if call.item["execution"] == "in_doubt":
                    self._settle(call)
            thread = self._ask("GET", f"/threads/{errand.thread_id}")
            if thread["status"] == "idle" and not thread["interrupts"]:
                return
            facts = [(call.item["status"], call.item["execution"]) for call in errand.calls]
            assert time.monotonic() < deadline, f"{errand.thread_id} is stuck: {facts}"
            time.sleep(LOOK_EVERY)

    def _settle(self, call: Asked) -> None:
        """As a person would: look whether it happened."""
        outcome = "done" if done(self._log)[call.tag] else "run_again"
        call.settled.append(outcome)
        try:
            self._ask(
                "POST",
                f"/api/inbox/items/{call.item['id']}/in-doubt",
                json={"outcome": outcome, "grant_id": doubted(call.item)},
                headers={"Idempotency-Key": f"{call.key}-{len(call.settled)}"},
            )
        except AssertionError as error:
            if "retry in a moment" not in str(error):
                raise
            call.settled.pop()  # the doubt is noted, and the question about it comes a moment later

    def _ask(self, method: str, path: str, **request: Any) -> Any:
        """Again and again, the very same request, until somebody answers."""
        deadline = time.monotonic() + STUCK_AFTER
        while True:
            assert time.monotonic() < deadline, f"{method} {path} is not answered"
            try:
                response = self._http.request(method, path, **request)
            except httpx.TransportError:
                time.sleep(LOOK_EVERY)
                continue
            if response.status_code < 500:
                assert response.status_code < 300, f"{method} {path}: {response.status_code} {response.text}"
                return response.json()
            time.sleep(0.05)


def problems(people: list[Person]) -> list[str]:
    return [errand.problem for person in people for errand in person.errands if errand.problem]


def done(log: Path) -> Counter[str]:
    lines = log.read_text().splitlines() if log.exists() else []
    return Counter(lines)


def await_call(log: Path) -> None:
    """Until the next one begins; its effect comes `PAUSE` later."""
    calls = Path(f"{log}.calls")
    before = calls.stat().st_size if calls.exists() else 0
    deadline = time.monotonic() + STUCK_AFTER
    while not calls.exists() or calls.stat().st_size == before:
        assert time.monotonic() < deadline, "no call was made"
        time.sleep(0.001)


class Killer:
    """Strikes at random: a while after a decision was sent, around the effect of a call, or while an errand begins."""

    def __init__(self, site: Site, log: Path, people: list[Person], moments: queue.Queue[str]) -> None:
        self._site, self._log, self._people, self._moments = site, log, people, moments
        self._dice = random.Random(23)

    def strike(self) -> None:
        victim = self._dice.choice(self._site.processes)
        kind = self._dice.choices(["decide", "call", "create"], [4, 4, 2])[0]
        spread = 3 * PAUSE if kind == "call" else SPREAD
        await_call(self._log) if kind == "call" else self._await_moment(kind)
        time.sleep(self._dice.uniform(0, spread))  # the random moment is the point of this test
        victim.kill()

    def _await_moment(self, wanted: str) -> None:
        while not self._moments.empty():
            self._moments.get_nowait()
        try:
            while self._moments.get(timeout=STUCK_AFTER) != wanted:
                pass
        except queue.Empty:
            raise AssertionError(f"nobody does anything any more: {problems(self._people)}") from None


@pytest.mark.scoreboard
@pytest.mark.promise("P2")
@pytest.mark.promise("P3")
@pytest.mark.timeout(3600)
@both_databases
def test_decisions_survive_kills(database: str, folder: Path, count: Count, record_score: RecordScore) -> None:
    on_postgres = database.startswith("postgres")
    kills = count(full=200, quick=2 if on_postgres else 6)
    log, moments = folder / "effects", queue.Queue[str]()
    keys = make_keys(database, *(f"person-{number}" for number in range(PEOPLE)))
    [auditor] = make_keys(database, "auditor", role=Role.ADMIN).values()
    with open_site(folder, database, workers=2 if on_postgres else 0) as site:
        people = [Person(site, key, log, number, moments) for number, key in enumerate(keys.values())]
        for person in people:
            person.start()
        killer = Killer(site, log, people, moments)
        for number in range(kills):
            killer.strike()
            site.start()
            wait_until(lambda: ended(people) > number, "nobody gets anything done", patience=STUCK_AFTER)  # noqa: B023
        for person in people:
            person.enough.set()
        for person in people:
            person.join(2 * STUCK_AFTER)
        verdict = httpx.get(f"{site.url}/api/audit/verification", headers={"x-api-key": auditor}, timeout=60).json()
    errands = [errand for person in people for errand in person.errands]
    where = "a server or one of two workers, Postgres" if on_postgres else "the server, SQLite"
    _judge(where, kills, errands, done(log), record_score)
    assert verdict["ok"], verdict


def ended(people: list[Person]) -> int:
    return sum(bool(errand.taken or errand.problem) for person in people for errand in person.errands)


def _judge(where: str, kills: int, errands: list[Errand], effects: Counter[str], record_score: RecordScore) -> None:
    stuck = [errand.problem for errand in errands if errand.problem]
    calls = [call for errand in errands for call in errand.calls if call.confirmed and not errand.problem]
    wanted = {"approve": ("APPROVED", 1), "reject": ("REJECTED", 0)}
    lost = [call for call in calls if (call.item["status"], min(effects[call.tag], 1)) != wanted[call.verb]]
    doubled = {tag: times for tag, times in effects.items() if times > 1}
    doubts = sum(bool(call.settled) for call in calls)
    longest = max((errand.taken for errand in errands), default=0)
    record_score(
        f"kill -9 around decide and run of a gated call: {where}",
        "0 lost decisions, 0 doubled effects, 0 stuck",
        f"{kills} kills, {len(calls)} decisions: {len(lost)} lost, {len(doubled)} doubled, {len(stuck)} stuck; "
        f"{doubts} in doubt and settled; the longest took {longest:.1f} s",
    )
    assert len(calls) >= kills
    assert not stuck, "\n".join(stuck)
    assert not lost
    assert not doubled


# The control


def plain(folder: str, first: int) -> None:
    """What a program with LangGraph alone does: it asks, sends the answer, and after a crash sends it again."""
    place = Path(folder)
    with SqliteSaver.from_conn_string(f"{folder}/checkpoints.db") as saver:
        agent = stock_agent(checkpointer=saver)
        (place / "ready").touch()
        for number in range(first, first + 1000):
            _finish_plainly(agent, str(place / "effects"), number)
            with (place / "finished").open("a") as finished:
                finished.write(f"{number}\n")


def _finish_plainly(agent: Any, log: str, number: int) -> None:
    config: Any = {"configurable": {"thread_id": f"thread-{number}"}}
    script = [{"name": "act", "args": {"log": log, "tag": f"t{number}", "pause": PAUSE}}]
    if not agent.get_state(config).values:
        agent.invoke({"messages": [("user", json.dumps(script))]}, config, durability="sync")
    while (state := agent.get_state(config)).next:
        resume = {question.id: {"type": "approve"} for question in state.interrupts}
        agent.invoke(Command(resume=resume) if resume else None, config, durability="sync")


@pytest.mark.scoreboard
@pytest.mark.timeout(1800)
def test_control_without_the_gate_effects_are_doubled(folder: Path, count: Count, record_score: RecordScore) -> None:
    """The control: plain LangGraph, killed likewise. A few kills may all miss; then there are more of them."""
    dice, kills, rounds = random.Random(23), 0, count(full=200, quick=4)
    while kills < rounds or (not _doubled(folder) and kills < 40):
        _kill_plain(folder, dice)
        kills += 1
    doubled = _doubled(folder)
    record_score(
        "kill -9 around decide and run, plain LangGraph, SQLite (the control)",
        "some doubled effects",
        f"{kills} kills, {len(done(folder / 'effects'))} calls: {doubled} doubled",
    )
    assert doubled > 0


def _kill_plain(folder: Path, dice: random.Random) -> None:
    ready, finished = folder / "ready", folder / "finished"
    ready.unlink(missing_ok=True)
    first = 1 + max(map(int, finished.read_text().split()), default=-1) if finished.exists() else 0
    process = FORKS.Process(target=plain, args=(str(folder), first), daemon=True)
    process.start()
    wait_until(ready.exists, "the process did not start")
    if dice.random() < 0.5:
        await_call(folder / "effects")
        time.sleep(dice.uniform(0, 3 * PAUSE))  # the random moment is the point of this test
    else:
        time.sleep(dice.uniform(0, 2 * SPREAD))
    process.kill()
    process.join(30)


def _doubled(folder: Path) -> int:
    return sum(times > 1 for times in done(folder / "effects").values())
