"""One agent's key, or nobody's, cannot stall the server for everybody else: other callers wait 250 ms at most."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest

from assent.app import open_services
from assent.identity.model.access import Kind, Role, operator
from assent.kernel import canonical
from assent.review.model.grants import GATE, MARKS
from assent.review.model.schemas import flaws as schema_flaws
from assent.review.model.schemas import validation as schemas
from assent.settings import Settings
from tests.contract.stores import both_databases, only_sqlite
from tests.faults.flood import Flood
from tests.faults.probe import MOST_MS, Lag, measured
from tests.graphs_gated.serving import GRAPHS, Site
from tests.scoreboard import RecordScore

BODY_BYTES = 8 * 1024 * 1024
LISTS = b"[" + b"[]," * 3_000_000 + b"[]]"
LETTERS = "é" * 1_000_000
PATTERNS = {f"p{number}": {"type": "string", "pattern": rf"\w{{{80 + number % 40}}}x{number}"} for number in range(250)}
SCHEMA = {"type": "object", "properties": PATTERNS}
INBOX = Path(__file__).parents[1] / "graphs_inbox" / "langgraph.json"
FORM = {"key": "q", "message": "Fill this in", "mode": "form"}
TRIES = 3


@dataclass(frozen=True)
class Served:
    url: str
    agent: str
    reviewer: str

    def http(self, key: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"x-api-key": key}, timeout=60, trust_env=False)

    def request(self, **asked: object) -> httpx.Response:
        """What an agent asks people through the API."""
        with self.http(self.agent) as agent:
            return agent.post("/api/inbox/items", json={"type": "note", "title": "Look at this", **asked})

    def answer(self, schema: object) -> httpx.Response:
        """An agent asks for a form to be filled in, and a person does so."""
        with self.http(self.agent) as agent, self.http(self.reviewer) as person:
            thread = agent.post("/threads", json={}).json()["thread_id"]
            asked = {"type": "mcp_elicitation", "tool_name": "form", "requests": [{**FORM, "requested_schema": schema}]}
            run = {"assistant_id": "asking", "input": {"questions": [asked]}}
            agent.post(f"/threads/{thread}/runs/wait", json=run).raise_for_status()
            said = {"action": "accept", "content": dict.fromkeys(PATTERNS, "a")}
            answer = {"assistant_id": "asking", "command": {"resume": {"responses": {"q": said}}}}
            return person.post(f"/threads/{thread}/runs", json=answer)

    def page(self, item_id: str) -> httpx.Response:
        with self.http(self.reviewer) as browser:
            browser.post("/api/session", json={"credential": self.reviewer}).raise_for_status()
            del browser.headers["x-api-key"]
            return browser.get(f"/inbox/{item_id}", headers={"accept": "text/html"})


@contextmanager
def serving(folder: Path, database: str, **settings: str) -> Iterator[Served]:
    agent, reviewer = asyncio.run(_keys(database))
    site = Site(folder, database, mode="serve")
    site.server.arguments = [str(INBOX) if argument == str(GRAPHS) else argument for argument in site.server.arguments]
    site.server.environment = {**site.server.environment, "ASSENT_LOG_LEVEL": "warning", **settings}
    try:
        site.start()
        yield Served(site.url, agent, reviewer)
    finally:
        site.stop()


async def _keys(database: str) -> tuple[str, str]:
    name = f"ana-{uuid4()}"
    async with open_services(Settings(database=database)) as services:
        agent = await services.keys.create(operator(), kind=Kind.AGENT, name="an agent", scopes=())
        await services.users.create(operator(), name=name, role=Role.REVIEWER)
        person = await services.keys.create(operator(), kind=Kind.REVIEWER, name="a reviewer's", user=name, scopes=())
        return agent.secret, person.secret


def least_lag(served: Served, attack: Callable[[], object], most_ms: float) -> Lag:
    """Of a few tries: what the attack does to others, it does every time; what a busy machine does, it does not."""
    found = []
    for _ in range(TRIES):
        with measured(served.url, served.reviewer) as lag:
            attack()
        assert lag.statuses.keys() == {"200"}, lag
        found.append(lag)
        if lag.longest_ms <= most_ms:
            break
    return min(found, key=lambda one: one.longest_ms)


@both_databases
@pytest.mark.scoreboard
def test_body_of_millions_of_lists_delays_nobody(
    database: str, folder: Path, record_score: RecordScore, request: pytest.FixtureRequest, most_ms: float
) -> None:
    with serving(folder, database) as served, served.http(served.agent) as agent:

        def attack() -> None:
            answer = agent.post("/api/inbox/items", content=LISTS[:BODY_BYTES])
            assert answer.status_code in (413, 422), answer.text
            answer = agent.post("/threads", content=LISTS[: BODY_BYTES - 1] + b"]")
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
            assert "max_body_values" in answer.json()["hint"]

        lag = least_lag(served, attack, most_ms)
    _score(record_score, request, "an 8 MB body of empty lists", lag)
    assert lag.longest_ms <= most_ms


@only_sqlite
def test_control_without_the_limit_of_values_everybody_waits_for_such_a_body(database: str, folder: Path) -> None:
    unlimited = {"ASSENT_MAX_BODY_VALUES": "100000000", "ASSENT_MAX_BODY_BYTES": "33554432"}
    with serving(folder, database, **unlimited) as served, served.http(served.agent) as agent:
        with measured(served.url, served.reviewer) as lag:
            agent.post("/threads", content=b"[" + b"[]," * 6_900_000 + b"[]]")
        assert lag.longest_ms > MOST_MS


@both_databases
@pytest.mark.scoreboard
def test_item_of_a_million_accented_letters_delays_nobody(
    database: str, folder: Path, record_score: RecordScore, request: pytest.FixtureRequest, most_ms: float
) -> None:
    with serving(folder, database) as served:

        def attack() -> None:
            assert served.request(description=LETTERS).status_code == 422
            answer = served.request(payload={"text": LETTERS})
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large"), answer.text
            largest = served.request(payload={"text": "é" * 125_000, "blank": " x" * 1000, "odd": "\u200b" * 1000})
            assert largest.status_code == 201, largest.text
            shown = served.page(largest.json()["id"])
            assert shown.status_code == 200
            assert "é" * 100_000 in shown.text

        lag = least_lag(served, attack, most_ms)
    _score(record_score, request, "an item of a million accented letters, and the page of the largest one", lag)
    assert lag.longest_ms <= most_ms


@only_sqlite
def test_control_without_the_limit_of_an_item_a_page_holds_all_of_them(database: str, folder: Path) -> None:
    with serving(folder, database, ASSENT_MAX_ITEM_BYTES="100000000") as served:
        accepted = served.request(payload={"text": LETTERS})
        assert accepted.status_code == 201
        assert served.page(accepted.json()["id"]).text.count("é") >= len(LETTERS)


@both_databases
@pytest.mark.scoreboard
def test_schema_of_250_patterns_delays_nobody(
    database: str, folder: Path, record_score: RecordScore, request: pytest.FixtureRequest, most_ms: float
) -> None:
    fewer = {"type": "object", "properties": dict(list(PATTERNS.items())[: schemas.MAX_PATTERNS])}
    with serving(folder, database) as served:

        def attack() -> None:
            answer = served.request(actions=[{"name": "pay", "args": {}, "schema": SCHEMA}])
            assert answer.status_code == 422, answer.text
            assert "more than 50 patterns" in answer.json()["detail"]
            answer = served.request(actions=[{"name": "pay", "args": {}, "schema": fewer}])
            assert answer.status_code == 201, answer.text
            assert served.answer(SCHEMA).status_code == 200  # nothing is checked here: the agent's own check follows
            answered = served.answer(fewer)
            assert (answered.status_code, answered.json()["code"]) == (422, "invalid_answer")

        lag = least_lag(served, attack, most_ms)
    _score(record_score, request, "a JSON Schema of 250 patterns", lag)
    assert lag.longest_ms <= most_ms


def test_control_without_the_limits_of_patterns_such_a_schema_takes_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MAX_PATTERNS": 1_000, "MAX_PATTERN_MEMORY": 64 * 1024**2}.items():
        monkeypatch.setattr(schemas, name, value)
    assert len(json.dumps(SCHEMA)) < 16 * 1024
    costly = {f"p{number}": {"pattern": rf"(?i)\PL{{{900 + number}}}"} for number in range(8)}
    schemas._matcher.cache_clear()
    started = time.process_time()
    for one in costly.values():
        schemas.can_match(one["pattern"])
    unlimited = time.process_time() - started
    schemas._matcher.cache_clear()
    monkeypatch.undo()
    started = time.process_time()
    schema_flaws.flaw({"properties": costly})
    assert unlimited > 10 * (time.process_time() - started)


@both_databases
@pytest.mark.scoreboard
def test_state_of_thousands_of_secrets_delays_nobody(
    database: str, folder: Path, record_score: RecordScore, request: pytest.FixtureRequest, most_ms: float
) -> None:
    """A run that fails, so that its error is logged without them, and a webhook that is told how it ended. The control
    is in tests/unit/test_secrets.py: one expression for all of them takes minutes here."""
    secrets = [f"a{number * 7919 % 1_000_003:06}" for number in range(20_000)]
    call = {"name": "pay", "args": {"token": secrets}, "said": "a" * 100_000}
    run = {"assistant_id": "asking", "input": {"questions": ["x"], "answers": [call]}}
    action = {"name": "pay", "args": {"token": secrets[:9_000]}, "description": "a" * 20_000}
    with serving(folder, database) as served, served.http(served.agent) as agent:

        def attack() -> None:
            for told in ({}, {"webhook": "https://example.com/x"}):
                thread = agent.post("/threads", json={}).json()["thread_id"]
                answer = agent.post(f"/threads/{thread}/runs/wait", json={**run, **told})
                assert "__error__" in answer.json(), answer.text[:500]
            asked = served.request(actions=[action])
            assert asked.status_code == 201, asked.text
            assert served.page(asked.json()["id"]).status_code == 200

        lag = least_lag(served, attack, most_ms)
    _score(record_score, request, "a state and an item of thousands of secrets", lag)
    assert lag.longest_ms <= most_ms, str(lag)


@both_databases
@pytest.mark.scoreboard
def test_expensive_response_schemas_delay_nobody(
    database: str, folder: Path, record_score: RecordScore, request: pytest.FixtureRequest, most_ms: float
) -> None:
    """Many forms that could each be the answer; thousands of tiny parts; a list without an order. A run asks this, and
    a gate elsewhere. The controls are in tests/unit/dialects and below."""
    forms: list[Any] = [{"properties": {f"{name}{number}": {} for name in "abcd"}} for number in range(190)]
    parts: list[Any] = [{"not": {"not": {}}} for _ in range(2_300)]
    listed = [entry for number in range(1_500) for entry in (number, str(number), [number])]
    schemas: list[dict[str, Any]] = [{"allOf": forms, "const": 5}, {"anyOf": parts}, {"type": listed}]
    with serving(folder, database) as served, served.http(served.agent) as agent:

        def attack() -> None:
            for schema in schemas:
                asked = {"value": "Which?", "schema": {**schema, "title": str(uuid4())}}
                thread = agent.post("/threads", json={}).json()["thread_id"]
                run = {"assistant_id": "forms", "input": {"questions": [asked]}}
                agent.post(f"/threads/{thread}/runs/wait", json=run).raise_for_status()
                [item] = agent.get("/api/inbox/items", params={"limit": 1}).json()["items"]
                assert item["gated"], "what cannot be checked may be an approval"
                asked_elsewhere(agent, schema)

        lag = least_lag(served, attack, most_ms)
    _score(record_score, request, "response schemas that take long to check", lag)
    assert lag.longest_ms <= most_ms, str(lag)


def asked_elsewhere(agent: httpx.Client, schema: dict[str, Any]) -> None:
    marked = {**schema, "title": str(uuid4()), MARKS: {"gate": GATE, "tool_call_id": "c"}}
    question = {"thread_id": str(uuid4()), "interrupt_id": uuid4().hex, "value": {"which": 1}}
    agent.post("/api/gate/questions", json={**question, "response_schema": marked}).raise_for_status()


@both_databases
@pytest.mark.scoreboard
def test_pages_of_hostile_statements_and_many_actions_delay_nobody(
    database: str, folder: Path, record_score: RecordScore, request: pytest.FixtureRequest, most_ms: float
) -> None:
    """The controls are in tests/web/test_renderers.py and tests/unit/test_turns.py."""
    closing = {"type": "sql", "actions": [{"name": "run_query", "args": {"sql": "select " + ")" * 12_000}}]}
    args = {"sql": "select 1", "rows": list(range(85))}
    many = {"type": "tool", "actions": [{"name": "run_query", "key": str(key), "args": args} for key in range(100)]}
    with serving(folder, database) as served:

        def attack() -> None:
            for asked in (closing, many):
                item = served.request(**asked)
                assert item.status_code == 201, item.text
                assert served.page(item.json()["id"]).status_code == 200

        lag = least_lag(served, attack, most_ms)
    _score(record_score, request, "pages of hostile statements and of many actions", lag)
    assert lag.longest_ms <= most_ms, str(lag)


def _document(size: int) -> dict[str, object]:
    """Metadata of about so many bytes, of many small values."""
    return {f"k{number}": {"id": number, "share": 1.5, "name": "x" * 20} for number in range(size // 62)}


def _stored(agent: httpx.Client, document: object, times: int) -> list[str]:
    made = [agent.post("/threads", json={"metadata": document}) for _ in range(times)]
    assert {response.status_code for response in made} == {200}, made[0].text[:500]
    return [one.json()["thread_id"] for one in made]


@both_databases
@pytest.mark.scoreboard
def test_concurrent_reads_of_large_documents_delay_nobody(
    database: str, folder: Path, record_score: RecordScore, request: pytest.FixtureRequest, most_ms: float
) -> None:
    """The largest that can be stored, also by merging, read and listed 20 times at once."""
    with serving(folder, database) as served, served.http(served.agent) as agent:
        stored = _stored(agent, _document(240 * 1024), 40)
        larger = agent.patch(f"/threads/{stored[0]}", json={"metadata": {"more": "x" * 200_000}})
        assert (larger.status_code, larger.json()["setting"]) == (413, "max_document_bytes")
        assert agent.post("/threads", json={"metadata": _document(1024 * 1024)}).status_code == 413
        flood = Flood(served.url, served.agent)
        for thread in stored:
            flood.add("GET", f"/threads/{thread}")
        flood.add("POST", "/threads/search", {"limit": 1000}, times=20)

        def attack() -> None:
            assert set(flood.send()) == {200, 422}

        lag = least_lag(served, attack, most_ms)
    _score(record_score, request, "reads of the largest stored documents", lag)
    assert lag.longest_ms <= most_ms, str(lag)


@both_databases
def test_control_without_the_limit_of_documents_everybody_waits_for_their_readers(database: str, folder: Path) -> None:
    sizes = ("ASSENT_MAX_DOCUMENT_BYTES", "ASSENT_MAX_BODY_BYTES", "ASSENT_MAX_ANSWER_BYTES")
    unlimited = {**dict.fromkeys(sizes, "1000000000"), "ASSENT_MAX_BODY_VALUES": "10000000"}
    with serving(folder, database, **unlimited) as served, served.http(served.agent) as agent:
        [thread] = _stored(agent, _document(18_000_000), 1)
        flood = Flood(served.url, served.agent).add("GET", f"/threads/{thread}", times=5)
        with measured(served.url, served.reviewer) as lag:
            assert set(flood.send()) == {200}
        assert lag.longest_ms > MOST_MS, str(lag)


@both_databases
@pytest.mark.scoreboard
def test_long_integers_and_long_lists_delay_nobody(
    database: str, folder: Path, record_score: RecordScore, request: pytest.FixtureRequest, most_ms: float
) -> None:
    digits = b'{"metadata":{"a":[' + b",".join([b"7" * 4200] * 400) + b"]}}"
    batch = json.dumps([{"assistant_id": "asking"}] * 5_000).encode()
    steps = json.dumps({"supersteps": [{"updates": [{"as_node": "a"}]}] * 10_000}).encode()
    with serving(folder, database) as served:
        flood = Flood(served.url, served.agent)
        flood.add("POST", "/threads", digits, times=5).add("POST", "/runs/batch", batch, times=5)
        flood.add("POST", "/threads", steps, times=5)

        def attack() -> None:
            assert set(flood.send()) == {422}

        lag = least_lag(served, attack, most_ms)
    _score(record_score, request, "integers of 4,200 digits, batches of 5,000 runs and 10,000 supersteps", lag)
    assert lag.longest_ms <= most_ms, str(lag)


@both_databases
@pytest.mark.scoreboard
def test_graphql_documents_and_variables_delay_nobody(
    database: str, folder: Path, record_score: RecordScore, request: pytest.FixtureRequest, most_ms: float
) -> None:
    """The controls are in tests/api/test_graphql.py."""
    repeated = "{ " + 'inboxItem(id: "0123456789") { id } ' * 240 + "}"
    misspelt = "".join(f"descriptiondd{number}: 1 " for number in range(400))
    create = "mutation($input: CreateInboxItemInput!) { createInboxItem(input: $input) { id } }"
    many = {"input": {"type": "a", "title": "a", "actions": [{"name": "a"}] * 60_000}}
    with serving(folder, database) as served:
        flood = Flood(served.url, served.agent)
        flood.add("POST", "/graphql", {"query": repeated}, times=10)
        flood.add("POST", "/graphql", {"query": f"mutation {{ createInboxItem(input: {{{misspelt}}}) {{ id }} }}"})
        flood.add("POST", "/graphql", {"query": create, "variables": many}, times=5)

        def attack() -> None:
            assert set(flood.send()) == {400}

        lag = least_lag(served, attack, most_ms)
    _score(record_score, request, "GraphQL documents that take long to validate and to convert", lag)
    assert lag.longest_ms <= most_ms, str(lag)


def test_control_integers_of_4200_digits_take_a_multiple_of_the_time_of_those_that_are_accepted() -> None:
    def seconds(digits: int) -> float:
        numbers = json.loads("[" + ",".join(["7" * digits] * (2_000_000 // digits)) + "]")
        started = time.process_time()
        json.dumps(numbers)
        return time.process_time() - started

    assert seconds(4200) > 3 * seconds(canonical.MAX_DIGITS)


@both_databases
@pytest.mark.scoreboard
def test_reviewers_keep_working_beside_500_half_open_connections(
    database: str, folder: Path, record_score: RecordScore, request: pytest.FixtureRequest, most_ms: float
) -> None:
    """Half of a head, half of a body, nothing at all: none of them counts towards the few requests that may be open."""
    few = {"ASSENT_MAX_OPEN_REQUESTS": "30", "ASSENT_HEADER_TIMEOUT": "10m", "ASSENT_BODY_TIMEOUT": "10m"}
    with serving(folder, database, **few) as served, ExitStack() as stack:
        kept = [_opened(stack, served.url, (HALF_HEAD, HALF_BODY, b"")[number % 3]) for number in range(500)]
        lag = least_lag(served, lambda: _trickle(kept), most_ms)
        assert lag.count >= 20
        assert sum(map(_is_open, kept)) > 300
    _score(record_score, request, "500 half-open connections", lag)
    assert lag.longest_ms <= most_ms


@only_sqlite
def test_connections_that_never_finish_are_closed_in_time(database: str, folder: Path) -> None:
    soon = {"ASSENT_HEADER_TIMEOUT": "1s", "ASSENT_BODY_TIMEOUT": "1s"}
    with serving(folder, database, **soon) as served, ExitStack() as stack:
        kept = [_opened(stack, served.url, sent) for sent in (HALF_HEAD, HALF_BODY, b"")]
        answers = [_read_all(memory_item) for memory_item in kept]
    assert [answer.partition(b"\r\n")[0] for answer in answers] == [
        b"HTTP/1.1 408 Request Timeout",
        b"HTTP/1.1 408 Request Timeout",
        b"",
    ]


@only_sqlite
def test_request_head_without_end_is_refused(database: str, folder: Path) -> None:
    with serving(folder, database) as served, ExitStack() as stack:
        connection = _opened(stack, served.url, HALF_HEAD + b"a" * 70_000)
        assert _read_all(connection).startswith(b"HTTP/1.1 431 ")


HALF_HEAD = b"GET /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Padding: "
HALF_BODY = (
    b"POST /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
)


def _trickle(kept: list[socket.socket]) -> None:
    """A byte a round on every connection, for two seconds."""
    until = time.monotonic() + 2
    while time.monotonic() < until:
        for memory_item in kept:
            with suppress(OSError):  # closed by the server, which may do so
                memory_item.send(b"a")
        select.select([], [], [], 0.1)


def _is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def _opened(stack: ExitStack, url: str, sent: bytes) -> socket.socket:
    parts = urlsplit(url)
    connection = stack.enter_context(socket.create_connection((parts.hostname, parts.port or 80), timeout=30))
    connection.sendall(sent)
    return connection


def _read_all(connection: socket.socket) -> bytes:
    found = b""
    try:
        while part := connection.recv(4096):
            found += part
    except ConnectionResetError:
        pass
    return found


def _score(record_score: RecordScore, request: pytest.FixtureRequest, attack: str, lag: Lag) -> None:
    where = {"sqlite": "SQLite", "postgres": "Postgres"}[request.node.callspec.params["database"]]
    record_score(
        f"other callers beside {attack}, {where}",
        f"each answered within {MOST_MS:.0f} ms",
        f"{lag.count} requests, the longest: {lag}",
    )
