"""Requests in execution: one caller has a few at once, the rest of that caller wait in order, others do not wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message

from assent.errors import TooManyRequests
from assent.settings import Mode
from assent.surfaces.http import routing
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.limits.turns import Turns
from tests.api.house import Builder, House, call
from tests.waiting import until

GRAPHS = Path(__file__).parents[1] / "graphs" / "langgraph.json"
JSON = {"content-type": "application/json"}


class Held:
    """A route whose requests stay in execution until they are let go."""

    def __init__(self, house: House) -> None:
        self.go = asyncio.Event()
        self.entered: list[str] = []
        api = routing.router("/api", "test")

        @api.post("/held")
        async def held(caller: Caller) -> dict[str, str]:
            self.entered.append(caller.actor)
            await self.go.wait()
            return {}

        routing.add(house.app, api)

    def ask(self, client: httpx.AsyncClient, count: int) -> list[asyncio.Task[httpx.Response]]:
        return [asyncio.create_task(client.post("/api/held")) for _ in range(count)]

    async def have_entered(self, count: int) -> None:
        async def entered() -> bool:
            return len(self.entered) >= count

        await until(entered, f"{len(self.entered)} of {count} are in execution")


async def statuses(asked: list[asyncio.Task[httpx.Response]]) -> list[int]:
    return [result.status_code for result in await asyncio.gather(*asked)]


async def test_one_caller_executes_a_few_at_once_and_others_do_not_wait_for_them(build: Builder) -> None:
    house = await build(max_executing_per_caller=2)
    held, agent, other = Held(house), house.client(await house.key()), house.client(await house.key())
    asked = held.ask(agent, 10)
    await held.have_entered(2)
    behind = held.ask(other, 1)
    await held.have_entered(3)
    assert len(set(held.entered)) == 2
    assert len(held.entered) == 3
    held.go.set()
    assert await statuses([*asked, *behind]) == [200] * 11


async def test_control_without_the_limit_all_of_them_are_executed_at_once(build: Builder) -> None:
    house = await build(max_executing_per_caller=100)
    held = Held(house)
    asked = held.ask(house.client(await house.key()), 10)
    await held.have_entered(10)
    held.go.set()
    assert await statuses(asked) == [200] * 10


async def test_requests_over_the_waiting_limit_get_retry_after(build: Builder) -> None:
    house = await build(max_executing_per_caller=1, max_waiting_per_caller=2)
    held, agent = Held(house), house.client(await house.key())
    asked = held.ask(agent, 3)
    await held.have_entered(1)
    refused = await agent.get("/api/me")
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert "max_waiting_per_caller" in refused.json()["hint"]
    assert refused.headers["retry-after"] == "1"
    held.go.set()
    assert await statuses(asked) == [200] * 3
    assert (await agent.get("/api/me")).status_code == 200


@pytest.mark.parametrize("how", ["wait", "stream"])
async def test_a_request_that_waits_for_a_run_is_not_in_execution(build: Builder, tmp_path: Path, how: str) -> None:
    house = await build(Mode.DEV, config=GRAPHS, max_executing_per_caller=1, max_waiting_per_caller=0)
    agent = house.client(await house.key())
    run = {"assistant_id": "slow", "input": {"gate": str(tmp_path)}}
    asked = asyncio.create_task(agent.post(f"/runs/{how}", json=run, timeout=30))

    async def started() -> bool:
        return (tmp_path / "a.started").exists()

    await until(started, "the run does not start")
    assert (await agent.get("/api/me")).status_code == 200
    for node in ("a", "b", "c"):
        (tmp_path / f"{node}.go").touch()
    assert (await asked).status_code == 200


async def test_a_client_that_leaves_while_it_waits_is_not_served(build: Builder) -> None:
    house = await build(max_executing_per_caller=1)
    key = await house.key()
    held = Held(house)
    asked = held.ask(house.client(key), 1)
    await held.have_entered(1)
    gone = asyncio.create_task(call(house.app, "POST", "/api/held", {"x-api-key": key, **JSON}))
    await asyncio.sleep(0)
    held.go.set()
    assert await statuses(asked) == [200]
    assert await gone == []
    assert len(held.entered) == 1


class TestTurns:
    async def test_turns_come_in_order_and_a_cancelled_turn_is_passed_on(self) -> None:
        turns, order = Turns(1, 10), []
        await turns.take("a")

        async def wait(number: int) -> None:
            await turns.take("a")
            order.append(number)
            turns.end("a")

        waiting = [asyncio.create_task(wait(number)) for number in range(5)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        turns.end("a")
        waiting[0].cancel()  # in the moment in which its turn came
        await asyncio.gather(*waiting, return_exceptions=True)
        assert order == [2, 3, 4]
        assert turns._lines == {}

    async def test_turns_of_one_caller_do_not_count_for_another(self) -> None:
        turns = Turns(1, 0)
        assert not await turns.take("a")
        assert not await turns.take("b")
        with pytest.raises(TooManyRequests):
            await turns.take("a")


async def half_sent(house: House, key: str, size: int, ended: asyncio.Event, arrived: list[int]) -> list[Message]:
    """A request of which `size` bytes arrive, and no more."""

    async def messages() -> AsyncIterator[Message]:
        yield {"type": "http.request", "body": b"x" * size, "more_body": True}
        arrived.append(size)
        await ended.wait()

    incoming = messages()

    async def receive() -> Message:
        return await anext(incoming, {"type": "http.disconnect"})

    return await call(house.app, "POST", "/threads", {"x-api-key": key}, receive=receive)


class TestBodies:
    async def test_bodies_of_one_caller_over_the_limit_are_refused(self, build: Builder) -> None:
        house = await build(max_buffered_bytes_per_caller=10_000)
        answers, others = await self.sent(house)
        assert answers.count(429) == 2
        assert others == 200

    async def test_bodies_of_all_programs_leave_room_for_people(self, build: Builder) -> None:
        house = await build(max_buffered_bytes=10_000)
        answers, others = await self.sent(house)
        assert answers.count(503) == 2  # programs can use four fifths
        assert others == 200

    async def test_control_without_the_limits_all_bodies_are_held(self, build: Builder) -> None:
        answers, _ = await self.sent(await build())
        assert answers == []

    async def sent(self, house: House) -> tuple[list[int], int]:
        """The statuses of those that were refused of four bodies, and of a person's request beside them."""
        key, ended, arrived = await house.key(), asyncio.Event(), list[int]()
        person = house.client(await house.person("ana"))
        held = [asyncio.create_task(half_sent(house, key, 4_000, ended, arrived)) for _ in range(4)]

        async def settled() -> bool:
            return len(arrived) + sum(task.done() for task in held) >= 4

        await until(settled, "the bodies do not arrive")
        beside = await person.post("/threads/search", content=b'{"limit": 1}' + b" " * 1_000, headers=JSON)
        ended.set()
        answers = [result[0]["status"] for result in await asyncio.gather(*held) if result]
        assert house.app.state.admission._bodies._held == 0
        return answers, beside.status_code


class TestSignIn:
    """Beside a program at the same address that shows a bad key again and again."""

    async def test_sign_in_works_beside_a_flood_from_the_same_address(self, build: Builder) -> None:
        house = await build(rate_limit_anonymous=5)
        await self.flood(house)
        browser = house.client(peer="10.1.1.1")
        assert (await browser.get("/login", headers={"accept": "text/html"})).status_code == 200
        signed_in = await browser.post("/api/session", json={"credential": await house.person("ana")})
        assert signed_in.status_code == 200

    async def test_sign_in_keeps_its_own_rate_limit(self, build: Builder) -> None:
        house = await build(rate_limit_anonymous=100, rate_limit_sign_in=5)
        await self.flood(house)
        browser = house.client(peer="10.1.1.1")
        tried = [await browser.post("/api/session", json={"credential": "wrong"}) for _ in range(8)]
        assert [attempt.status_code for attempt in tried] == [401] * 5 + [429] * 3

    async def test_control_when_both_count_as_one_the_sign_in_page_is_refused(
        self, build: Builder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        house = await build(rate_limit_anonymous=5)
        admission = house.app.state.admission
        monkeypatch.setattr(admission, "count_refused", admission.count_anonymous)
        await self.flood(house)
        assert (await house.client(peer="10.1.1.1").get("/login")).status_code == 429

    async def flood(self, house: House) -> None:
        program = house.client("asnt_agent_wrong", peer="10.1.1.1")
        answers = [(await program.get("/api/me")).status_code for _ in range(40)]
        assert set(answers) <= {401, 429}


class TestPages:
    """A page that the boundary refuses is a page that says so."""

    async def pages(self, house: House, language: str, **headers: str) -> list[httpx.Response]:
        browser = house.client(peer="10.1.1.1", headers={"accept": "text/html", "accept-language": language, **headers})
        return [await browser.get("/login") for _ in range(20)]

    @pytest.mark.parametrize(("language", "told"), [("en", "Too many requests"), ("zh-CN", "短时间内的请求过多")])
    async def test_page_over_the_rate_limit_is_an_html_429(self, build: Builder, language: str, told: str) -> None:
        last = (await self.pages(await build(rate_limit_anonymous=5), language))[-1]
        assert last.status_code == 429
        assert last.headers["content-type"].startswith("text/html")
        assert told in last.text
        assert int(last.headers["retry-after"]) >= 1

    async def test_control_a_program_gets_the_error_as_json(self, build: Builder) -> None:
        last = (await self.pages(await build(rate_limit_anonymous=5), "en", accept="application/json"))[-1]
        assert (last.status_code, last.json()["code"]) == (429, "rate_limited")

    async def test_page_over_the_size_limit_is_an_html_413(self, house: House) -> None:
        browser = house.client(headers={"accept": "text/html"})
        answer = await browser.post("/login", data={"credential": "x" * 20_000})
        assert answer.status_code == 413
        assert "too_large" in answer.text
        assert answer.headers["content-type"].startswith("text/html")

    async def test_page_without_a_database_is_an_html_503(self, build: Builder) -> None:
        house: Any = await build()
        browser = await house.signed_in(headers={"accept": "text/html"})
        await house.services.store.close()
        answer = await browser.get("/inbox")
        assert answer.status_code == 503
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.headers["retry-after"]
