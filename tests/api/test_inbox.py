"""The inbox over REST: finding items, deciding them, taking back, sending back, working on them together."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Kind, Role
from tests.api.house import Builder
from tests.api.reviewing import GRAPHS, Item, Office, email, open_office, problem, script, staff
from tests.waiting import until

FORM = {
    "kind": "form_elicitation",
    "message": "How many?",
    "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
CONFIRMATION = {"kind": "confirmation", "tool_calls": [{"call_id": "c", "tool_name": "pay", "arguments": {"n": 598}}]}
CLARIFICATION = {"kind": "clarification", "clarifications": [{"call_id": "c", "question": "Which?", "context": ""}]}
LOGIN = {"kind": "oauth_url", "url": "https://example.com/login", "message": "Sign in", "elicitation_id": "e"}
BIG = 12345678901234567


@pytest.fixture
async def office(build: Builder) -> Office:
    return await open_office(build)


def review(args: dict[str, Any] | None = None, *, action: str = "send_email", **flags: bool) -> dict[str, Any]:
    config = {f"allow_{name}": True for name in ("ignore", "respond", "edit", "accept")} | flags
    return {"action_request": {"action": action, "args": args or {"to": "a@b.c"}}, "config": config, "description": "?"}


# Looking


async def test_question_becomes_an_item_with_all_its_fields(office: Office) -> None:
    item = await office.asked("hitl", {"text": "hi"})
    assert (item["status"], item["type"], item["dialect"], item["revision"]) == (
        "PENDING",
        "tool",
        "human_interrupt",
        1,
    )
    assert (item["title"], item["gated"], item["resolution"]) == ("send_email", True, None)
    assert item["source"]["deployment"] == "local"
    assert item["source"]["graph_id"] == "hitl"
    assert all(item["source"][name] for name in ("thread_id", "run_id", "interrupt_id", "assistant_id"))
    assert item["requester"].startswith("agent:")
    [action] = item["actions"]
    assert action["args"] == {"to": "a@b.c", "body": "hi"}
    assert action["args_text"] == '{"body":"hi","to":"a@b.c"}'
    assert action["allowed"] == ["approve", "edit", "respond", "ignore"]
    assert {"key", "name", "description", "schema", "risk"} <= action.keys()
    assert item["policy"]["effect"] == "ask"
    assert item["expires_at"] is not None
    assert (item["claim"], item["delivery"], item["links"]) == (None, None, [])
    assert await office.kinds(item["id"]) == ["item.created"]


@pytest.mark.promise("REVIEW-06")
async def test_counts_are_returned_for_every_status_filter(office: Office) -> None:
    first, second, other = [await office.request(title=title) for title in ("zebra one", "zebra two", "other")]
    await office.decided(first, "approve")
    for status in ("is:pending", "is:resolved", "is:rejected", ""):
        assert (await office.page(f"{status} zebra"))["counts"] == {"pending": 1, "resolved": 1}
    assert [item["id"] for item in await office.items("is:pending")] == [other["id"], second["id"]]
    assert [item["id"] for item in await office.items("is:resolved")] == [first["id"]]


@pytest.mark.promise("REVIEW-05")
@pytest.mark.promise("REVIEW-50")
async def test_filters_narrow_the_list(office: Office) -> None:
    paused = await office.asked("hitl", {"text": "x"})
    held = await office.request(
        type="upload", title="Upload 100% of it", recipient="finance", entity={"type": "doc", "id": "d1"}
    )
    me = held["requester"]
    expected = {
        "type:upload": [held],
        "type:tool,upload": [held, paused],
        "dialect:human_interrupt": [paused],
        "graph:hitl": [paused],
        f"thread:{paused['source']['thread_id']}": [paused],
        f"run:{paused['source']['run_id']}": [paused],
        f"from:{me}": [held, paused],
        f"agent:{me.removeprefix('agent:')}": [held, paused],
        "for:finance": [held],
        "entity:d1": [held],
        "100%": [held],
        "UPLOAD": [held],
        '"upload 100"': [held],
        "%": [],
        "_": [],
        "upl finance": [held],
        '"of it 100"': [],
        "is:gated": [held, paused],
        "is:advisory": [],
        "newer:1h": [held, paused],
        "older:1h": [],
        "is:snoozed": [],
        "is:claimed": [],
        "is:in-doubt": [],
        "risk:high": [],
        "resolution:accepted": [],
    }
    for text, matching in expected.items():
        assert [item["id"] for item in await office.items(text)] == [item["id"] for item in matching], text


@pytest.mark.parametrize(
    "query",
    [
        {"filter": "colour:red"},
        {"filter": "is:lovely"},
        {"filter": 'open "quote'},
        {"filter": "older:soon"},
        {"sort": "title"},
        {"sort": "-deadline"},
        {"group": "risk"},
        {"group": ""},
        {"limit": 0},
        {"cursor": "no"},
        {"filter": "x" * 501},
    ],
)
async def test_invalid_list_query_is_422(office: Office, query: dict[str, Any]) -> None:
    problem(await office.ana.get("/api/inbox/items", params=query), 422, "invalid_request")


async def test_search_reads_arguments_comments_and_names(office: Office) -> None:
    paused = await office.asked("hitl", {"text": "Rechnung 4711 退款"})
    other = await office.request(title="other")
    for text in ("4711", "rechn", "退款", f"4711 graph:hitl agent:{paused['requester'].removeprefix('agent:')}"):
        assert [item["id"] for item in await office.items(text)] == [paused["id"]], text
    await office.ana.post(f"/api/inbox/items/{other['id']}/comments", json={"text": "asked the warehouse"})
    assert [item["id"] for item in await office.items("warehouse")] == [other["id"]]
    assert [item["id"] for item in await office.items("ana warehouse")] == [other["id"]]
    assert await office.items("warehouse 4711") == []


async def test_list_has_groups_orders_and_facets(office: Office) -> None:
    payment = {"name": "refund_payment", "args": {"amount": 5, "currency": "EUR"}}
    made = [await office.request(title="one", type="tool", actions=[payment]), await office.request(title="two")]
    page = await office.page("is:pending", sort="risk", group="type", facets=True)
    assert {item["id"] for item in page["items"]} == {item["id"] for item in made}
    assert page["facets"]["kind"] == {"payment": 1, made[1]["type"]: 1}
    assert page["facets"]["agent"] == {made[0]["requester"]: 2}
    assert [item["id"] for item in await office.items("type:payment")] == [made[0]["id"]]
    assert (await office.page("is:pending"))["facets"] == {}


@pytest.mark.parametrize("sort", ["created_at", "-created_at"])
async def test_pages_have_no_gaps_or_duplicates_while_items_are_added(office: Office, sort: str) -> None:
    made = [(await office.request(title=f"item {number}"))["id"] for number in range(7)]
    seen, cursor = list[str](), None
    while True:
        page = await office.page("is:pending", sort=sort, limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [item["id"] for item in page["items"]]
        if len(made) < 10:
            made.append((await office.request(title="meanwhile"))["id"])
        if (cursor := page["next"]) is None:
            break
    assert seen == (made if sort == "created_at" else made[6::-1])


# Deciding


VERBS: dict[str, tuple[Any, dict[str, Any], Any, str, str]] = {
    "accept": (
        review(),
        {"verb": "approve"},
        [{"type": "accept", "args": {"action": "send_email", "args": {"to": "a@b.c"}}}],
        "APPROVED",
        "accepted",
    ),
    "edit": (
        review(),
        {"actions": [{"key": "0", "verb": "edit", "args": {"to": "x@y.z", "n": BIG}}]},
        [{"type": "edit", "args": {"action": "send_email", "args": {"to": "x@y.z", "n": BIG}}}],
        "APPROVED",
        "edited",
    ),
    "respond": (
        review(),
        {"verb": "respond", "message": "no rush"},
        [{"type": "response", "args": "no rush"}],
        "APPROVED",
        "responded",
    ),
    "ignore": (review(), {"verb": "ignore"}, [{"type": "ignore", "args": None}], "REJECTED", "ignored"),
    "clarify": (
        CLARIFICATION,
        {"verb": "respond", "message": "the red one"},
        {"responses": [{"call_id": "c", "response": "the red one"}]},
        "APPROVED",
        "responded",
    ),
    "confirm": (
        CONFIRMATION,
        {"verb": "approve"},
        {"approvals": [{"call_id": "c", "approved": True}]},
        "APPROVED",
        "accepted",
    ),
    "confirm edited": (
        CONFIRMATION,
        {"actions": [{"key": "0", "verb": "edit", "args": {"n": 1}}]},
        {"approvals": [{"call_id": "c", "approved": True, "arguments": {"n": 1}}]},
        "APPROVED",
        "edited",
    ),
    "refuse": (
        CONFIRMATION,
        {"verb": "reject", "message": "too much"},
        {"approvals": [{"call_id": "c", "approved": False, "feedback": "too much"}]},
        "REJECTED",
        "rejected",
    ),
    "fill in": (
        FORM,
        {"actions": [{"key": "0", "verb": "accept", "args": {"n": 3}}]},
        {"action": "accept", "content": {"n": 3}},
        "APPROVED",
        "accepted",
    ),
    "decline": (FORM, {"verb": "decline"}, {"action": "decline"}, "REJECTED", "declined"),
    "cancel": (FORM, {"verb": "cancel"}, {"action": "cancel"}, "REJECTED", "declined"),
    "raw text": ("Why?", {"verb": "respond", "message": "because"}, "because", "APPROVED", "responded"),
    "raw json": (
        "Why?",
        {"actions": [{"key": "0", "verb": "respond", "args": {"n": BIG}}]},
        {"n": BIG},
        "APPROVED",
        "responded",
    ),
}


@pytest.mark.promise("INBOX-11")
@pytest.mark.promise("INBOX-12")
@pytest.mark.promise("INBOX-13")
@pytest.mark.promise("INBOX-14")
@pytest.mark.promise("INBOX-16")
@pytest.mark.promise("INBOX-20")
@pytest.mark.promise("INBOX-21")
@pytest.mark.promise("REVIEW-16")
@pytest.mark.promise("REVIEW-17")
@pytest.mark.parametrize("case", VERBS)
async def test_run_continues_with_exactly_the_decided_arguments(office: Office, case: str) -> None:
    asked, said, told, status, resolution = VERBS[case]
    item = await office.asked("asking", {"questions": [asked]})
    decided = await office.decided(item, **said)
    assert (decided["status"], decided["resolution"]) == (status, resolution)
    assert decided["decided_by"].startswith("reviewer:")
    assert (await office.values(item["source"]["thread_id"]))["answers"] == [told]
    done = await office.get(item["id"])
    assert done["delivery"]["status"] == "delivered"
    assert [decision["standing"] for decision in done["decisions"]] == [True]


@pytest.mark.promise("HITL-03")
@pytest.mark.promise("HITL-04")
@pytest.mark.promise("HITL-05")
@pytest.mark.promise("HITL-07")
@pytest.mark.promise("HITL-20")
async def test_each_action_has_its_own_verdict(office: Office, tmp_path: Path) -> None:
    log = tmp_path / "sent"
    item = await office.asked("batched", script(*(email(body, log) for body in "abcd")))
    verdicts = [
        {"key": "3", "verb": "respond", "message": "pretend"},
        {"key": "0", "verb": "approve"},
        {"key": "1", "verb": "edit", "args": {"to": "x@y.z", "body": "changed", "log": str(log)}},
        {"key": "2", "verb": "reject", "message": "not this one"},
    ]
    decided = await office.decided(item, actions=verdicts)
    assert (decided["status"], decided["resolution"]) == ("APPROVED", "partial")
    messages = (await office.values(item["source"]["thread_id"]))["messages"]
    assert sorted(log.read_text().splitlines()) == ["a@b.c: a", "x@y.z: changed"]
    told = {message["tool_call_id"]: message["content"] for message in messages if message["type"] == "tool"}
    assert told["call_0_2"].endswith("not this one")
    assert told["call_0_3"] == "pretend"
    granted = {grant["call_id"]: grant["revision"] for grant in decided["grants"]}
    assert granted == {"call_0_0": 2, "call_0_1": 2}, "for what runs, and for nothing else"


@pytest.mark.promise("HITL-26")
async def test_calls_asked_one_by_one_are_decided_one_by_one(office: Office, tmp_path: Path) -> None:
    log = tmp_path / "sent"
    thread = await office.run("per_call", script(email("a", log), email("b", log)))
    waiting = [await office.get(item["id"]) for item in await office.items(f"is:pending thread:{thread}")]
    first, two = sorted(waiting, key=lambda item: str(item["actions"][0]["args"]["body"]))
    await office.decided(first, "approve")
    await office.rests(thread)
    assert [item["id"] for item in await office.items(f"is:pending thread:{thread}")] == [two["id"]]
    await office.decided(two, "reject", message="no")
    await office.rests(thread, status="idle")
    assert log.read_text() == "a@b.c: a\n"
    assert len(await office.items(f"thread:{thread}")) == 2


@pytest.mark.promise("HITL-06")
@pytest.mark.promise("INBOX-15")
async def test_verb_that_the_agent_does_not_allow_is_refused(office: Office) -> None:
    for flags in range(16):
        await _check_flags(office, flags)


async def _check_flags(office: Office, flags: int) -> None:
    names = {"approve": "accept", "edit": "edit", "respond": "respond", "ignore": "ignore"}
    allowed = {verb for bit, verb in enumerate(names) if flags >> bit & 1}
    flags_set: dict[str, Any] = {f"allow_{names[verb]}": verb in allowed for verb in names}
    asked = review(**flags_set)
    item = await office.asked("asking", {"questions": [asked]})
    more: dict[str, Any] = {"edit": {"args": {"to": "x"}}, "respond": {"message": "m"}}
    assert set(item["actions"][0]["allowed"]) == allowed or not allowed
    for verb in sorted(set(names) - set(item["actions"][0]["allowed"])):
        refused = await office.decide(item, actions=[{"key": "0", "verb": verb, **more.get(verb, {})}])
        assert problem(refused, 422, "invalid_decision")["errors"][0]["path"] == "actions[0].verb"
    assert (await office.get(item["id"]))["status"] == "PENDING", "and it stays answerable"
    if allowed:
        verb = min(allowed)
        await office.decided(item, actions=[{"key": "0", "verb": verb, **more.get(verb, {})}])


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({"actions": []}, "actions"),
        ({"actions": [{"key": "7", "verb": "approve"}]}, "actions[0].key"),
        ({"actions": [{"key": "0", "verb": "approve"}, {"key": "0", "verb": "ignore"}]}, "actions[1].key"),
        ({"actions": [{"key": "0", "verb": "edit"}]}, "actions[0].args"),
        ({"actions": [{"key": "0", "verb": "edit", "args": []}]}, "actions[0].args"),
        ({"actions": [{"key": "0", "verb": "respond"}]}, "actions[0].message"),
        ({"actions": [{"key": "0", "verb": "approve", "message": "well"}]}, "actions[0].message"),
        ({"verb": "reject"}, "actions[0].verb"),
        ({"verb": "approve", "actions": [{"key": "0", "verb": "approve"}]}, "verb"),
        ({}, "actions"),
    ],
)
async def test_a_decision_that_does_not_fit_names_the_field(office: Office, said: dict[str, Any], path: str) -> None:
    item = await office.asked("hitl", {"text": "x"})
    refused = problem(await office.decide(item, **said), 422, "invalid_decision")
    assert path in [error["path"] for error in refused["errors"]]
    assert (await office.get(item["id"]))["status"] == "PENDING"
    assert await office.kinds(item["id"]) == ["item.created"]


@pytest.mark.parametrize(
    "body", [{"verb": "shrug"}, {"revision": "one"}, {"grace_seconds": -1}, {"grace_seconds": 301}, {"hash": None}]
)
async def test_malformed_decision_is_refused(office: Office, body: dict[str, Any]) -> None:
    item = await office.request()
    problem(await office.decide(item, **{"verb": "approve", **body}), 422, "invalid_request")


@pytest.mark.promise("P5")
async def test_arguments_beside_the_verb_are_refused_with_the_place_where_they_belong(office: Office) -> None:
    item = await office.request()
    refused = problem(await office.decide(item, verb="respond", args={"city": "Bern"}), 422, "invalid_request")
    assert "actions: [{key, verb, args, …}]" in refused["detail"]


async def test_decision_about_another_revision_is_refused(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    for wrong in ({"revision": 2}, {"hash": "0" * 64}, {"revision": 0}):
        for response in (
            await office.decide(item, "approve", **wrong),
            await office.ask_revision(item, **wrong),
        ):
            told = problem(response, 409, "stale_revision")
            assert (told["revision"], told["hash"]) == (1, item["hash"])
    assert (await office.get(item["id"]))["status"] == "PENDING"


@pytest.mark.promise("P4")
async def test_concurrent_decisions_have_one_winner(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    names = [f"person{number}" for number in range(8)]
    people = [office.house.client(await office.house.person(name)) for name in names]
    verbs = ["approve", "ignore"] * 4
    said = await asyncio.gather(*(office.decide(item, verb, who) for verb, who in zip(verbs, people, strict=True)))
    [won] = [response for response in said if response.status_code == 200]
    winner = won.json()["decisions"][0]
    for response in said:
        if response is not won:
            assert problem(response, 409, "already_decided")["decision"]["id"] == winner["id"]
    answer = (await office.values(item["source"]["thread_id"]))["answer"]
    assert answer["type"] == {"approve": "accept", "ignore": "ignore"}[winner["actions"][0]["verb"]]
    assert len([kind for kind in await office.kinds(item["id"]) if kind in ("item.approved", "item.rejected")]) == 1
    await office.verified()


@pytest.mark.promise("REVIEW-24")
async def test_second_decision_is_a_conflict(office: Office) -> None:
    for verb, status in (("approve", "APPROVED"), ("reject", "REJECTED")):
        item = await office.request(title=verb)
        await office.decided(item, verb)
        for again in ("approve", "reject"):
            told = problem(await office.decide(item, again, office.ben), 409, "already_decided")
            assert told["decision"]["actions"][0]["verb"] == verb
        problem(await office.ask_revision(item), 409, "already_decided")
        moved = problem(await office.post(item, "cancellation"), 409, "invalid_transition")
        assert (moved["from"], moved["to"], moved["allowed"]) == (status, "CANCELLED", [])
        problem(await office.post(item, "resubmission", office.agent), 409, "invalid_transition")
        assert (await office.get(item["id"]))["can"] == ["claim", "comment", "snooze"]


# The same key


@pytest.mark.promise("P3")
async def test_repeated_idempotency_key_returns_the_same_answer(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    first = await office.decide(item, "approve", key="k")
    await office.rests(item["source"]["thread_id"], status="idle")
    await office.post(item, "comments", text="moved on")
    again = await office.decide(item, "approve", key="k")
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json(), "what it was then, though the item has moved on"
    problem(await office.decide(item, "ignore", key="k"), 422, "key_reused")
    problem(await office.ask_revision(item, key="k"), 422, "key_reused")
    problem(await office.decide(item, "approve", office.ben, key="k"), 409, "already_decided")
    assert (await office.kinds(item["id"])).count("item.approved") == 1


@pytest.mark.promise("P3")
async def test_key_of_a_request_for_a_revision_covers_its_grace_period(office: Office) -> None:
    item = await office.request()
    assert (await office.ask_revision(item, key="k", grace_seconds=30)).status_code == 200
    assert (await office.ask_revision(item, key="k", grace_seconds=30)).status_code == 200
    problem(await office.ask_revision(item, key="k"), 422, "key_reused")


@pytest.mark.promise("P3")
async def test_concurrent_requests_with_one_idempotency_key_decide_once(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    said = await asyncio.gather(*(office.decide(item, "approve", key="k") for _ in range(6)))
    assert {response.status_code for response in said} == {200}
    assert len({one.text for one in said}) == 1
    made = await asyncio.gather(*(office.post(item, "comments", text="once", key="c") for _ in range(4)))
    assert len({one.json()["id"] for one in made}) == 1
    assert len((await office.ana.get(f"/api/inbox/items/{item['id']}/comments")).json()) == 1


@pytest.mark.promise("P3")
async def test_refusal_is_not_stored_under_the_idempotency_key(office: Office) -> None:
    item = await office.request()
    problem(await office.decide(item, "approve", key="k", hash="0" * 64), 409, "stale_revision")
    problem(await office.decide(item, "respond", key="k", message="x"), 422, "invalid_decision")
    assert (await office.decide(item, "approve", key="k")).status_code == 200


# Taking back


@pytest.mark.promise("P8")
async def test_author_can_undo_a_decision_within_the_grace_period(office: Office, tmp_path: Path) -> None:
    log = tmp_path / "sent"
    item = await office.asked("per_call", script(email("a", log)))
    decided = await office.decided(item, "approve", grace_seconds=60)
    assert decided["undo_until"] is not None
    [grant] = decided["grants"]
    assert grant["not_before"] == decided["undo_until"]
    assert "undo" in decided["can"]
    winner = decided["decisions"][0]["id"]
    told = problem(await office.decide(item, "reject", office.ben), 409, "already_decided")
    assert told["decision"]["id"] == winner, "it has won, though nothing came of it yet"
    problem(await office.ben.delete(f"/api/inbox/items/{item['id']}/decision"), 403, "not_allowed")
    undone = await office.ana.delete(f"/api/inbox/items/{item['id']}/decision")
    assert undone.status_code == 200, undone.text
    now = undone.json()
    assert (now["status"], now["resolution"], now["decided_by"], now["execution"]) == ("PENDING", None, None, None)
    assert [grant["status"] for grant in now["grants"]] == ["revoked"]
    assert [decision["standing"] for decision in now["decisions"]] == [False]
    problem(await office.ana.delete(f"/api/inbox/items/{item['id']}/decision"), 409, "conflict")
    await office.decided(item, "reject", client=office.ben, message="no")
    await office.rests(item["source"]["thread_id"], status="idle")
    assert not log.exists()
    kinds = await office.kinds(item["id"])
    assert [kind for kind in kinds if kind != "item.attempt_refused"] == [
        "item.created",
        "item.approved",
        "item.undone",
        "item.rejected",
    ]
    await office.verified()


async def test_decision_takes_effect_after_the_grace_period(office: Office, tmp_path: Path) -> None:
    log = tmp_path / "sent"
    item = await office.asked("per_call", script(email("a", log)))
    await office.decided(item, "approve", grace_seconds=60)
    assert not log.exists()
    office.house.pass_time(timedelta(seconds=61))
    problem(await office.ana.delete(f"/api/inbox/items/{item['id']}/decision"), 409, "conflict")
    await office.request(title="a bell")  # anything that wakes who looks at the clock
    await office.rests(item["source"]["thread_id"], status="idle")
    assert log.read_text() == "a@b.c: a\n"


async def test_decision_without_a_grace_period_cannot_be_undone(office: Office) -> None:
    item = await office.request()
    problem(await office.ana.delete(f"/api/inbox/items/{item['id']}/decision"), 409, "conflict")
    await office.decided(item, "approve")
    problem(await office.ana.delete(f"/api/inbox/items/{item['id']}/decision"), 409, "conflict")


async def test_undo_after_the_thread_was_deleted_is_a_conflict(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    await office.decided(item, "approve", grace_seconds=60)
    gone = await office.ana.delete(f"/threads/{item['source']['thread_id']}")
    assert gone.status_code in (200, 204), gone.text
    problem(await office.ana.delete(f"/api/inbox/items/{item['id']}/decision"), 409, "conflict")
    assert await office.items("is:pending") == []


async def test_undone_item_past_its_deadline_still_expires(office: Office) -> None:
    ends = datetime.now(UTC) + timedelta(seconds=30)
    item = await office.request(expires_at=ends.isoformat())
    await office.decided(item, "approve", grace_seconds=120)
    office.house.pass_time(timedelta(seconds=60))
    undone = await office.ana.delete(f"/api/inbox/items/{item['id']}/decision")
    assert undone.status_code == 200, undone.text
    await until(lambda: office.items("is:expired"))


# Sending back


@pytest.mark.promise("REVIEW-18")
async def test_waiting_agent_gets_the_notes_and_asks_again(office: Office) -> None:
    item = await office.asked("asking", {"questions": [review({"n": 1}), review({"n": 2})]})
    problem(await office.ask_revision(item, notes="  "), 422, "invalid_decision")
    asked = await office.ask_revision(item, notes="make it two")
    assert asked.json()["status"] == "REVISION_REQUESTED"
    thread = item["source"]["thread_id"]
    state = await office.rests(thread, status="interrupted")
    assert state["values"]["answers"] == [[{"type": "response", "args": "make it two"}]]
    [now] = await office.items(f"thread:{thread}")
    assert (now["id"], now["status"], now["revision"]) == (item["id"], "PENDING", 2)
    assert now["hash"] != item["hash"]
    problem(await office.decide(item, "approve"), 409, "stale_revision")
    history = (await office.ana.get(f"/api/inbox/items/{item['id']}/revisions")).json()
    assert [(state["revision"], state["actions"][0]["args"]) for state in history] == [(1, {"n": 1}), (2, {"n": 2})]
    await office.decided(now, "approve")
    answers = (await office.values(thread))["answers"]
    assert answers[1][0]["type"] == "accept"
    assert await office.kinds(item["id"]) == [
        "item.created",
        "item.revision_requested",
        "item.revised",
        "item.approved",
    ]


async def test_item_sent_back_to_the_agent_cannot_be_decided(office: Office) -> None:
    item = await office.asked("asking", {"questions": [review()]})
    asked = await office.ask_revision(item, grace_seconds=60)
    assert asked.status_code == 200
    problem(await office.decide(item, "approve", office.ben), 409, "awaiting_resubmission")
    moved = problem(await office.ask_revision(item, client=office.ben), 409, "invalid_transition")
    assert (moved["from"], moved["to"]) == ("REVISION_REQUESTED", "REVISION_REQUESTED")
    assert (await office.get(item["id"]))["can"] == ["assign", "cancel", "claim", "comment", "snooze", "undo"]
    undone = await office.ana.delete(f"/api/inbox/items/{item['id']}/decision")
    assert undone.json()["status"] == "PENDING"
    await office.decided(item, "approve", client=office.ben)


@pytest.mark.parametrize("then", [[], ["something else?"], [review(action="pay")]])
async def test_if_the_agent_does_not_ask_again_the_item_is_superseded(office: Office, then: list[Any]) -> None:
    item = await office.asked("asking", {"questions": [review(), *then]})
    await office.ask_revision(item)
    thread = item["source"]["thread_id"]
    await office.rests(thread)
    closed = await office.get(item["id"])
    assert closed["status"] == "CANCELLED"
    assert closed["resolution"] in ("superseded", "thread_ended")
    assert len(await office.items(f"is:pending thread:{thread}")) == len(then)


async def test_revision_request_to_an_agent_without_support_is_refused(office: Office) -> None:
    for question in (FORM, LOGIN, review(allow_respond=False)):
        item = await office.asked("asking", {"questions": [question]})
        problem(await office.ask_revision(item), 422, "invalid_decision")
        assert (await office.get(item["id"]))["status"] == "PENDING"


@pytest.mark.promise("P5")
async def test_a_revision_is_judged_by_what_it_asks(office: Office) -> None:
    """Small at first, large once it was sent back: as many have to agree as for what is large."""
    rules = [{"name": "large", "then": "ask", "tool": "pay", "when": "args.n > 100", "approvals": 2}]
    await office.policy({"rules": rules})
    questions = [review({"n": 1}, action="pay"), review({"n": 1000}, action="pay")]
    item = await office.asked("asking", {"questions": questions})
    assert item["approvals"]["needed"] == 1
    await office.ask_revision(item)
    await office.rests(item["source"]["thread_id"])
    now = await office.get(item["id"])
    assert (now["revision"], now["approvals"]["needed"]) == (2, 2)
    assert (await office.decided(now, "approve"))["status"] == "PENDING"
    assert (await office.decided(now, "approve", client=office.ben))["status"] == "APPROVED"


@pytest.mark.promise("P5")
async def test_an_edit_is_judged_by_what_it_makes_of_the_call(office: Office) -> None:
    rules = [
        {"name": "huge", "then": "never", "tool": "pay", "when": "args.n > 10000"},
        {"name": "large", "then": "ask", "tool": "pay", "when": "args.n > 100", "approvals": 2},
    ]
    await office.policy({"rules": rules})
    item = await office.asked("asking", {"questions": [review({"n": 1}, action="pay")]})
    huge = await office.decide(item, actions=[{"key": "0", "verb": "edit", "args": {"n": 10001}}])
    assert problem(huge, 422, "invalid_decision")["errors"][0]["path"] == "actions[0].args"
    now = await office.decided(item, actions=[{"key": "0", "verb": "edit", "args": {"n": 1000}}])
    assert (now["status"], now["approvals"]) == ("PENDING", {"given": 1, "needed": 2})
    assert (await office.decided(now, "approve", client=office.ben))["status"] == "APPROVED"
    answer = (await office.values(item["source"]["thread_id"]))["answers"][0][0]
    assert answer == {"type": "edit", "args": {"action": "pay", "args": {"n": 1000}}}


# Withdrawing


@pytest.mark.promise("P6")
async def test_agent_that_withdraws_its_item_gets_the_given_reason(office: Office) -> None:
    item = await office.asked("asking", {"questions": [CONFIRMATION]})
    stranger = office.house.client(await office.house.key())
    refused = problem(await office.post(item, "cancellation", stranger), 403, "not_allowed")
    assert refused["missing"] == [item["requester"]]
    gone = (await office.post(item, "cancellation", office.agent, notes="changed my mind")).json()
    assert (gone["status"], gone["resolution"], gone["decided_by"]) == ("CANCELLED", "withdrawn", None)
    [told] = (await office.values(item["source"]["thread_id"]))["answers"]
    assert told == {"approvals": [{"call_id": "c", "approved": False, "feedback": "changed my mind"}]}
    moved = problem(await office.decide(item, "approve"), 409, "invalid_transition")
    assert (moved["from"], moved["allowed"]) == ("CANCELLED", [])


async def test_cancelling_a_question_without_a_negative_answer_ends_the_thread(office: Office) -> None:
    item = await office.asked("asking", {"questions": ["Why?"]})
    gone = await office.post(item, "cancellation", notes="never mind")
    assert gone.json()["status"] == "CANCELLED"
    thread = await office.rests(item["source"]["thread_id"], status="idle")
    assert "answers" not in thread["values"] or thread["values"]["answers"] == []


async def test_settling_an_item_that_is_not_in_doubt_is_a_conflict(office: Office) -> None:
    item = await office.request()
    problem(await office.post(item, "in-doubt", outcome="done"), 409, "conflict")
    problem(await office.post(item, "in-doubt", outcome="perhaps"), 422, "invalid_request")


# Who may


@pytest.mark.promise("P6")
async def test_only_people_with_the_right_decide(office: Office) -> None:
    house = office.house
    item = await office.asked("hitl", {"text": "x"})
    callers = {
        "agent": office.agent,
        "service": house.client(await house.key(Kind.SERVICE)),
        "admin service": house.client(await house.key(Kind.SERVICE, "admin", "policy:write", "items:read")),
        "viewer": house.client(await house.person("vera", Role.VIEWER)),
        "reader": house.client(await house.key_of("ana", "items:read", "runs:write", "comments:write")),
    }
    for name, client in callers.items():
        for response in (
            await office.decide(item, "approve", client),
            await office.decide(item, "ignore", client),
            await office.ask_revision(item, client=client),
        ):
            assert problem(response, 403, "not_allowed")["missing"] == ["decide"], name
        bulk = {"items": [_named(item)], "verb": "approve"}
        [result] = (await client.post("/api/inbox/bulk", json=bulk)).json()["results"]
        assert (result["ok"], result["error"]["code"]) == (False, "not_allowed")
    now = await office.get(item["id"])
    assert (now["status"], now["decisions"], now["grants"]) == ("PENDING", [], [])
    assert (await office.kinds(item["id"])).count("item.attempt_refused") == len(callers), "told, once each"
    await office.verified()


@pytest.mark.promise("P6")
async def test_users_of_the_projects_own_auth_decide_only_with_the_permission(build: Builder) -> None:
    project = GRAPHS.parents[1] / "graphs_auth" / "langgraph.json"
    office = await staff(await build(config=project))
    await office.policy({"rules": [{"name": "people answer", "tool": "answer", "then": "ask"}]})
    eve, rita = (office.house.client(headers={"authorization": f"Bearer {who}"}) for who in ("open:eve", "reviewer"))
    thread = await office.run("whoami", {"ask": True}, client=eve)
    [item] = await office.items(f"is:pending thread:{thread}")
    assert item["gated"] is True
    assert problem(await office.decide(item, "respond", eve, message="yes"), 403, "not_allowed")["missing"] == [
        "decide"
    ]
    assert (await office.answer(thread, "whoami", "yes", eve)).status_code == 403
    assert (await office.get(item["id"]))["status"] == "PENDING"
    assert (await office.decide(item, "respond", rita, message="yes")).status_code == 200


@pytest.mark.promise("P6")
async def test_starter_of_the_run_does_not_count_as_second_approver(office: Office) -> None:
    await office.policy({"default": {"name": "default", "then": "ask", "separate_duties": True}})
    item = await office.asked("hitl", {"text": "x"}, client=office.ana)
    assert problem(await office.decide(item, "approve"), 403, "self_approval")["missing"] == ["default"]
    edited = await office.decided(
        item, client=office.ben, actions=[{"key": "0", "verb": "edit", "args": {"to": "b", "body": "c"}}]
    )
    assert (edited["status"], edited["revision"]) == ("PENDING", 2), "who has changed it does not count"
    problem(await office.decide(edited, "approve", office.ben), 403, "self_approval")
    problem(await office.decide(edited, "approve", office.ana), 403, "self_approval")
    cleo = office.house.client(await office.house.person("cleo"))
    await office.decided(edited, "approve", client=cleo)
    answer = (await office.values(item["source"]["thread_id"]))["answer"]
    assert answer == {"type": "edit", "args": {"action": "send_email", "args": {"to": "b", "body": "c"}}}


@pytest.mark.promise("P6")
async def test_only_deciders_named_by_the_policy_may_decide(office: Office) -> None:
    await office.policy({"default": {"name": "finance", "then": "ask", "by": {"people": ["ben"]}}})
    item = await office.request()
    assert problem(await office.decide(item, "approve"), 403, "not_allowed")["missing"] == ["finance"]
    await office.decided(item, "approve", client=office.ben)


TWO = {"default": {"name": "two", "then": "ask", "approvals": 2}}


@pytest.mark.promise("P6")
async def test_rule_with_two_approvals_needs_two_people(office: Office) -> None:
    await office.policy(TWO)
    item = await office.asked("hitl", {"text": "x"})
    decided = await office.decided(item, "approve")
    assert (decided["status"], decided["approvals"], decided["grants"]) == ("PENDING", {"given": 1, "needed": 2}, [])
    assert decided["delivery"] is None
    problem(await office.decide(item, "approve"), 409, "conflict")
    other = problem(await office.decide(item, "respond", office.ben, message="hm"), 409, "conflict")
    assert other["decision"]["actions"][0]["verb"] == "approve"
    two = await office.decided(item, "approve", client=office.ben)
    assert (two["status"], two["approvals"]) == ("APPROVED", {"given": 2, "needed": 2})
    assert (await office.values(item["source"]["thread_id"]))["answer"]["type"] == "accept"
    assert (await office.kinds(item["id"]))[1:] == ["item.agreed", "item.approved"]


async def test_rejection_by_one_of_two_rejects_the_item(office: Office) -> None:
    await office.policy(TWO)
    item = await office.request()
    await office.decided(item, "approve")
    assert (await office.decided(item, "reject", client=office.ben))["status"] == "REJECTED"


@pytest.mark.promise("P5")
async def test_edit_discards_earlier_approvals(office: Office) -> None:
    await office.policy(TWO)
    item = await office.request()
    await office.decided(item, "approve")
    edited = await office.decided(item, client=office.ben, actions=[{"key": "0", "verb": "edit", "args": {"limit": 6}}])
    assert (edited["status"], edited["revision"]) == ("PENDING", 2)
    assert edited["approvals"] == {"given": 1, "needed": 2}, "the editor's own, who alone is not two"
    problem(await office.decide(edited, "approve", office.ben), 409, "conflict")
    problem(await office.decide(item, "approve", office.ana), 409, "stale_revision")
    done = await office.decided(edited, "approve")
    assert (done["status"], done["resolution"]) == ("APPROVED", "edited")
    assert [decision["standing"] for decision in done["decisions"]] == [False, True, True]


# Working together


async def test_comments_are_added_listed_and_counted(office: Office) -> None:
    item = await office.request()
    problem(await office.post(item, "comments", text="  "), 422, "invalid_request")
    for client, text in ((office.ana, "why five?"), (office.agent, "because")):
        assert (await office.post(item, "comments", client, text=text)).status_code == 201
    told = (await office.ben.get(f"/api/inbox/items/{item['id']}/comments")).json()
    assert [comment["text"] for comment in told] == ["why five?", "because"]
    assert (await office.get(item["id"]))["comments"] == 2
    viewer = office.house.client(await office.house.person("vera", Role.VIEWER))
    problem(await office.post(item, "comments", viewer, text="me too"), 403, "not_allowed")


async def test_claim_only_prevents_other_claims(office: Office) -> None:
    item = await office.request()
    path = f"/api/inbox/items/{item['id']}/claim"
    claimed = (await office.ana.put(path)).json()
    assert claimed["claim"]["by"].startswith("reviewer:")
    refused = problem(await office.ben.put(path), 409, "claimed_by_other")
    assert refused["claimed_by"] == claimed["claim"]["by"]
    assert refused["until"] == claimed["claim"]["until"]
    assert (await office.ben.delete(path)).json()["claim"] is not None, "not theirs to give up"
    assert [item["id"] for item in await office.items("is:claimed")] == [item["id"]]
    office.house.pass_time(timedelta(minutes=5, seconds=1))
    assert await office.items("is:claimed") == []
    assert (await office.ben.put(path)).status_code == 200
    assert (await office.ben.delete(path)).json()["claim"] is None
    await office.ana.put(path)
    await office.decided(item, "approve", client=office.ben)


async def test_drafts_and_snoozes_are_private(office: Office) -> None:
    item = await office.request()
    path = f"/api/inbox/items/{item['id']}"
    saved = await office.ana.put(f"{path}/draft", json={"draft": {"limit": BIG}})
    assert saved.json()["draft"] == {"limit": BIG}
    assert (await office.get(item["id"], office.ben))["draft"] is None
    until_then = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert (await office.ana.put(f"{path}/snooze", json={"until": until_then})).status_code == 200
    assert await office.items("is:pending") == []
    assert [item["id"] for item in await office.items("is:snoozed")] == [item["id"]]
    assert len(await office.items("is:pending", client=office.ben)) == 1
    office.house.pass_time(timedelta(hours=1, seconds=1))
    assert len(await office.items("is:pending")) == 1
    assert (await office.ana.put(f"{path}/snooze", json={"until": None})).json()["snoozed_until"] is None
    problem(await office.ana.put(f"{path}/snooze", json={"until": "tomorrow"}), 422, "invalid_request")
    assert await office.kinds(item["id"]) == ["item.created"], "nobody else's business"


@pytest.mark.promise("REVIEW-10")
async def test_thread_is_linked_and_unlinked_idempotently(office: Office) -> None:
    thread = await office.thread()
    item = await office.request()
    path = f"/api/inbox/items/{item['id']}/links"
    for _ in range(2):
        assert (await office.ana.put(f"{path}/{thread}")).json()["links"] == [thread]
    problem(await office.ana.put(f"{path}/nowhere"), 404, "not_found")
    for _ in range(2):
        assert (await office.ana.delete(f"{path}/{thread}")).json()["links"] == []
    assert await office.kinds(item["id"]) == ["item.created", "item.linked", "item.unlinked"]


def _named(item: Item) -> dict[str, Any]:
    return {"id": item["id"], "revision": item["revision"], "hash": item["hash"]}


async def test_bulk_decision_reports_each_item_separately(office: Office) -> None:
    good, done, stale, other = [await office.request(title=str(number)) for number in range(4)]
    question = await office.asked("asking", {"questions": ["Why?"]})
    await office.decided(done, "reject")
    chosen = [
        _named(good),
        _named(done),
        {**_named(stale), "hash": "0"},
        _named(question),
        {**_named(other), "id": "x"},
    ]
    body = {"items": chosen, "verb": "approve"}
    expected = [(True, None), (False, "already_decided"), (False, "stale_revision"), (False, "invalid_decision")]
    expected.append((False, "not_found"))
    tried = (await office.ana.post("/api/inbox/bulk", json={**body, "dry_run": True})).json()["results"]
    assert [(attempt["ok"], attempt["error"].get("code")) for attempt in tried] == expected
    assert tried[0]["status"] == "APPROVED"
    assert (await office.get(good["id"]))["status"] == "PENDING", "it was only tried"
    results = (await office.ana.post("/api/inbox/bulk", json=body)).json()["results"]
    assert [(result["ok"], result["error"].get("code")) for result in results] == expected
    assert results[1]["error"]["decision"]["actions"][0]["verb"] == "reject"
    assert (await office.get(good["id"]))["status"] == "APPROVED"
    assert (await office.get(stale["id"]))["status"] == "PENDING"
    many = {"items": [_named(good)] * 201, "verb": "approve"}
    problem(await office.ana.post("/api/inbox/bulk", json=many), 422, "invalid_request")


# Apart


@pytest.mark.promise("P10")
async def test_items_of_another_tenant_are_404(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    thread = item["source"]["thread_id"]
    acme = await staff(office.house, tenant="acme")
    path = f"/api/inbox/items/{item['id']}"
    seen = {"revision": 1, "hash": item["hash"]}
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    calls: list[tuple[str, str, Any]] = [
        ("GET", path, None),
        ("GET", f"{path}/revisions", None),
        ("GET", f"{path}/timeline", None),
        ("GET", f"{path}/comments", None),
        ("POST", f"{path}/decision", {**seen, "verb": "approve"}),
        ("DELETE", f"{path}/decision", None),
        ("POST", f"{path}/revision-request", {**seen, "notes": "n"}),
        ("POST", f"{path}/resubmission", {"title": "t"}),
        ("POST", f"{path}/cancellation", {}),
        ("POST", f"{path}/in-doubt", {"outcome": "done"}),
        ("POST", f"{path}/comments", {"text": "t"}),
        ("PUT", f"{path}/claim", None),
        ("DELETE", f"{path}/claim", None),
        ("PUT", f"{path}/draft", {"draft": 1}),
        ("PUT", f"{path}/snooze", {"until": later}),
        ("PUT", f"{path}/links/{thread}", None),
        ("DELETE", f"{path}/links/{thread}", None),
    ]
    for method, url, body in calls:
        for client in (acme.ana, acme.agent):
            response = await client.request(method, url, json=body)
            problem(response, 404, "not_found")
    assert (await acme.page())["counts"] == {"pending": 0, "resolved": 0}
    bulk = await acme.ana.post("/api/inbox/bulk", json={"items": [_named(item)], "verb": "approve"})
    assert bulk.json()["results"][0]["error"]["code"] == "not_found"
    own = await acme.request()
    problem(await acme.ana.put(f"/api/inbox/items/{own['id']}/links/{thread}"), 404, "not_found")
    linked = {"type": "t", "title": "t", "thread_ids": [thread]}
    problem(await acme.agent.post("/api/inbox/items", json=linked), 422, "invalid_request")
    assert await office.kinds(item["id"]) == ["item.created"]
    assert (await office.get(item["id"]))["status"] == "PENDING"
    for tenant in ("default", "acme"):
        await office.verified(tenant)


async def test_unknown_item_is_404(office: Office) -> None:
    problem(await office.ana.get("/api/inbox/items/nothing"), 404, "not_found")
    nobody: httpx.AsyncClient = office.house.client()
    problem(await nobody.get("/api/inbox/items"), 401, "unauthenticated")


@pytest.mark.promise("P9")
async def test_every_change_is_recorded_once(office: Office) -> None:
    item = await office.request()
    thread = await office.thread()
    base = f"/api/inbox/items/{item['id']}"
    steps: list[tuple[str, Any]] = [
        ("item.commented", lambda: office.post(item, "comments", text="t")),
        ("item.assigned", lambda: office.ana.put(f"{base}/owner", json={"owner": "ben"})),
        ("item.unassigned", lambda: office.ana.delete(f"{base}/owner")),
        ("item.claimed", lambda: office.ana.put(f"{base}/claim")),
        ("item.unclaimed", lambda: office.ana.delete(f"{base}/claim")),
        ("item.linked", lambda: office.ana.put(f"{base}/links/{thread}")),
        ("item.unlinked", lambda: office.ana.delete(f"{base}/links/{thread}")),
        ("item.revision_requested", lambda: office.ask_revision(item)),
        ("item.resubmitted", lambda: office.post(item, "resubmission", office.agent, title="Again")),
    ]
    told = ["item.created"]
    for kind, act in steps:
        response = await act()
        assert response.is_success, response.text
        told.append(kind)
        assert await office.kinds(item["id"]) == told
    await office.decided(await office.get(item["id"]), "approve", grace_seconds=60)
    await office.ana.delete(f"{base}/decision")
    await office.post(item, "cancellation")
    assert await office.kinds(item["id"]) == [*told, "item.approved", "item.undone", "item.cancelled"]
    await office.verified()
