"""Questions are not approvals: under the default policy of `assent serve`, whoever may run a thread answers what it
only asks to know, and nobody but a person answers what lets it act."""

from typing import Any

import pytest

from tests.api.house import Builder
from tests.api.reviewing import Item, Office, open_office, problem

CLARIFICATION = {"kind": "clarification", "clarifications": [{"call_id": "c", "question": "Which?", "context": ""}]}
FORM = {
    "kind": "form_elicitation",
    "message": "Seats?",
    "schema": {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]},
}
CALL = {"action": "pay", "args": {"amount": 5}}
SAID = [{"type": "response", "args": "Oslo"}]
ACCEPTED = [{"type": "accept", "args": CALL}]


def human(*allowed: str) -> dict[str, Any]:
    flags = {f"allow_{verb}": verb in allowed for verb in ("accept", "edit", "respond", "ignore")}
    return {"action_request": CALL, "config": flags}


ADVISORY: list[tuple[Any, Any]] = [
    ("Which city?", "Oslo"),
    ("Which city?", {"city": "Oslo"}),
    (7, 8),
    (CLARIFICATION, {"responses": [{"call_id": "c", "response": "red"}]}),
    (human("respond", "ignore"), SAID),
    (FORM, {"action": "accept", "content": {"seats": 2}}),
    (FORM, {"action": "decline"}),
]
GATED: list[tuple[Any, Any]] = [
    ({"question": "Which city?"}, "Oslo"),
    (["Which city?"], "Oslo"),
    (human("accept", "respond"), SAID),
    (human("edit", "respond"), SAID),
    ({**CLARIFICATION, "tool_calls": []}, {"responses": [{"call_id": "c", "response": "red"}]}),
    ({**CLARIFICATION, "note": "x"}, {"responses": [{"call_id": "c", "response": "red"}]}),
    ({**FORM, "tool_calls": []}, {"action": "decline"}),
    ({"kind": "oauth_url", "url": "https://example.org", "message": "m", "elicitation_id": "e"}, {"action": "accept"}),
]


@pytest.fixture
async def office(build_on_both: Builder) -> Office:
    return await open_office(build_on_both)


async def refuses(office: Office, graph: str, item: Item, answer: Any, *, status: int = 403) -> None:
    """Nothing comes of the answer of a program, by whichever way it is sent."""
    thread = item["source"]["thread_id"]
    for resume in (answer, {item["source"]["interrupt_id"]: answer}):
        refused = await office.answer(thread, graph, resume)
        assert refused.status_code == status, refused.text
    now = await office.get(item["id"])
    assert (now["status"], now["decisions"]) == ("PENDING", [])
    assert (await office.state(thread))["status"] == "interrupted"


@pytest.mark.promise("DROP-06")
async def test_question_that_approves_nothing_is_answered_by_callers_who_may_run(office: Office) -> None:
    for question, answer in ADVISORY:
        item = await office.asked("asking", {"questions": [question]})
        assert (item["gated"], item["expires_at"]) == (False, None), question
        answered = await office.answer(item["source"]["thread_id"], "asking", answer)
        assert answered.json()["answers"] == [answer], question
        done = await office.get(item["id"])
        assert (done["status"].isupper(), done["decided_by"], done["grants"]) == (True, item["requester"], [])
        assert [decision["via"] for decision in done["decisions"]] == ["langgraph"]
    await office.verified()


@pytest.mark.promise("P6")
async def test_question_that_approves_something_is_answered_only_by_a_person(office: Office) -> None:
    for question, answer in GATED:
        item = await office.asked("asking", {"questions": [question]})
        assert item["gated"] is True, question
        await refuses(office, "asking", item, answer)
        problem(await office.decide(item, "respond", office.agent, message="x"), 403, "not_allowed")
        answered = await office.answer(item["source"]["thread_id"], "asking", answer, office.ana)
        assert answered.json()["answers"] == [answer], "the control: a person's counts"


@pytest.mark.promise("P6")
async def test_answer_with_a_verb_that_was_not_offered_is_refused(office: Office) -> None:
    """A graph that looks for `accept` alone must not find it in the answer to a question that never offered it."""
    for question, answer in [
        (human("respond"), ACCEPTED),
        (human("respond"), ACCEPTED[0]),
        (human("respond", "ignore"), [{"type": "edit", "args": CALL}]),
        (CLARIFICATION, {"approvals": [{"call_id": "c", "approved": True}]}),
        (CLARIFICATION, True),
        (FORM, {"action": "accept", "content": {"seats": "all"}}),
    ]:
        item = await office.asked("asking", {"questions": [question]})
        assert item["gated"] is False
        await refuses(office, "asking", item, answer, status=422)


async def test_a_form_is_a_question_unless_it_takes_a_boolean(office: Office) -> None:
    plan = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    for schema, value, answer, gated in [
        ({"type": "integer"}, "How many?", 3, False),
        (plan, {"plan": 1}, {"city": "Oslo"}, False),
        ({"type": "boolean"}, "Ship it?", True, True),
        ({"anyOf": [{"type": "boolean"}, {"type": "string"}]}, "Ship it?", "no", True),
        ({"type": "object", "properties": {"approved": {"type": "boolean"}}}, "Ship it?", {"approved": True}, True),
        (plan, {"tool_name": "pay", "arguments": {}}, {"city": "Oslo"}, True),
    ]:
        item = await office.asked("forms", {"questions": [{"value": value, "schema": schema}]})
        assert item["gated"] is gated, schema
        if gated:
            await refuses(office, "forms", item, answer)
        else:
            answered = await office.answer(item["source"]["thread_id"], "forms", answer)
            assert answered.json()["answers"] == [answer]


async def test_a_rule_gates_a_question_and_releases_an_approval(office: Office) -> None:
    rules = [
        {"name": "ask people", "tool": "answer", "graph": "asking", "then": "ask"},
        {"name": "no chatter", "tool": "clarification", "then": "ask"},
        {"name": "pay freely", "tool": "pay", "then": "advise"},
    ]
    await office.policy({"rules": rules, "default": "ask"})
    for question, answer in [ADVISORY[0], ADVISORY[3]]:
        item = await office.asked("asking", {"questions": [question]})
        assert item["gated"] is True
        await refuses(office, "asking", item, answer)
        problem(await office.decide(item, "respond", office.agent, message="x"), 403, "not_allowed")
    released = await office.asked("asking", {"questions": [human("accept")]})
    assert released["gated"] is False
    assert (await office.answer(released["source"]["thread_id"], "asking", ACCEPTED)).status_code == 200


async def test_a_question_that_becomes_an_approval_is_gated_from_then_on(office: Office) -> None:
    item = await office.asked("asking", {"questions": ["Which city?", {"question": "Book it?"}]})
    thread = item["source"]["thread_id"]
    assert (await office.answer(thread, "asking", "Oslo")).status_code == 200
    [second] = await office.items(f"is:pending thread:{thread}")
    assert second["gated"] is True
    problem(await office.answer(thread, "asking", "yes"), 403, "not_allowed")


async def test_dry_run_of_a_policy_distinguishes_questions_from_approvals(office: Office) -> None:
    for question in ("Which city?", {"question": "Book it?"}):
        await office.asked("asking", {"questions": [question]})
    admin = await office.house.admin()
    for policy, differences in (
        ({"default": "ask"}, []),
        ({"default": "advise"}, [("ask", "advise")]),
        ({"rules": [{"name": "all", "then": "ask"}]}, [("advise", "ask")]),
    ):
        tried = (await admin.post("/api/policies/test", json={"policy": policy})).json()
        assert [(difference["before"], difference["after"]) for difference in tried["differences"]] == differences, (
            policy
        )


async def test_another_agent_cannot_answer_a_question_of_a_private_thread(office: Office) -> None:
    item = await office.asked("asking", {"questions": ["Which city?"]})
    other = office.house.client(await office.house.key())
    assert (await office.answer(item["source"]["thread_id"], "asking", "Oslo", other)).status_code == 404
    assert (await office.get(item["id"]))["status"] == "PENDING"
