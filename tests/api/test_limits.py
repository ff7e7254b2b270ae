"""Rates and quotas: who has used up theirs is told so, with the time to wait, and nobody else notices."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message

from assent.errors import TooManyRequests
from assent.identity.model.access import Kind, Role
from assent.settings import Mode
from assent.surfaces.http.limits.rates import Rate
from tests.api.house import Builder, House, call
from tests.waiting import until

PROJECT: dict[str, Any] = {"config": Path(__file__).parents[1] / "graphs_inbox" / "langgraph.json"}


def refused(response: httpx.Response, code: str) -> int:
    """The seconds to wait."""
    assert (response.status_code, response.json()["code"]) == (429, code), response.text
    assert response.json()["hint"]
    return int(response.headers["retry-after"])


class TestRate:
    async def test_rate_of_one_caller_does_not_count_for_another(self, build: Builder) -> None:
        house = await build(rate_limit=5)
        agent, other = house.client(await house.key()), house.client(await house.person("ana"))
        answers = [await agent.get("/api/me") for _ in range(30)]
        assert answers[0].status_code == 200
        assert refused(answers[-1], "rate_limited") >= 1
        assert (await other.get("/api/me")).status_code == 200

    async def test_rate_limit_on_a_langgraph_route_has_a_detail(self, build: Builder) -> None:
        house = await build(rate_limit=1)
        agent = house.client(await house.key())
        answers = [await agent.post("/threads/search", json={}) for _ in range(10)]
        assert refused(answers[-1], "rate_limited") >= 1
        assert isinstance(answers[-1].json()["detail"], str)
        assert "status" not in answers[-1].json()

    async def test_control_without_a_limit_nobody_is_refused(self, build: Builder) -> None:
        house = await build(rate_limit=0)
        agent = house.client(await house.key())
        assert {(await agent.get("/api/me")).status_code for _ in range(30)} == {200}

    async def test_anonymous_rate_is_counted_by_address(self, build: Builder) -> None:
        house = await build(rate_limit_anonymous=5)
        for path in ("/info", "/api/me"):
            house.app.state.admission.forget()
            answers = [await house.client(peer="10.1.1.1").get(path) for _ in range(20)]
            assert refused(answers[-1], "rate_limited") >= 1
            assert (await house.client(peer="10.1.1.2").get(path)).status_code != 429
        key = await house.key()
        assert (await house.client(key, peer="10.1.1.1").get("/api/me")).status_code == 200
        assert (await house.client(peer="10.1.1.1").get("/ok")).status_code == 200

    @pytest.mark.parametrize("path", ["/api/session", "/login"])
    async def test_failed_sign_ins_over_the_rate_are_429(self, build: Builder, path: str) -> None:
        house = await build(rate_limit_sign_in=5)
        wrong: dict[str, Any] = {"json" if path == "/api/session" else "data": {"credential": "wrong"}}
        answers = [await house.client().post(path, **wrong) for _ in range(7)]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2

    async def test_successful_sign_ins_do_not_count_against_the_rate(self, build: Builder) -> None:
        house = await build(rate_limit_sign_in=2)
        key = await house.person("ana", Role.ADMIN)
        for _ in range(5):
            assert (await house.client().post("/api/session", json={"credential": key})).status_code == 200

    def test_rate_recovers_with_time(self) -> None:
        now = 0.0
        rate = Rate(2, burst=2, hint="", clock=lambda: now)
        rate.spend("a")
        rate.spend("a")
        with pytest.raises(TooManyRequests) as refusal:
            rate.spend("a")
        assert refusal.value.retry_after == 1
        rate.spend("b")
        now = 0.5
        rate.spend("a")

    def test_rate_keeps_a_limited_number_of_callers(self) -> None:
        rate = Rate(0.001, burst=5, hint="", clock=lambda: 0.0)
        for number in range(25_000):
            rate.spend(str(number))
        assert len(rate._buckets) <= 20_000


async def half_sent(house: House, path: str, headers: dict[str, str], ended: asyncio.Event) -> list[Message]:
    """A request whose body does not come."""

    async def messages() -> AsyncIterator[Message]:
        yield {"type": "http.request", "body": b"{", "more_body": True}
        await ended.wait()

    incoming = messages()

    async def receive() -> Message:
        return await anext(incoming, {"type": "http.disconnect"})

    return await call(house.app, "POST", path, {"content-length": "100", **headers}, receive=receive)


async def settled(house: House, least: int) -> None:
    """Returns once that many requests are open and no other one is being authenticated."""
    admission = house.app.state.admission

    async def is_settled() -> bool:
        return bool(admission._open >= least and admission._arriving == 0)

    await until(is_settled, "the requests do not arrive")


class TestOpenRequests:
    async def test_anonymous_open_requests_leave_room_for_callers(self, build: Builder) -> None:
        house = await build(max_open_requests=20, max_open_anonymous=20)
        ended, json = asyncio.Event(), {"content-type": "application/json"}
        held = [asyncio.create_task(half_sent(house, "/api/session", json, ended)) for _ in range(30)]
        await asyncio.sleep(0)
        person = house.client(await house.person("ana"))
        assert (await person.get("/api/inbox/items")).status_code == 200
        ended.set()
        answered = [result[0]["status"] for result in await asyncio.gather(*held) if result]
        assert answered, "some of thirty were refused, because one address may have a quarter of twenty"
        assert set(answered) == {429}

    async def test_open_requests_of_programs_leave_room_for_people(self, build: Builder) -> None:
        house = await build(max_open_requests=20)
        ended, agents = asyncio.Event(), [await house.key() for _ in range(3)]
        held = [
            asyncio.create_task(half_sent(house, "/threads", {"x-api-key": agents[number % 3]}, ended))
            for number in range(30)
        ]
        await settled(house, 16)
        person = house.client(await house.person("ana"))
        assert (await person.get("/api/inbox/items")).status_code == 200
        assert (await house.client(agents[0]).get("/api/me")).status_code == 503
        ended.set()
        await asyncio.gather(*held)
        assert (await house.client(agents[0]).get("/api/me")).status_code == 200

    @pytest.mark.parametrize(
        ("settings", "code"),
        [({"max_open_requests_per_caller": 3}, "rate_limited"), ({"quota_open_requests": 4}, "quota_exceeded")],
    )
    async def test_open_requests_of_one_caller_or_tenant_are_limited(
        self, build: Builder, settings: dict[str, Any], code: str
    ) -> None:
        house = await build(**settings)
        ended, agent = asyncio.Event(), await house.key()
        held = [asyncio.create_task(half_sent(house, "/threads", {"x-api-key": agent}, ended)) for _ in range(5)]
        await settled(house, 3)
        assert refused(await house.client(agent).get("/api/me"), code) == 1
        other = await house.key(tenant="other")
        assert (await house.client(other).get("/api/me")).status_code == 200
        ended.set()
        await asyncio.gather(*held)


class TestQuota:
    async def test_thread_over_the_quota_is_refused(self, build: Builder) -> None:
        house = await build(quota_threads=3)
        agent = house.client(await house.key())
        made = [await agent.post("/threads", json={}) for _ in range(4)]
        assert [response.status_code for response in made[:3]] == [200] * 3
        assert refused(made[3], "quota_exceeded") == 60
        assert (made[3].json()["quota"], made[3].json()["limit"]) == ("threads", 3)
        other = house.client(await house.key(tenant="other"))
        assert (await other.post("/threads", json={})).status_code == 200
        await agent.delete(f"/threads/{made[0].json()['thread_id']}")
        await house.services.usage.refresh()
        assert (await agent.post("/threads", json={})).status_code == 200

    async def test_quota_of_pending_items_applies_to_requests_and_new_runs_but_not_to_answers(
        self, build: Builder
    ) -> None:
        house = await build(Mode.DEV, quota_pending_items=2, **PROJECT)
        agent = house.client(await house.key())
        note = {"type": "note", "title": "Look"}
        run = {"assistant_id": "hitl", "input": {}}
        thread = (await agent.post("/threads", json={})).json()["thread_id"]
        (await agent.post(f"/threads/{thread}/runs/wait", json=run)).raise_for_status()
        assert (await agent.post("/api/inbox/items", json=note)).status_code == 201
        assert refused(await agent.post("/api/inbox/items", json=note), "quota_exceeded") == 60
        assert refused(await agent.post("/runs", json=run), "quota_exceeded") == 60
        answer = {"assistant_id": "hitl", "command": {"resume": "yes"}}
        assert (await agent.post(f"/threads/{thread}/runs", json=answer)).status_code != 429

    async def test_run_over_the_quota_is_refused(self, build: Builder) -> None:
        house = await build(Mode.DEV, quota_active_runs=2, **PROJECT)
        agent = house.client(await house.key())
        run = {"assistant_id": "echo", "input": {}, "after_seconds": 3600}
        made = [await agent.post("/runs", json=run) for _ in range(3)]
        assert [response.status_code for response in made[:2]] == [200, 200]
        assert refused(made[2], "quota_exceeded") == 5

    async def test_write_over_the_quota_of_stored_bytes_is_refused(self, build: Builder) -> None:
        house = await build(Mode.DEV, quota_stored_bytes=100, **PROJECT)
        agent = house.client(await house.key())
        run = {"assistant_id": "echo", "input": {"text": "x" * 1000}}
        thread = (await agent.post("/threads", json={})).json()["thread_id"]
        (await agent.post(f"/threads/{thread}/runs/wait", json=run)).raise_for_status()
        await house.services.usage.refresh()
        assert refused(await agent.post(f"/threads/{thread}/runs", json=run), "quota_exceeded") == 60
        assert refused(await agent.post("/threads", json={}), "quota_exceeded") == 60


async def test_run_with_a_question_over_the_limit_fails_without_an_item(build: Builder) -> None:
    house = await build(Mode.DEV, max_item_bytes=2000, **PROJECT)
    agent = house.client(await house.key(Kind.AGENT))
    thread = (await agent.post("/threads", json={})).json()["thread_id"]
    value = {"question": {"action": "pay", "text": "x" * 3000}}
    await agent.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "asking", "input": {"questions": [value]}})
    body = (await agent.get(f"/threads/{thread}")).json()
    assert body["status"] == "error", body
    assert "max_item_bytes" in str(body["error"])
    assert (await agent.get("/api/inbox/items")).json()["items"] == []
