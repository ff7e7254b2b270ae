"""The list and the item, without a browser: what is shown, and what becomes of every form."""

import re
from typing import Any

import pytest

from assent.identity.model.access import Kind, Role
from assent.review.model.secrets import MASK
from assent.review.rows import items
from tests.api.house import LOOPBACK
from tests.web.conftest import DECIDED, Desk, hidden

REFUND: dict[str, Any] = {
    "order": 598,
    "amount": 598.0,
    "ref": 12345678901234567890,
    "note": "paid twice",
    "fast": True,
}

EMAIL: dict[str, Any] = {
    "action_request": {"action": "send_email", "args": {"to": "a@b.c", "body": "Hello"}},
    "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": True},
    "description": "Please review",
}
CALL = {"type": "tool_approval", "name": "send_email", "args": {"to": "a@b.c"}, "tool_call_id": "call_1"}


def action(**facts: Any) -> dict[str, Any]:
    return {"name": "refund", "args": dict(REFUND)} | facts


def untouched(**changes: str) -> dict[str, str]:
    """What a browser sends of an edit form, as it was shown but for these changes."""
    shown = {"order": "598", "amount": "598.0", "ref": "12345678901234567890", "note": "paid twice", "fast": "true"}
    raw = '{"amount":598.0,"fast":true,"note":"paid twice","order":598,"ref":12345678901234567890}'
    return {f"a0.arg.{name}": value for name, value in (shown | changes).items()} | {"a0.raw": raw}


class TestList:
    @pytest.mark.promise("REVIEW-03", "REVIEW-04", "REVIEW-06")
    async def test_what_waits_and_what_is_decided_are_listed_apart_with_counts(self, desk: Desk) -> None:
        first, second = await desk.ask(title="Refund order 1"), await desk.ask(title="Refund order 2")
        await desk.decide(first["id"], "approve")
        pending, resolved = (await desk.ana.get("/inbox")).text, (await desk.ana.get("/inbox?tab=resolved")).text
        for page in (pending, resolved):
            assert re.search(r'Pending <span class="count">1<', page)
            assert re.search(r'Resolved <span class="count">1<', page)
        assert second["id"] in pending
        assert first["id"] not in pending
        assert first["id"] in resolved
        assert "Approved" in resolved
        assert '<time datetime="' in pending
        assert "Tool call" in pending

    @pytest.mark.promise("REVIEW-05", "REVIEW-50", "INBOX-31")
    async def test_the_search_is_the_filter_language_and_stands_in_the_address(self, desk: Desk) -> None:
        item = await desk.ask(title="Refund order 598")
        await desk.ask(title="Other", type="config_change")
        for q in ("598", "type:tool", "is:pending type:tool", '"order 598"'):
            page = (await desk.ana.get("/inbox", params={"q": q})).text
            assert item["id"] in page, q
            assert "Other" not in page, q
        page = (await desk.ana.get("/inbox", params={"q": "598", "tab": "resolved"})).text
        assert "No items match this search" in page
        assert 'value="598"' in page

    async def test_a_search_that_is_not_understood_is_told_beside_it(self, desk: Desk) -> None:
        for q in ("colour:red", '"open', "older:soon"):
            page = await desk.ana.get("/inbox", params={"q": q})
            assert page.status_code == 422
            assert 'role="alert"' in page.text
            assert 'type="search"' in page.text

    async def test_older_ones_are_a_page_further(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("assent.surfaces.web.views.item_list.PAGE", 2)
        made = [(await desk.ask(title=f"Refund {n}"))["id"] for n in range(3)]
        page = (await desk.ana.get("/inbox")).text
        assert [id for id in made if id in page] == made[1:]
        found = re.search(r'rel="next" href="([^"]+)"', page)
        assert found
        older = (await desk.ana.get(found[1].replace("&amp;", "&"))).text
        assert [id for id in made if id in older] == made[:1]
        assert "Newest" in older

    async def test_empty_lists_say_what_is_next(self, desk: Desk) -> None:
        assert "You’re all caught up" in (await desk.ana.get("/inbox")).text
        assert "No decisions yet" in (await desk.ana.get("/inbox?tab=resolved")).text

    async def test_what_is_not_there_is_a_page_that_says_so(self, desk: Desk) -> None:
        page = await desk.ana.get("/inbox/0197c5a0-0000-7000-8000-000000000000")
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "Back to the inbox" in page.text

    async def test_another_tenants_item_is_not_there(self, desk: Desk) -> None:
        other = desk.house.client(await desk.house.key(tenant="elsewhere"))
        made = (await other.post("/api/inbox/items", json={"type": "tool", "title": "Secret plan"})).json()
        assert (await desk.ana.get(f"/inbox/{made['id']}")).status_code == 404
        assert "Secret plan" not in (await desk.ana.get(f"/inbox?done={made['id']}")).text


class TestDeciding:
    @pytest.mark.promise("REVIEW-08", "REVIEW-16", "REVIEW-20", "INBOX-11")
    async def test_approve_leads_to_the_next_and_tells_the_truth(self, desk: Desk) -> None:
        other = await desk.ask(title="Older")
        item = await desk.raised(EMAIL)
        response = await desk.decide(item["id"], "approve")
        assert (response.status_code, response.headers["location"]) == (303, f"/inbox/{other['id']}?done={item['id']}")
        page = (await desk.ana.get(response.headers["location"])).text
        assert re.search(r"<strong>Approved:</strong> <a [^>]*>Send email: to a@b.c, body Hello</a>", page)
        assert hidden(page, f"/inbox/{item['id']}/undo")
        assert await desk.answer(item) == [{"type": "accept", "args": EMAIL["action_request"]}]
        assert ((await desk.item(item["id"]))["decisions"][0]["via"]) == "web"

    @pytest.mark.promise("INBOX-12", "INBOX-18")
    async def test_only_touched_fields_change(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        await desk.decide(item["id"], "edit", **untouched(note="paid\nthree times"))
        decided = await desk.item(item["id"])
        assert (decided["status"], decided["resolution"]) == ("APPROVED", "edited")
        assert decided["actions"][0]["args_text"] == (
            '{"amount":598.0,"fast":true,"note":"paid\\nthree times","order":598,"ref":12345678901234567890}'
        )
        page = await desk.open(item["id"])
        assert "Approved with 1 change" in page
        assert re.search(r"<del>.*?paid twice.*?</del>", page, re.DOTALL)
        listed = (await desk.ana.get(f"/inbox?done={item['id']}")).text
        assert "<strong>Approved with 1 change:</strong>" in listed

    async def test_an_untouched_edit_is_an_approval(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        await desk.decide(item["id"], "edit", **untouched())
        decided = await desk.item(item["id"])
        assert (decided["resolution"], decided["revision"]) == ("accepted", 1)

    async def test_numbers_and_ticks_are_edited_exactly(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        sent = untouched(order="599", ref="9876543210987654321")
        del sent["a0.arg.fast"]
        await desk.decide(item["id"], "edit", **sent)
        text = (await desk.item(item["id"]))["actions"][0]["args_text"]
        assert text == '{"amount":598.0,"fast":false,"note":"paid twice","order":599,"ref":9876543210987654321}'

    async def test_the_arguments_can_be_edited_as_json_but_not_in_both_ways(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        both = await desk.decide(item["id"], "edit", **(untouched(note="x") | {"a0.raw": '{"order": 1}'}))
        assert both.status_code == 422
        assert "not both" in both.text
        broken = await desk.decide(item["id"], "edit", **(untouched() | {"a0.raw": '{"order": 1, "order": 2}'}))
        assert broken.status_code == 422
        assert "is not JSON" in broken.text
        done = await desk.decide(item["id"], "edit", **(untouched() | {"a0.raw": '{"order": 1}'}))
        assert done.status_code == 303
        assert (await desk.item(item["id"]))["actions"][0]["args"] == {"order": 1}

    async def test_what_does_not_fit_is_told_and_what_was_typed_is_kept(self, desk: Desk) -> None:
        schema = {"type": "object", "properties": {"order": {"type": "integer"}}}
        item = await desk.ask(actions=[action(schema=schema)])
        for typed, told in (("many", "is not JSON"), ('"5"', "must be a number"), ("5.5", "order")):
            response = await desk.decide(item["id"], "edit", **untouched(order=typed, note="my long note"))
            assert response.status_code == 422, typed
            assert told in response.text
            assert "my long note</textarea>" in response.text
        assert (await desk.item(item["id"]))["status"] == "PENDING"

    @pytest.mark.promise("REVIEW-17")
    @pytest.mark.usefixtures("at_once")
    async def test_reject_with_a_reason(self, desk: Desk) -> None:
        item = await desk.raised(CALL)
        response = await desk.decide(item["id"], "reject", **{"a0.message": "Not today"})
        assert response.headers["location"] == f"/inbox?done={item['id']}"
        decided = await desk.item(item["id"])
        assert (decided["status"], decided["decisions"][0]["actions"][0]["message"]) == ("REJECTED", "Not today")
        assert await desk.answer(item) == {"type": "reject", "message": "Not today"}

    @pytest.mark.promise("INBOX-13", "INBOX-14")
    @pytest.mark.parametrize(
        ("verb", "typed", "sent"),
        [
            ("respond", {"a0.message": "Write it shorter"}, {"type": "response", "args": "Write it shorter"}),
            ("ignore", {}, {"type": "ignore", "args": None}),
        ],
    )
    @pytest.mark.usefixtures("at_once")
    async def test_respond_and_ignore(self, desk: Desk, verb: str, typed: dict[str, str], sent: dict[str, Any]) -> None:
        item = await desk.raised(EMAIL)
        assert (await desk.decide(item["id"], verb, **typed)).status_code == 303
        assert await desk.answer(item) == [sent]

    @pytest.mark.promise("INBOX-15")
    async def test_only_what_is_allowed_is_offered_and_taken(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action(allowed=["approve", "respond"])])
        page = await desk.open(item["id"])
        offered = set(re.findall(r'name="verb" value="(\w+)"', page))
        assert offered == {"approve", "respond"}
        refused = await desk.decide(item["id"], "reject")
        assert refused.status_code == 422
        assert "reject is not allowed here" in refused.text

    @pytest.mark.promise("INBOX-20", "INBOX-27")
    @pytest.mark.parametrize(
        ("typed", "answer"),
        [({"a0.message": "left"}, "left"), ({"a0.raw": '{"n": 598.0}'}, {"n": 598.0})],
    )
    @pytest.mark.usefixtures("at_once")
    async def test_a_raw_question_takes_text_or_json(self, desk: Desk, typed: dict[str, str], answer: Any) -> None:
        item = await desk.raised("which?")
        assert (await desk.decide(item["id"], "respond", **typed)).status_code == 303
        assert await desk.answer(item) == answer

    @pytest.mark.usefixtures("at_once")
    async def test_a_breakpoint_goes_on(self, desk: Desk) -> None:
        item = await desk.pause("stop", {"ask": "x"})
        assert "publish" in await desk.open(item["id"])
        assert (await desk.decide(item["id"], "approve")).status_code == 303
        assert await desk.answer(item) == "went on"

    async def test_several_actions_are_decided_one_by_one_in_one_form(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action(key=key) for key in ("one", "two", "three")])
        incomplete = await desk.send(item["id"], "decision", **{"a0.verb": "approve", "a1.verb": "approve"})
        assert incomplete.status_code == 422
        assert "choose a decision" in incomplete.text
        lost = await desk.send(
            item["id"], "decision", **({f"a{n}.verb": "approve" for n in range(3)} | untouched(note="changed"))
        )
        assert lost.status_code == 422
        assert "approve with the changes, or discard them" in lost.text
        sent = {"a0.verb": "edit", "a1.verb": "reject", "a1.message": "No", "a2.verb": "approve"}
        done = await desk.send(item["id"], "decision", **(sent | untouched(order="1")))
        assert done.status_code == 303
        decided = await desk.item(item["id"])
        assert [one["verb"] for one in decided["decisions"][-1]["actions"]] == ["edit", "reject", "approve"]
        assert decided["resolution"] == "partial"

    @pytest.mark.promise("REVIEW-27")
    async def test_what_is_of_high_risk_is_asked_twice(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        await desk.change("UPDATE items SET risk = 'high'")
        assert "High risk" in (await desk.ana.get("/inbox")).text
        page = await desk.open(item["id"])
        assert "High risk" in page
        assert "12345678901234567890" in page
        hasty = await desk.decide(item["id"], "approve")
        assert hasty.status_code == 422
        assert "confirm that you reviewed the arguments" in hasty.text
        assert (await desk.decide(item["id"], "approve", sure="yes")).status_code == 303

    async def test_all_at_once(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action(key=key) for key in ("one", "two")])
        assert "Reject all 2" in await desk.open(item["id"])
        assert (await desk.decide(item["id"], "reject")).status_code == 303
        assert (await desk.item(item["id"]))["status"] == "REJECTED"


class TestConflicts:
    @pytest.mark.promise("P5")
    async def test_a_stale_page_shows_what_changed_and_keeps_what_was_typed(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        page = await desk.open(item["id"])
        await desk.send(item["id"], "revision-request", revision_notes="Half of it")
        changed = {"actions": [action(args=REFUND | {"amount": 299})]}
        assert (await desk.agent.post(f"/api/inbox/items/{item['id']}/resubmission", json=changed)).status_code == 200
        response = await desk.send(item["id"], "decision", page=page, verb="edit", **untouched(note="My words"))
        assert response.status_code == 409
        assert "The request has changed since you viewed it" in response.text
        assert re.search(r"<del>.*?598\.0</del>\s*<ins>.*?299</ins>", response.text, re.DOTALL)
        assert "My words</textarea>" in response.text
        assert 'name="a0.arg.amount" value="299"' in response.text, "what was not touched is as it is now"
        assert (await desk.item(item["id"]))["status"] == "PENDING"
        again = await desk.send(item["id"], "decision", page=response.text, verb="edit", **untouched(amount="299"))
        assert again.status_code == 303

    @pytest.mark.promise("P4")
    async def test_who_comes_second_reads_who_was_first(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        page = await desk.open(item["id"])
        bob = desk.house.client(await desk.house.person("bob"))
        body = {"revision": 1, "hash": item["hash"], "verb": "approve"}
        assert (await bob.post(f"/api/inbox/items/{item['id']}/decision", json=body)).status_code == 200
        response = await desk.send(item["id"], "decision", page=page, verb="reject", **{"a0.message": "My reason"})
        assert response.status_code == 409
        assert "bob already approved this" in response.text
        assert "My reason" in response.text
        assert 'value="approve"' not in response.text, "there is nothing to decide any more"

    @pytest.mark.promise("P3")
    async def test_a_second_click_changes_nothing(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        page = await desk.open(item["id"])
        for _ in range(2):
            response = await desk.send(item["id"], "decision", page=page, verb="edit", **untouched(note="once"))
            assert response.status_code == 303
        assert len((await desk.item(item["id"]))["decisions"]) == 1

    async def test_who_may_not_decide_sees_no_buttons_and_is_refused(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        page = await desk.open(item["id"])
        viewer = await desk.house.signed_in("vera", Role.VIEWER)
        shown = (await viewer.get(f"/inbox/{item['id']}")).text
        assert 'name="verb"' not in shown
        data = hidden(page, f"/inbox/{item['id']}/decision") | {"verb": "approve"}
        refused = await viewer.post(f"/inbox/{item['id']}/decision", data=data)
        assert refused.status_code == 403
        assert "may not decide" in refused.text
        assert (await desk.item(item["id"]))["status"] == "PENDING"

    @pytest.mark.promise("P6")
    async def test_an_agents_key_decides_nothing_here_either(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        data = hidden(await desk.open(item["id"]), f"/inbox/{item['id']}/decision") | {"verb": "approve"}
        for kind in (Kind.AGENT, Kind.SERVICE):
            client = desk.house.client(await desk.house.key(kind))
            assert (await client.post(f"/inbox/{item['id']}/decision", data=data)).status_code == 403
        assert (await desk.item(item["id"]))["status"] == "PENDING"

    @pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}])
    async def test_a_page_elsewhere_cannot_decide(self, desk: Desk, headers: dict[str, str]) -> None:
        item = await desk.ask(actions=[action()])
        data = hidden(await desk.open(item["id"]), f"/inbox/{item['id']}/decision") | {"verb": "approve"}
        response = await desk.ana.post(f"/inbox/{item['id']}/decision", data=data, headers=headers)
        assert response.status_code == 403
        assert (await desk.item(item["id"]))["status"] == "PENDING"


class TestUndo:
    async def test_a_decision_can_be_taken_back_for_a_while(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        await desk.decide(item["id"], "approve")
        response = await desk.send(item["id"], "undo")
        assert response.headers["location"] == f"/inbox/{item['id']}?done={item['id']}"
        page = (await desk.ana.get(response.headers["location"])).text
        assert "<strong>Undone:</strong>" in page
        assert 'value="approve"' in page
        assert "undid the decision" in page

    async def test_later_it_is_too_late_and_says_so(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        await desk.decide(item["id"], "approve")
        page = await desk.open(item["id"])
        desk.house.pass_time(DECIDED)
        response = await desk.send(item["id"], "undo", page=page)
        assert response.status_code == 409
        assert "too late" in response.text

    async def test_the_page_says_for_how_long(self, desk: Desk) -> None:
        assert "undo a decision for 5 seconds" in (await desk.ana.get("/inbox/help")).text

    @pytest.mark.usefixtures("at_once")
    async def test_where_nothing_is_taken_back_nobody_is_offered_it(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        done = await desk.decide(item["id"], "approve")
        assert "/undo" not in (await desk.ana.get(done.headers["location"])).text
        assert "taken back" not in (await desk.ana.get("/inbox/help")).text

    async def test_somebody_else_is_not_offered_it(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        await desk.decide(item["id"], "approve")
        bob = await desk.house.signed_in("bob")
        assert "/undo" not in (await bob.get(f"/inbox/{item['id']}?done={item['id']}")).text


class TestRevisions:
    @pytest.mark.promise("REVIEW-07", "REVIEW-09", "REVIEW-18", "REVIEW-22", "REVIEW-47")
    async def test_a_revision_is_asked_for_with_notes_and_its_changes_are_shown(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        bare = await desk.send(item["id"], "revision-request", revision_notes="  ")
        assert bare.status_code == 422
        assert "describe the change that is needed" in bare.text
        assert (await desk.send(item["id"], "revision-request", revision_notes="Half of it")).status_code == 303
        page = await desk.open(item["id"])
        assert "Revision requested" in page
        assert "Half of it" in page
        changed = {"actions": [action(args=REFUND | {"amount": 299})]}
        await desk.agent.post(f"/api/inbox/items/{item['id']}/resubmission", json=changed)
        page = await desk.open(item["id"])
        assert "revision 2" in page
        assert re.search(r"<del>.*?598\.0</del>\s*<ins>.*?299</ins>", page, re.DOTALL)
        assert page.index("Half of it") < page.index('id="decision"'), "the notes stand above the buttons"
        assert "r2" in (await desk.ana.get("/inbox")).text

    async def test_an_agent_in_a_run_is_resumed_with_the_notes(self, desk: Desk) -> None:
        item = await desk.raised(EMAIL)
        assert (await desk.send(item["id"], "revision-request", revision_notes="Shorter")).status_code == 303
        assert "Waiting for a new revision from the agent." in await desk.open(item["id"])
        assert await desk.answer(item) == [{"type": "response", "args": "Shorter"}]

    @pytest.mark.promise("REVIEW-12")
    @pytest.mark.usefixtures("at_once")
    async def test_paused_agent_receives_comments_with_the_notes(self, desk: Desk) -> None:
        item = await desk.raised(EMAIL)
        await desk.send(item["id"], "comments", comment="The customer prefers letters")
        assert (await desk.send(item["id"], "revision-request", revision_notes="Shorter")).status_code == 303
        notes = "Shorter\n\nComments:\nana: The customer prefers letters"
        assert await desk.answer(item) == [{"type": "response", "args": notes}]

    async def test_it_can_be_taken_back_as_well(self, desk: Desk) -> None:
        item = await desk.raised(EMAIL)
        await desk.send(item["id"], "revision-request", revision_notes="Shorter")
        assert (await desk.send(item["id"], "undo")).status_code == 303
        assert (await desk.item(item["id"]))["status"] == "PENDING"

    async def test_it_is_not_offered_where_the_agent_cannot_hear_it(self, desk: Desk) -> None:
        item = await desk.raised("which?")
        assert "Request revision" not in await desk.open(item["id"])


class TestTheRest:
    async def test_marking_as_resolved_asks_first(self, desk: Desk) -> None:
        item = await desk.raised(EMAIL)
        assert f"/inbox/{item['id']}/cancel" in await desk.open(item["id"])
        asked = await desk.ana.get(f"/inbox/{item['id']}/cancel")
        assert "You cannot undo this." in asked.text
        response = await desk.send(item["id"], "cancellation", page=asked.text, cancel_notes="Not needed")
        assert response.status_code == 303
        assert (await desk.item(item["id"]))["status"] == "CANCELLED"
        again = await desk.send(item["id"], "cancellation", page=asked.text.replace("web_", "web_x"))
        assert again.status_code == 409

    @pytest.mark.promise("REVIEW-11", "REVIEW-13")
    async def test_comments_and_the_timeline(self, desk: Desk) -> None:
        item = await desk.ask()
        empty = await desk.send(item["id"], "comments", comment=" ")
        assert empty.status_code == 422
        response = await desk.send(item["id"], "comments", comment="Looks <b>fine</b> to me")
        assert response.headers["location"] == f"/inbox/{item['id']}#activity"
        page = await desk.open(item["id"])
        assert "Looks &lt;b&gt;fine&lt;/b&gt; to me" in page
        told = page[page.index('class="timeline"') :]
        assert told.index("created the request") < told.index("commented")

    @pytest.mark.promise("REVIEW-09", "REVIEW-10", "REVIEW-14", "REVIEW-29")
    async def test_everything_there_is_to_know_is_shown(self, desk: Desk) -> None:
        thread = (await desk.agent.post("/threads", json={})).json()["thread_id"]
        item = await desk.ask(
            type="config_change", payload={"limit": 40}, entity={"type": "queue", "id": "billing"}, thread_ids=[thread]
        )
        page = await desk.open(item["id"])
        for told in ("Config change", "limit", ">40<", thread, "Raw JSON"):
            assert told in page, told
        sidebar = page.split("<aside")[1].split("</aside>")[0]
        for told in ("Pending", "Config change", "queue", "billing", "Created", "Expires", "Revision", item["hash"]):
            assert told in sidebar, told
        assert "<select" not in sidebar
        assert 'name="status"' not in sidebar
        assert (await desk.decide(item["id"], "approve")).status_code == 303

    async def test_a_secret_is_masked_and_an_edit_leaves_it_as_it_is(self, desk: Desk) -> None:
        schema = {"properties": {"password": {"type": "string", "writeOnly": True}}}
        args = {"user": "a", "password": "hunter2"}
        item = await desk.ask(actions=[{"name": "login", "args": args, "schema": schema}])
        page = await desk.open(item["id"])
        assert "hunter2" not in page
        sent = {"a0.arg.user": "b", "a0.arg.password": MASK, "a0.raw": item["actions"][0]["args_text"]}
        assert (await desk.decide(item["id"], "edit", **sent)).status_code == 303
        page = await desk.open(item["id"])
        assert "hunter2" not in page
        assert "Approved with 1 change" in page
        stored = await desk.house.services.store.read("default", lambda tx: items.revision(tx, item["id"], 2))
        assert stored.edits["0"]["args"] == {"user": "b", "password": "hunter2"}

    async def test_a_secret_is_shown_to_who_may_decide_and_the_timeline_keeps_it(self, desk: Desk) -> None:
        schema = {"properties": {"password": {"type": "string", "writeOnly": True}}}
        asked = [{"name": "login", "args": {"password": "hunter2"}, "schema": schema}]
        item = await desk.ask(actions=asked)
        assert "Show the secrets" in await desk.open(item["id"])
        there = f"/inbox/{item['id']}/reveal"
        shown = await desk.ana.post(there, headers={"origin": LOOPBACK, "sec-fetch-site": "same-origin"})
        assert "hunter2" in shown.text
        assert shown.headers["cache-control"] == "no-store"
        assert "viewed the secrets" in await desk.open(item["id"])
        assert "hunter2" not in await desk.open(item["id"])
        stranger = desk.house.client(await desk.house.key())
        assert (await stranger.post(f"/api{there}".replace("inbox/", "inbox/items/"))).status_code == 403
        plain = await desk.ask()
        assert "Show the secrets" not in await desk.open(plain["id"])

    async def test_a_delivery_that_failed_can_be_tried_again(self, desk: Desk) -> None:
        item = await desk.raised(EMAIL)
        refused = await desk.ana.post(f"/inbox/{item['id']}/delivery", data={})
        assert refused.status_code == 409
        assert "nothing to deliver" in refused.text
        await desk.decide(item["id"], "approve")
        await desk.change("UPDATE deliveries SET status = 'failed', failure = 'the thread <is> gone', due_at = NULL")
        page = await desk.open(item["id"])
        assert "Not delivered" in page
        assert "the thread &lt;is&gt; gone" in page
        assert (await desk.send(item["id"], "delivery", page=page)).status_code == 303
        assert await desk.answer(item)

    @pytest.mark.parametrize(
        ("outcome", "execution"), [("done", "done"), ("run_again", "granted"), ("abandon", "abandoned")]
    )
    async def test_a_person_says_what_became_of_a_call_in_doubt(self, desk: Desk, outcome: str, execution: str) -> None:
        item = await desk.raised(EMAIL)
        await desk.decide(item["id"], "approve")
        await desk.change("UPDATE items SET execution = 'in_doubt', doubt_id = interrupt_id")
        assert "In doubt" in (await desk.ana.get("/inbox")).text
        page = await desk.open(item["id"])
        assert "its result is unknown" in page
        unclear = await desk.send(item["id"], "in-doubt", outcome="perhaps", doubt_notes="I looked")
        assert unclear.status_code == 422
        assert "I looked</textarea>" in unclear.text
        done = await desk.send(item["id"], "in-doubt", outcome=outcome, doubt_notes="It is there")
        assert (done.status_code, (await desk.item(item["id"]))["execution"]) == (303, execution)
        assert "recorded the outcome" in await desk.open(item["id"])

    async def test_the_servers_facts_have_a_page_of_their_own(self, desk: Desk) -> None:
        page = (await desk.ana.get("/inbox/settings")).text
        assert "This server" in page
        assert "ana" in page


class TestBulk:
    async def _send(self, desk: Desk, *items: dict[str, Any], **facts: Any) -> str:
        chosen = [f"{one['id']} {one['revision']} {one['hash']}" for one in items]
        sent = {"do": "approval", "chosen": chosen} | facts
        response = await desk.ana.post(
            "/inbox/bulk", data=sent, headers={"origin": LOOPBACK, "sec-fetch-site": "same-origin"}
        )
        assert response.status_code == 200, response.text
        return response.text

    async def test_a_preview_decides_nothing_and_says_what_each_would_do(self, desk: Desk) -> None:
        one, two = await desk.ask(actions=[action()]), await desk.ask(title="Two")
        stale = {**two, "hash": "0" * 64}
        page = await self._send(desk, one, stale)
        assert "Approve 1 of 2?" in page
        assert "paid twice" in page, "the arguments as they will run"
        assert "Will be approved" in page
        assert [(await desk.item(each["id"]))["status"] for each in (one, two)] == ["PENDING", "PENDING"]

    async def test_once_sure_each_is_decided_for_itself(self, desk: Desk) -> None:
        one, two = await desk.ask(title="One"), await desk.ask(title="Two")
        await desk.decide(two["id"], "reject")
        page = await self._send(desk, one, two, sure="yes", key="k-1")
        assert "1 of 2 decided" in page
        assert [(await desk.item(each["id"]))["status"] for each in (one, two)] == ["APPROVED", "REJECTED"]
        again = await self._send(desk, one, sure="yes", key="k-1")
        assert "1 of 1 decided" in again, "the same form sent twice does nothing more, and says so truly"

    async def test_a_reason_goes_with_a_rejection(self, desk: Desk) -> None:
        item = await desk.ask()
        await self._send(desk, item, do="rejection", sure="yes", message="Not today")
        decided = await desk.item(item["id"])
        assert decided["status"] == "REJECTED"
        assert decided["decisions"][0]["actions"][0]["message"] == "Not today"

    async def test_high_risk_is_never_approved_in_bulk(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        await desk.change("UPDATE items SET risk = 'high'")
        page = await self._send(desk, item, sure="yes")
        assert "Approve high-risk items one at a time." in page
        assert (await desk.item(item["id"]))["status"] == "PENDING"
        await self._send(desk, item, do="rejection", sure="yes")
        assert (await desk.item(item["id"]))["status"] == "REJECTED", "the control: no is always safe"

    async def test_nonsense_is_left_out(self, desk: Desk) -> None:
        page = await self._send(desk, chosen=["x", "a b c", "../../etc 1 2"])
        assert "Approve 0 of 1?" in page
        assert "Item not found." in page


class TestWorkingTogether:
    async def test_a_snoozed_item_is_out_of_sight_until_it_wakes(self, desk: Desk) -> None:
        item = await desk.ask()
        await desk.send(item["id"], "snooze", **{"for": "1h"})
        assert item["id"] not in (await desk.ana.get("/inbox")).text
        assert item["id"] in (await desk.ana.get("/inbox?q=is:snoozed")).text
        assert "Snoozed: back" in await desk.open(item["id"])
        await desk.send(item["id"], "snooze")
        assert item["id"] in (await desk.ana.get("/inbox")).text

    async def test_who_is_on_it_is_shown_to_the_others(self, desk: Desk) -> None:
        item = await desk.ask()
        ben = await desk.house.signed_in("ben")
        await desk.send(item["id"], "claim")
        assert "ana claimed this" in (await ben.get(f"/inbox/{item['id']}")).text
        assert "is deciding" not in await desk.open(item["id"])
        await desk.send(item["id"], "claim", release="yes")
        assert "is deciding" not in (await ben.get(f"/inbox/{item['id']}")).text

    async def test_who_else_is_looking_is_shown(self, desk: Desk) -> None:
        item = await desk.ask()
        ben = await desk.house.signed_in("ben")
        assert "viewing" not in await desk.open(item["id"])
        assert "ana is viewing this" in " ".join((await ben.get(f"/inbox/{item['id']}")).text.split())
        assert "ben" in (await desk.ana.get(f"/inbox/{item['id']}/presence")).text
        other = await desk.ask()
        assert "ben" not in (await desk.ana.get(f"/inbox/{other['id']}/presence")).text

    async def test_a_draft_is_there_again_and_only_for_its_author(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        draft = {"hash": item["hash"], "typed": {"a0.arg.note": "half a thou", "a0.message": "because"}}
        saved = await desk.ana.put(f"/api/inbox/items/{item['id']}/draft", json={"draft": draft})
        assert saved.status_code == 200
        page = await desk.open(item["id"])
        assert "Your draft is restored below." in page
        assert "half a thou</textarea>" in page
        ben = await desk.house.signed_in("ben")
        assert "half a thou" not in (await ben.get(f"/inbox/{item['id']}")).text

    async def test_a_draft_for_an_earlier_revision_is_told_and_not_filled_in(self, desk: Desk) -> None:
        item = await desk.ask(actions=[action()])
        draft = {"hash": "0" * 64, "typed": {"a0.arg.note": "half a thou"}}
        await desk.ana.put(f"/api/inbox/items/{item['id']}/draft", json={"draft": draft})
        page = await desk.open(item["id"])
        assert "<q>half a thou</q>" in page
        assert "half a thou</textarea>" not in page

    @pytest.mark.parametrize("draft", [1, [], {"hash": 1}, {"typed": "x"}, {"typed": {"a": 1}}, "text"])
    async def test_any_draft_can_be_opened(self, desk: Desk, draft: Any) -> None:
        item = await desk.ask()
        await desk.ana.put(f"/api/inbox/items/{item['id']}/draft", json={"draft": draft})
        assert await desk.open(item["id"])


class TestResubmitting:
    @pytest.mark.promise("REVIEW-19")
    async def test_whoever_asked_asks_again_from_the_page(self, desk: Desk) -> None:
        cia = await desk.house.signed_in("cia", Role.ADMIN)
        asked = {"type": "tool", "title": "Mine", "actions": [action()]}
        made = await cia.post("/api/inbox/items", json=asked, headers={"origin": LOOPBACK})
        item = made.json()
        there = f"/inbox/{item['id']}"
        assert "resubmission" not in (await cia.get(there)).text
        await desk.send(item["id"], "revision-request", revision_notes="Half of it")
        assert "resubmission" not in await desk.open(item["id"]), "only who asked can"
        desk.house.pass_time(DECIDED)
        page = (await cia.get(there)).text
        sent = hidden(page, f"{there}/resubmission")
        headers = {"origin": LOOPBACK, "sec-fetch-site": "same-origin"}
        for written, status in (("{", 422), ('{"order":598,"amount":299}', 303)):
            again = sent | {"resubmit_args": written, "resubmit_description": "half"}
            assert (await cia.post(f"{there}/resubmission", data=again, headers=headers)).status_code == status
        now = await desk.item(item["id"])
        assert (now["status"], now["revision"], now["actions"][0]["args"]["amount"]) == ("PENDING", 2, 299)


class TestParts:
    async def test_a_part_is_what_stands_in_the_whole_page(self, desk: Desk) -> None:
        item = await desk.ask(title="Only one")
        whole = await desk.open(item["id"])
        for part in ("detail", "row", "list"):
            path = "/inbox" if part == "list" else f"/inbox/{item['id']}"
            found = (await desk.ana.get(path, headers={"assent-part": part})).text
            assert "Only one" in found
            assert "<html" not in found
        row = (await desk.ana.get(f"/inbox/{item['id']}", headers={"assent-part": "row"})).text
        assert (
            re.sub(r' aria-current="true"', "", row).strip().splitlines()[1:4]
            == [line for line in re.sub(r' aria-current="true"', "", whole).splitlines() if "<td" in line][:3]
        )

    async def test_parts_are_told_apart_by_caches(self, desk: Desk) -> None:
        assert (await desk.ana.get("/inbox")).headers["cache-control"] == "no-store"
