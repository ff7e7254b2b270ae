"""Stored documents, answers and lists have limits: what exceeds one is refused by name, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.settings import Mode
from tests.api.house import Builder, House

PROJECT: dict[str, Any] = {"config": Path(__file__).parents[1] / "graphs_inbox" / "langgraph.json"}
LIMIT = 4096
FITS, LARGE = {"text": "x" * 3000}, {"text": "x" * 5000}


async def limited(build: Builder, **settings: Any) -> tuple[House, httpx.AsyncClient]:
    house = await build(Mode.DEV, **{"max_document_bytes": LIMIT, **settings}, **PROJECT)
    return house, house.client(await house.key())


def refused(response: httpx.Response, field: str) -> None:
    assert (response.status_code, response.json()["code"]) == (413, "too_large"), response.text
    told = response.json()
    assert (told["field"], told["limit"], told["setting"]) == (field, LIMIT, "max_document_bytes")
    assert told["size"] > LIMIT
    assert str(told["size"]) in told["detail"]
    assert "max_document_bytes" in told["hint"]


class TestDocument:
    async def test_thread_document_over_the_limit_is_refused(self, build: Builder) -> None:
        _, agent = await limited(build)
        refused(await agent.post("/threads", json={"metadata": LARGE}), "metadata")
        assert (await agent.post("/threads/search", json={})).json() == []
        assert (await agent.post("/threads", json={"metadata": FITS})).status_code == 200

    async def test_merge_over_the_limit_leaves_the_thread_unchanged(self, build: Builder) -> None:
        _, agent = await limited(build)
        thread = (await agent.post("/threads", json={"metadata": FITS})).json()["thread_id"]
        refused(await agent.patch(f"/threads/{thread}", json={"metadata": {"more": "y" * 3000}}), "metadata")
        assert (await agent.get(f"/threads/{thread}")).json()["metadata"] == FITS
        smaller = await agent.patch(f"/threads/{thread}", json={"metadata": {"text": "z"}})
        assert smaller.json()["metadata"] == {"text": "z"}

    async def test_oversized_document_of_an_older_release_can_be_read_and_reduced_but_not_copied(
        self, build: Builder
    ) -> None:
        house, agent = await limited(build)
        object.__setattr__(house.services.store.limits, "document_bytes", 10**6)
        thread = (await agent.post("/threads", json={"metadata": LARGE})).json()["thread_id"]
        object.__setattr__(house.services.store.limits, "document_bytes", LIMIT)
        assert (await agent.get(f"/threads/{thread}")).json()["metadata"] == LARGE
        assert (await agent.patch(f"/threads/{thread}", json={"ttl": {"ttl": 5}})).status_code == 200
        refused(await agent.post(f"/threads/{thread}/copy"), "metadata")
        assert (await agent.patch(f"/threads/{thread}", json={"metadata": {"text": ""}})).status_code == 200
        assert (await agent.post(f"/threads/{thread}/copy")).status_code == 200

    @pytest.mark.parametrize("field", ["metadata", "context", "config"])
    async def test_assistant_document_over_the_limit_is_refused(self, build: Builder, field: str) -> None:
        _, agent = await limited(build)
        large = {"configurable": LARGE} if field == "config" else LARGE
        refused(await agent.post("/assistants", json={"graph_id": "echo", field: large}), field)
        made = (await agent.post("/assistants", json={"graph_id": "echo", "metadata": FITS})).json()
        refused(await agent.patch(f"/assistants/{made['assistant_id']}", json={field: large}), field)
        if field == "metadata":
            merged = await agent.patch(f"/assistants/{made['assistant_id']}", json={field: {"more": "y" * 3000}})
            refused(merged, field)
        body = (await agent.get(f"/assistants/{made['assistant_id']}")).json()
        assert (body["version"], body["metadata"]["text"]) == (1, FITS["text"])

    @pytest.mark.parametrize("field", ["metadata", "context", "config"])
    async def test_run_document_over_the_limit_is_refused_except_its_input(self, build: Builder, field: str) -> None:
        _, agent = await limited(build)
        run = {"assistant_id": "echo", "input": {}}
        refused(await agent.post("/runs", json={**run, field: LARGE}), field)
        assert (await agent.post("/runs/wait", json={**run, "input": {"text": "x" * 10_000}})).status_code == 200

    async def test_draft_over_the_limit_is_refused_and_the_earlier_draft_kept(self, build: Builder) -> None:
        _, agent = await limited(build)
        item = (await agent.post("/api/inbox/items", json={"type": "note", "title": "Look"})).json()["id"]
        await agent.put(f"/api/inbox/items/{item}/draft", json={"draft": "begun"})
        refused(await agent.put(f"/api/inbox/items/{item}/draft", json={"draft": LARGE}), "draft")
        assert (await agent.get(f"/api/inbox/items/{item}")).json()["draft"] == "begun"

    async def test_comments_of_an_item_share_one_limit(self, build: Builder) -> None:
        _, agent = await limited(build)
        item = (await agent.post("/api/inbox/items", json={"type": "note", "title": "Look"})).json()["id"]
        first, second = [
            await agent.post(f"/api/inbox/items/{item}/comments", json={"text": "é" * 1500}) for _ in range(2)
        ]
        assert first.status_code == 201
        refused(second, "comments")
        assert len((await agent.get(f"/api/inbox/items/{item}/comments")).json()) == 1

    async def test_document_of_many_small_values_is_measured(self, build: Builder) -> None:
        _, agent = await limited(build)
        refused(await agent.post("/threads", json={"metadata": {"list": list(range(3000))}}), "metadata")


class TestAnswer:
    async def test_answer_over_the_limit_is_422_and_names_the_parameter(self, build: Builder) -> None:
        _, agent = await limited(build, max_answer_bytes=8000)
        for _ in range(3):
            await agent.post("/threads", json={"metadata": FITS})
        large = await agent.post("/threads/search", json={"limit": 10})
        assert large.status_code == 422, large.text
        assert large.json()["setting"] == "max_answer_bytes"
        assert "`limit`" in large.json()["hint"]
        pages = [await agent.post("/threads/search", json={"limit": 2, "offset": at}) for at in (0, 2)]
        assert [len(page.json()) for page in pages] == [2, 1]

    async def test_answer_with_one_row_has_no_limit(self, build: Builder) -> None:
        _, agent = await limited(build, max_answer_bytes=2000)
        await agent.post("/threads", json={"metadata": FITS})
        await agent.post("/threads", json={"metadata": FITS})
        assert (await agent.post("/threads/search", json={"limit": 1})).status_code == 200
        assert (await agent.post("/threads/search", json={"limit": 2})).status_code == 422

    async def test_values_that_are_not_selected_do_not_count(self, build: Builder) -> None:
        _, agent = await limited(build, max_answer_bytes=8000)
        for _ in range(2):
            thread = (await agent.post("/threads", json={})).json()["thread_id"]
            run = {"assistant_id": "echo", "input": {"text": "x" * 6000}}
            (await agent.post(f"/threads/{thread}/runs/wait", json=run)).raise_for_status()
        assert (await agent.post("/threads/search", json={"limit": 2})).status_code == 422
        chosen = await agent.post("/threads/search", json={"limit": 2, "select": ["thread_id", "metadata"]})
        assert len(chosen.json()) == 2

    async def test_history_over_the_limit_continues_from_a_checkpoint(self, build: Builder) -> None:
        _, agent = await limited(build, max_answer_bytes=8000)
        thread = (await agent.post("/threads", json={"metadata": {"graph_id": "echo"}})).json()["thread_id"]
        run = {"assistant_id": "echo", "input": {"text": "x" * 6000}}
        (await agent.post(f"/threads/{thread}/runs/wait", json=run)).raise_for_status()
        large = await agent.post(f"/threads/{thread}/history", json={"limit": 10})
        assert (large.status_code, large.json()["setting"]) == (422, "max_answer_bytes"), large.text
        assert "`before`" in large.json()["hint"]
        [newest] = (await agent.post(f"/threads/{thread}/history", json={"limit": 1})).json()
        before = newest["checkpoint"]["checkpoint_id"]
        [older] = (await agent.post(f"/threads/{thread}/history", json={"limit": 1, "before": before})).json()
        assert older["checkpoint"]["checkpoint_id"] != before

    async def test_lists_of_runs_and_assistants_are_limited(self, build: Builder) -> None:
        _, agent = await limited(build, max_answer_bytes=8000)
        thread = (await agent.post("/threads", json={})).json()["thread_id"]
        for _ in range(2):
            run = {"assistant_id": "echo", "input": {"text": "x" * 6000}}
            (await agent.post(f"/threads/{thread}/runs/wait", json=run)).raise_for_status()
            await agent.post("/assistants", json={"graph_id": "echo", "metadata": FITS, "context": FITS})
        for answer in (
            await agent.get(f"/threads/{thread}/runs"),
            await agent.post("/assistants/search", json={"graph_id": "echo"}),
        ):
            assert (answer.status_code, answer.json()["setting"]) == (422, "max_answer_bytes"), answer.text
        assert len((await agent.get(f"/threads/{thread}/runs", params={"limit": 1})).json()) == 1
        assert len((await agent.post("/assistants/search", json={"graph_id": "echo", "limit": 1})).json()) == 1

    async def test_long_timeline_is_read_in_parts(self, build: Builder) -> None:
        _, agent = await limited(build)
        item = (await agent.post("/api/inbox/items", json={"type": "note", "title": "Look"})).json()["id"]
        for number in range(4):
            await agent.post(f"/api/inbox/items/{item}/comments", json={"text": str(number)})
        whole = (await agent.get(f"/api/inbox/items/{item}/timeline")).json()
        last = (await agent.get(f"/api/inbox/items/{item}/timeline", params={"limit": 2})).json()
        rest = await agent.get(f"/api/inbox/items/{item}/timeline", params={"before": last[0]["seq"]})
        assert rest.json() + last == whole
        assert [one["payload"]["text"] for one in last] == ["2", "3"]

    async def test_timeline_page_ends_before_the_limit(self, build: Builder) -> None:
        _, agent = await limited(build, max_answer_bytes=1500)
        item = (await agent.post("/api/inbox/items", json={"type": "note", "title": "Look"})).json()["id"]
        for _ in range(3):
            await agent.post(f"/api/inbox/items/{item}/comments", json={"text": "x" * 1000})
        assert len((await agent.get(f"/api/inbox/items/{item}/timeline")).json()) == 1


class TestList:
    @pytest.mark.parametrize(
        ("path", "body", "field"),
        [
            ("/runs/batch", [{"assistant_id": "echo"}] * 101, ""),
            ("/threads", {"supersteps": [{"updates": [{"as_node": "a"}]}] * 101}, "supersteps"),
            ("/threads", {"supersteps": [{"updates": [{"as_node": "a"}] * 101}]}, "updates"),
            ("/threads/search", {"select": ["metadata"] * 101}, "select"),
            ("/threads/search", {"extract": {f"a{n}": "values.x" for n in range(101)}}, "extract"),
            ("/assistants/search", {"select": ["metadata"] * 101}, "select"),
            ("/runs", {"assistant_id": "echo", "interrupt_before": ["a"] * 101}, "interrupt_before"),
            ("/runs", {"assistant_id": "echo", "command": {"goto": ["a"] * 101}}, "goto"),
            ("/runs", {"assistant_id": "echo", "config": {"tags": ["a"] * 101}}, "tags"),
            ("/runs", {"assistant_id": "echo", "stream_mode": ["values"] * 101}, "stream_mode"),
            ("/runs/cancel", {"thread_id": "a", "run_ids": ["a"] * 1001}, "run_ids"),
        ],
    )
    async def test_list_in_a_request_over_the_limit_is_422(
        self, build: Builder, path: str, body: Any, field: str
    ) -> None:
        _, agent = await limited(build)
        answer = await agent.post(path, json=body)
        assert answer.status_code == 422, answer.text
        assert field in answer.json()["detail"]
        assert "at most 100" in answer.json()["detail"]


async def test_quota_of_stored_bytes_applies_to_every_document(build: Builder) -> None:
    house, agent = await limited(build)
    thread = (await agent.post("/threads", json={"metadata": FITS})).json()["thread_id"]
    item = (await agent.post("/api/inbox/items", json={"type": "note", "title": "Look"})).json()["id"]
    made = (await agent.post("/assistants", json={"graph_id": "echo"})).json()["assistant_id"]
    await house.services.usage.refresh()
    object.__setattr__(house.services.store.limits, "stored_bytes", 3000)
    for method, path, body in (
        ("PATCH", f"/threads/{thread}", {"metadata": {"a": 1}}),
        ("POST", f"/threads/{thread}/copy", None),
        ("POST", "/assistants", {"graph_id": "echo"}),
        ("PATCH", f"/assistants/{made}", {"metadata": {"a": 1}}),
        ("PUT", f"/api/inbox/items/{item}/draft", {"draft": "x"}),
        ("POST", f"/api/inbox/items/{item}/comments", {"text": "x"}),
        ("POST", "/api/inbox/items", {"type": "note", "title": "Look"}),
        ("POST", f"/threads/{thread}/state", {"values": {"text": "x"}}),
    ):
        answer = await agent.request(method, path, json=body)
        assert (answer.status_code, answer.json().get("quota")) == (429, "stored_bytes"), (path, answer.text)
    assert (await agent.put(f"/api/inbox/items/{item}/draft", json={"draft": None})).status_code == 200
    assert (await agent.patch(f"/threads/{thread}", json={"ttl": {"ttl": 5}})).status_code == 200
