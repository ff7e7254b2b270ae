"""The web inbox over other deployments: they are added in Settings, their items say that they are advisory, their
threads can be read, and a stopped one is not mistaken for an empty inbox."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from assent.identity.model.access import Role
from assent.settings import Mode
from assent.threads.model.deployments import Trouble
from tests.api.house import Builder
from tests.e2e.cutting import CuttingProxy
from tests.federation.desk import Desk, answered, ask, begun
from tests.waiting import until


@pytest.mark.promise("INBOX-01", "INBOX-02", "INBOX-03", "INBOX-05", "INBOX-06", "INBOX-07", "INBOX-29")
async def test_deployment_added_on_the_page_is_decided_there(build: Builder, langgraph_url: str) -> None:
    desk = await Desk.at(await build(Mode.DEV))
    browser = await desk.house.signed_in("ana", Role.ADMIN)
    thread_id = await ask(langgraph_url, "shall I?")
    headers = "Authorization: Bearer secret\r\nX-Team: red\r\n"
    typed = {"url": langgraph_url, "key": "a key", "name": "Far", "graphs": "asking", "headers": headers}
    shown = await browser.post("/inbox/settings/deployments", data=typed, follow_redirects=True)
    assert "Added." in shown.text
    assert "a key" not in shown.text
    assert "Working" in shown.text
    [added] = (await desk.admin.get("/api/deployments")).json()
    assert added["headers"] == ["Authorization", "X-Team"]
    item = await desk.item_of(added, thread_id)
    page = (await browser.get(f"/inbox/{item['id']}")).text
    assert "Advisory" in page
    assert f"https://smith.langchain.com/studio/thread/{thread_id}?baseUrl=" in page.replace("&amp;", "&")
    conversation = (await browser.get(f"/inbox/threads/{item['source']['thread_id']}")).text
    assert "shall I?" in conversation
    saved = {"graph_id": "asking", "url": langgraph_url, "name": "Mine"}
    listed = await browser.post("/inbox/inboxes", data=saved, follow_redirects=True)
    assert "shall I?" in listed.text
    other = {"graph_id": "other", "url": langgraph_url, "name": "Nothing"}
    assert "shall I?" not in (await browser.post("/inbox/inboxes", data=other, follow_redirects=True)).text
    await desk.decide(item, verb="respond", message="yes")
    assert await answered(langgraph_url, thread_id) == ["yes"]


@pytest.mark.promise("INBOX-24", "INBOX-25", "INBOX-26")
async def test_stopped_deployment_is_not_an_empty_inbox(build: Builder) -> None:
    desk = await Desk.at(await build(Mode.DEV))
    browser = await desk.house.signed_in("ana", Role.ADMIN)
    added = await desk.add("http://127.0.0.1:9", name="Far")
    saved = {"graph_id": "asking", "url": "http://127.0.0.1:9", "name": "Mine"}
    listed = await browser.post("/inbox/inboxes", data=saved, follow_redirects=True)
    assert "no server listens at http://127.0.0.1:9" in listed.text
    settings = (await browser.get("/inbox/settings/deployments")).text
    assert 'href="/inbox/help#stopped"' in settings
    advice = (await browser.get("/inbox/help")).text
    assert all(f'<dt id="{problem}">' in advice for problem in Trouble)
    assert (await desk.admin.delete(f"/api/deployments/{added['id']}")).status_code == 200
    inbox_id = listed.url.params["inbox"]
    assert "the deployment was removed" in (await browser.get(f"/inbox?inbox={inbox_id}")).text


@pytest.mark.promise("REVIEW-10")
async def test_conversation_is_read_from_the_deployment_without_holding_up_the_page(
    build: Builder, langgraph_url: str, tmp_path: Path
) -> None:
    desk = await Desk.at(await build(Mode.DEV))
    ana = await desk.house.signed_in("ana", Role.ADMIN)
    calls = json.dumps([{"name": "ship", "args": {"city": "Bern", "log": str(tmp_path / "log")}}])
    wish = {"messages": [{"role": "user", "content": calls}]}
    thread_id = await begun(langgraph_url, "batched", wish)
    proxy = CuttingProxy(langgraph_url)
    serving = asyncio.create_task(asyncio.to_thread(proxy.serve_forever, 0.05))
    try:
        item = await desk.item_of(await desk.add(proxy.url, name="Far"), thread_id)
        read = (await ana.get(f"/inbox/{item['id']}/context")).text
    finally:
        await asyncio.to_thread(proxy.shutdown)
        await serving
        proxy.server_close()
        proxy.cut()
    assert "<strong>Person</strong>" in read
    assert "Bern" in read
    assert "batched</a>" in read
    assert 'Run <a href="/inbox/threads/' in read
    page = await ana.get(f"/inbox/{item['id']}")
    assert (page.status_code, "data-context" in page.text) == (200, True)
    told = (await ana.get(f"/inbox/{item['id']}/context")).text
    assert f"Far does not show its conversation now: no server listens at {proxy.url}" in told
    assert 'href="/inbox/help#stopped"' in told
    here = (await desk.admin.post("/api/inbox/items", json={"type": "tool", "title": "Here"})).json()
    assert (await ana.get(f"/inbox/{here['id']}/context")).status_code == 404


async def test_several_deployments_are_one_list(build: Builder, langgraph_url: str, assent_url: str) -> None:
    desk = await Desk.at(await build(Mode.DEV))
    near, far = await ask(langgraph_url, "near?", graph="other"), await ask(assent_url, "far?", graph="other")
    for name, url in (("near", langgraph_url), ("far", assent_url)):
        await desk.add(url, name=name, graphs=["other"])

    async def both() -> bool:
        merged = await desk.items("is:pending deployment:near,far")
        return {near, far} <= {item["source"]["remote"]["thread_id"] for item in merged}

    await until(both, "the list lacks a deployment")
    assert {item["source"]["remote"]["name"] for item in await desk.items("deployment:near")} == {"near"}


async def test_webhook_of_a_deployment_is_shown_once_on_the_page(build: Builder) -> None:
    desk = await Desk.at(await build(Mode.DEV))
    browser = await desk.house.signed_in("ana", Role.ADMIN)
    added = await desk.add("http://127.0.0.1:9", name="Far")
    page = f"/inbox/settings/deployments/{added['id']}"
    made = await browser.post(f"{page}/webhook", follow_redirects=True)
    assert "http://127.0.0.1:2024/api/deployments/look?token=look_" in made.text
    replaced = await browser.post(f"{page}/key", data={"key": "other"}, follow_redirects=True)
    assert "look?token=look_" in replaced.text
    assert "token=" not in (await browser.get("/inbox/settings/deployments")).text
    assert "The webhook was removed" in (await browser.post(f"{page}/webhook/removal", follow_redirects=True)).text
    assert (await desk.deployment(added["id"]))["has_webhook"] is False
