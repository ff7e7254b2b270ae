"""Inboxes in the browser: the three fields of Add Inbox, saved searches, and what becomes of mistakes."""

import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.api.house import LOOPBACK
from tests.cli.command import Server
from tests.web.conftest import Desk, hidden

FROM_HERE = {"origin": LOOPBACK, "sec-fetch-site": "same-origin"}
FIELD = re.compile(r'<(?:input|textarea|select)(?![^>]*type="hidden")[^>]* name="(\w+)"')


def main(page: str) -> str:
    return page[page.index("<main") : page.index("</main>")]


async def save(desk: Desk, path: str = "/inbox/inboxes", **typed: str) -> str:
    """Fills in the form and gives back where it leads, or what it says."""
    done = await desk.ana.post(path, data=typed, headers=FROM_HERE)
    if done.status_code == 303:
        return str(done.headers["location"])
    assert done.status_code in (409, 422), done.text
    return done.text


async def added(desk: Desk, **typed: str) -> str:
    there = await save(desk, **typed)
    assert there.startswith("/inbox?inbox="), there
    return there.partition("=")[2]


@pytest.mark.promise("INBOX-04", "INBOX-05", "INBOX-06", "INBOX-07")
async def test_add_inbox_asks_for_exactly_three_things(desk: Desk) -> None:
    page = (await desk.ana.get("/inbox/inboxes/new")).text
    assert FIELD.findall(main(page)) == ["graph_id", "url", "name"]
    for label, id in (("Assistant/Graph ID", "graph_id"), ("Deployment URL", "url"), ("Name", "name")):
        assert re.search(rf'<label for="inbox_{id}">{label}', page)
    assert f'value="{LOOPBACK}"' in page
    assert re.findall(r'id="(\w+)"[^>]* required', page) == ["inbox_graph_id", "inbox_url"]
    assert '<option value="ask">' in page
    assert 'href="/inbox/inboxes/new"' in (await desk.ana.get("/inbox")).text


@pytest.mark.promise("INBOX-01", "INBOX-05", "INBOX-07", "INBOX-32")
async def test_a_graphs_inbox_stands_in_the_sidebar_with_its_count(desk: Desk) -> None:
    asked, stopped = await desk.raised("Shall I?"), await desk.pause("stop", {})
    page = (await desk.ana.get("/inbox/inboxes/new")).text
    inbox_id = await added(desk, graph_id="ask", url=LOOPBACK, name="", **hidden(page, "/inbox/inboxes"))
    side = (await desk.ana.get("/inbox")).text
    row = side[side.index(f'href="/inbox?inbox={inbox_id}"') :][:600]
    assert "#i-local" in row
    assert "<span>ask</span>" in row
    assert '<span class="count">1</span>' in row
    [view] = (await desk.ana.get("/api/inboxes")).json()
    assert (view["filter"], view["graph_id"], view["local"], view["count"]) == ("graph:ask", "ask", True, 1)
    chosen = main((await desk.ana.get(f"/inbox?inbox={inbox_id}")).text)
    assert asked["id"] in chosen
    assert stopped["id"] not in chosen


async def test_an_assistants_id_will_do_and_the_name_is_ones_own(desk: Desk) -> None:
    [assistant] = (await desk.ana.post("/assistants/search", json={"graph_id": "ask"})).json()
    inbox_id = await added(desk, graph_id=assistant["assistant_id"], url="http://LOCALHOST:2024/", name="<b>Mine</b>")
    page = (await desk.ana.get("/inbox")).text
    assert "&lt;b&gt;Mine&lt;/b&gt;" in page
    assert "<b>Mine" not in page
    view = (await desk.ana.get(f"/api/inboxes/{inbox_id}")).json()
    assert view["filter"] == f"assistant:{assistant['assistant_id']}"


@pytest.mark.promise("INBOX-05", "INBOX-06")
@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ({"graph_id": "nothing"}, "graph or assistant &#39;nothing&#39; not found"),
        ({"graph_id": ""}, "Assistant/Graph ID is missing"),
        ({"url": ""}, "Deployment URL is missing"),
        ({"url": "https://remote.example:8123"}, "not one of the deployments that it follows"),
        ({"url": "nonsense"}, "not a valid server address"),
        ({"name": "x" * 101}, "at most 100"),
    ],
)
async def test_mistakes_are_told_and_nothing_typed_is_lost(desk: Desk, typed: dict[str, str], why: str) -> None:
    sent = {"graph_id": "ask", "url": LOOPBACK, "name": "Mine"} | typed
    page = await save(desk, **sent)
    assert why in page
    assert 'role="alert"' in page
    for name, value in sent.items():
        assert f'name="{name}"' in page
        assert f'value="{value}"' in page
    assert (await desk.ana.get("/api/inboxes")).json() == []


async def test_a_search_is_saved_changed_and_removed(desk: Desk) -> None:
    await desk.ask(title="Refund order 598")
    page = (await desk.ana.get("/inbox/inboxes/new", params={"q": "is:pending refund"})).text
    assert "Save this search" in page
    assert FIELD.findall(main(page)) == ["name", "filter"]
    assert 'value="is:pending refund"' in page
    unnamed = await save(desk, search="1", name="", filter="is:pending refund")
    assert "needs a name" in unnamed
    wrong = await save(desk, search="1", name="Refunds", filter="colour:blue")
    assert "unknown field" in wrong
    assert 'value="colour:blue"' in wrong
    inbox_id = await added(desk, search="1", name="Refunds", filter="is:pending refund")
    path = f"/inbox/inboxes/{inbox_id}"
    edit = (await desk.ana.get(path)).text
    assert 'value="Refunds"' in edit
    assert (await save(desk, path, search="1", name="Money", filter="refund")) == f"/inbox?inbox={inbox_id}"
    assert "unknown field" in await save(desk, path, search="1", name="Money", filter="colour:blue")
    [view] = (await desk.ana.get("/api/inboxes")).json()
    assert (view["name"], view["filter"], view["count"]) == ("Money", "refund", 1)
    assert (await desk.ana.post(f"{path}/removal", headers=FROM_HERE)).headers["location"] == "/inbox"
    assert (await desk.ana.get("/api/inboxes")).json() == []
    assert (await desk.ana.get(path)).status_code == 404


@pytest.mark.promise("INBOX-30")
async def test_removing_and_adding_again_reads_the_deployment_anew(desk: Desk) -> None:
    made = await desk.ana.post("/assistants", json={"graph_id": "ask", "name": "before"})
    assistant = made.json()["assistant_id"]
    first = await added(desk, graph_id=assistant, url=LOOPBACK)
    await desk.ana.patch(f"/assistants/{assistant}", json={"name": "after"})
    await desk.ana.post(f"/inbox/inboxes/{first}/removal", headers=FROM_HERE)
    await added(desk, graph_id=assistant, url="http://localhost:2024")
    [view] = (await desk.ana.get("/api/inboxes")).json()
    assert (view["name"], view["url"]) == ("after", "http://localhost:2024")


async def test_pressing_twice_adds_one(desk: Desk) -> None:
    page = (await desk.ana.get("/inbox/inboxes/new")).text
    sent = {"graph_id": "ask", "url": LOOPBACK, **hidden(page, "/inbox/inboxes")}
    assert await added(desk, **sent) == await added(desk, **sent)
    assert len((await desk.ana.get("/api/inboxes")).json()) == 1


async def test_others_do_not_see_them_and_no_page_elsewhere_adds_any(desk: Desk) -> None:
    inbox_id = await added(desk, graph_id="ask", url=LOOPBACK)
    ben = await desk.house.signed_in("ben")
    assert (await ben.get(f"/inbox/inboxes/{inbox_id}")).status_code == 404
    for path in ("/inbox/inboxes", f"/inbox/inboxes/{inbox_id}", f"/inbox/inboxes/{inbox_id}/removal"):
        refused = await desk.ana.post(path, data={"graph_id": "ask"}, headers={"origin": "https://evil.example"})
        assert refused.status_code == 403, path
    assert [one["id"] for one in (await desk.ana.get("/api/inboxes")).json()] == [inbox_id]


async def test_it_works_in_a_browser_without_scripts(server: Server, browser: Browser) -> None:
    async with await browser.new_context(java_script_enabled=False, base_url=server.url) as context:
        page = await context.new_page()
        key = server.said["reviewer key"].split()[0]
        await page.request.post("/api/session", data={"credential": key}, headers={"origin": server.url})
        await page.goto("/inbox/inboxes/new")
        await page.get_by_label("Assistant/Graph ID").fill("email_draft")
        await page.get_by_label("Name", exact=False).last.fill("Drafts without scripts")
        await page.get_by_role("main").get_by_role("button", name="Add Inbox").click()
        await page.wait_for_url("**/inbox?inbox=*")
        await expect(page.get_by_role("link", name="Drafts without scripts")).to_be_visible()


async def test_the_page_is_quiet(server: Server, link: str, quiet_page: Page) -> None:
    await quiet_page.goto(link)
    await quiet_page.wait_for_url("**/inbox")
    await quiet_page.goto(f"{server.url}/inbox/inboxes/new")
    await expect(quiet_page.get_by_role("heading", name="Add Inbox")).to_be_visible()
    await expect(quiet_page.get_by_label("Assistant/Graph ID")).to_be_focused()
