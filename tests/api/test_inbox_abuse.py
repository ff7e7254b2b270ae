"""Ways around a decision that were found open once: each stays shut."""

from pathlib import Path
from typing import Any

import pytest

from assent.identity.model.access import Kind
from assent.review import thread_items
from assent.review.dialects import recognise
from assent.review.model.questions import MOST_ACTIONS
from tests.api.house import Builder
from tests.api.reviewing import GRAPHS, Office, email, open_office, problem, script, staff

pytestmark = pytest.mark.anyio

SEPARATE = {"default": {"name": "separate", "then": "ask", "separate_duties": True}}
EDIT = [{"type": "edit", "args": {"action": "send_email", "args": {"to": "a@b.c", "body": "mine"}}}]
ACCEPT = [{"type": "accept", "args": None}]


@pytest.fixture
async def office(build: Builder) -> Office:
    return await open_office(build)


@pytest.mark.promise("P3")
@pytest.mark.parametrize("strategy", ["interrupt", "rollback"])
@pytest.mark.parametrize("verb", ["approve", "ignore"])
async def test_agent_cannot_run_past_a_decision_within_its_grace_period(
    office: Office, strategy: str, verb: str
) -> None:
    item = await office.asked("hitl", {"text": "x"})
    thread = item["source"]["thread_id"]
    decided = await office.decided(item, verb, grace_seconds=60)
    for body in ({"input": {"text": "new"}}, {"command": {"goto": "__end__", "update": {"answer": "forged"}}}):
        moved = {"assistant_id": "hitl", "multitask_strategy": strategy, **body}
        problem(await office.agent.post(f"/threads/{thread}/runs", json=moved), 409, "thread_waits")
    state = {"values": {"answer": "forged"}, "as_node": "__end__"}
    problem(await office.agent.post(f"/threads/{thread}/state", json=state), 409, "thread_waits")
    now = await office.get(item["id"])
    assert (now["status"], now["delivery"]["status"]) == (decided["status"], "pending")


async def test_run_by_a_reviewer_within_the_grace_period_voids_the_decision(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    thread = item["source"]["thread_id"]
    await office.decided(item, "approve", grace_seconds=60)
    body = {"assistant_id": "hitl", "multitask_strategy": "rollback", "input": {"text": "new"}}
    assert (await office.ben.post(f"/threads/{thread}/runs", json=body)).status_code == 200
    now = await office.get(item["id"])
    assert (now["status"], now["resolution"], now["execution"], now["undo_until"]) == (
        "APPROVED",
        "superseded",
        None,
        None,
    )
    assert "item.overtaken" in await office.kinds(item["id"])
    await office.rests(thread)
    await office.verified()


@pytest.mark.promise("P6")
@pytest.mark.parametrize("order", [1, -1])
async def test_harmless_call_in_the_same_item_does_not_relax_the_rule(
    office: Office, order: int, tmp_path: Path
) -> None:
    rule = {"name": "big", "then": "ask", "tool": "send_email", "when": "args.body == 'big'", "by": {"people": ["ben"]}}
    await office.policy({"rules": [rule]})
    calls = [email("small"), email("big", tmp_path / "log")][::order]
    item = await office.asked("batched", script(*calls))
    problem(await office.decide(item, "approve"), 403, "not_allowed")
    assert not (tmp_path / "log").exists()
    await office.decided(item, "approve", client=office.ben)


@pytest.mark.promise("P5")
async def test_edit_into_a_call_of_other_deciders_is_left_to_them(office: Office) -> None:
    rule = {"name": "big", "then": "ask", "when": "args.limit > 100", "by": {"people": ["ben"]}}
    await office.policy({"rules": [rule]})
    item = await office.request()
    edit = [{"key": "0", "verb": "edit", "args": {"limit": 5000}}]
    response = await office.decide(item, actions=edit)
    assert response.status_code in (200, 403), response.text
    assert (await office.get(item["id"]))["status"] == "PENDING"


@pytest.mark.promise("P6")
async def test_a_rule_names_an_agent_by_its_name(office: Office) -> None:
    await office.policy({"rules": [{"name": "not this one", "then": "never", "agent": "a agent"}]})
    item = await office.request()
    assert [action["allowed"] for action in item["actions"]] == [["reject"]]


@pytest.mark.promise("P5")
async def test_answer_by_a_run_does_not_apply_to_an_edited_question(office: Office) -> None:
    await office.policy({"default": {"name": "two", "then": "ask", "approvals": 2}})
    item = await office.asked("hitl", {"text": "x"})
    edit = [{"key": "0", "verb": "edit", "args": {"to": "b", "body": "c"}}]
    edited = await office.decided(item, actions=edit)
    assert (edited["status"], edited["revision"]) == ("PENDING", 2)
    thread = item["source"]["thread_id"]
    problem(await office.answer(thread, "hitl", ACCEPT, office.ben), 409, "stale_revision")
    assert (await office.get(item["id"]))["status"] == "PENDING"


@pytest.mark.promise("P6")
async def test_edit_by_a_run_still_needs_the_second_person(office: Office) -> None:
    await office.policy(SEPARATE)
    item = await office.asked("hitl", {"text": "x"})
    thread = item["source"]["thread_id"]
    problem(await office.answer(thread, "hitl", EDIT, office.ana), 409, "conflict")
    now = await office.get(item["id"])
    assert (now["status"], now["revision"]) == ("PENDING", 1)


async def test_edit_with_a_verdict_that_would_be_lost_is_refused(office: Office) -> None:
    """The editor does not decide, so the rejection beside the edit must not get lost."""
    await office.policy(SEPARATE)
    item = await office.asked("batched", script(email("one"), email("two")))
    said: list[dict[str, Any]] = [
        {"key": "0", "verb": "edit", "args": {"to": "a@b.c", "body": "mine"}},
        {"key": "1", "verb": "reject", "message": "fraud"},
    ]
    problem(await office.decide(item, actions=said), 409, "conflict")
    now = await office.get(item["id"])
    assert (now["status"], now["revision"], now["decisions"]) == ("PENDING", 1, [])


@pytest.mark.promise("P4")
async def test_two_different_answers_are_no_agreement(office: Office) -> None:
    await office.policy({"default": {"name": "two", "then": "ask", "approvals": 2}})
    item = await office.asked("hitl", {"text": "x"})
    await office.decided(item, "respond", message="account A")
    problem(await office.decide(item, "respond", office.ben, message="account B"), 409, "conflict")
    await office.decided(item, "respond", client=office.ben, message="account A")


async def test_undo_by_one_approver_keeps_the_other_approvals(office: Office) -> None:
    await office.policy({"default": {"name": "two", "then": "ask", "approvals": 2}})
    item = await office.asked("hitl", {"text": "x"})
    await office.decided(item, "approve")
    back = await office.ana.delete(f"/api/inbox/items/{item['id']}/decision")
    assert back.json()["approvals"] == {"given": 0, "needed": 2}
    await office.decided(item, "approve")
    await office.decided(item, "approve", client=office.ben, grace_seconds=60)
    back = await office.ben.delete(f"/api/inbox/items/{item['id']}/decision")
    assert (back.json()["status"], back.json()["approvals"]["given"]) == ("PENDING", 1)


@pytest.mark.promise("P5")
@pytest.mark.parametrize("approvals", [1, 2])
async def test_undo_reverts_the_edit(office: Office, approvals: int) -> None:
    """Or the next one to approve would agree to what its author has thought better of."""
    await office.policy({"default": {"name": "some", "then": "ask", "approvals": approvals}})
    item = await office.asked("hitl", {"text": "x"})
    edit = [{"key": "0", "verb": "edit", "args": {"to": "b", "body": "oops"}}]
    edited = await office.decided(item, actions=edit, grace_seconds=60)
    assert edited["actions"][0]["args"]["body"] == "oops"
    back = (await office.ana.delete(f"/api/inbox/items/{item['id']}/decision")).json()
    assert (back["status"], back["revision"], back["hash"]) == ("PENDING", 3, item["hash"])
    assert back["approvals"] == {"given": 0, "needed": approvals}
    assert [back["actions"], back["summary"]] == [item["actions"], item["summary"]]
    *_, last = (await office.ana.get(f"/api/inbox/items/{item['id']}/revisions")).json()
    assert (last["author"], last["notes"]) == (back["decisions"][0]["actor"], "undone")
    assert (await office.kinds(item["id"]))[-2:] == ["item.edited", "item.undone"]
    problem(await office.decide(edited, "approve", office.ben), 409, "stale_revision")
    for client in (office.ana, office.ben)[:approvals]:
        await office.decided(back, "approve", client=client)
    asked = item["actions"][0]
    told = (await office.values(item["source"]["thread_id"]))["answer"]
    assert told == {"type": "accept", "args": {"action": asked["name"], "args": asked["args"]}}
    await office.verified()


async def test_undo_keeps_an_edit_by_someone_else(office: Office) -> None:
    await office.policy(SEPARATE)
    item = await office.asked("hitl", {"text": "x"})
    edit = [{"key": "0", "verb": "edit", "args": {"to": "b", "body": "c"}}]
    edited = await office.decided(item, actions=edit)
    await office.decided(edited, "approve", client=office.ben, grace_seconds=60)
    back = (await office.ben.delete(f"/api/inbox/items/{item['id']}/decision")).json()
    assert (back["status"], back["revision"], back["actions"]) == ("PENDING", 2, edited["actions"])


async def test_request_cannot_extend_the_deadline_of_the_policy(office: Office) -> None:
    await office.policy({"default": {"name": "soon", "then": "ask", "deadline": "1h"}})
    item = await office.request(expires_at="2099-01-01T00:00:00Z")
    assert item["expires_at"] < "2099"


@pytest.mark.promise("P10")
async def test_decision_in_a_delivery_is_shown_to_administrators_only(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    edit = [{"key": "0", "verb": "edit", "args": {"to": "b", "body": "secret"}}]
    decided = await office.decided(item, actions=edit, grace_seconds=60)
    delivery = f"/api/deliveries/{decided['delivery']['id']}"
    for client in (office.agent, office.ben):
        assert (await client.get(delivery)).json()["body"] is None
    admin = await office.house.admin()
    assert "secret" in (await admin.get(delivery)).text


async def test_bulk_decision_can_be_repeated_with_its_idempotency_key(office: Office) -> None:
    chosen = [await office.request(title=title) for title in ("one", "two")]
    body = {"items": [{name: one[name] for name in ("id", "revision", "hash")} for one in chosen], "verb": "approve"}
    said = [
        (await office.ana.post("/api/inbox/bulk", json=body, headers={"Idempotency-Key": "k"})).json() for _ in range(2)
    ]
    assert said[0] == said[1]
    assert all(result["ok"] for result in said[0]["results"])


@pytest.mark.promise("P7")
async def test_edit_into_a_call_forbidden_for_the_agent_is_refused(office: Office) -> None:
    rule = {"name": "not so much", "then": "never", "agent": "a agent", "when": "args.limit > 100"}
    await office.policy({"rules": [rule]})
    item = await office.request()
    edit = [{"key": "0", "verb": "edit", "args": {"limit": 5000}}]
    [fault] = problem(await office.decide(item, actions=edit), 422, "invalid_decision")["errors"]
    assert fault["path"] == "actions[0].args"
    now = await office.get(item["id"])
    assert (now["status"], now["revision"]) == ("PENDING", 1)


ADMINS = {"name": "admins", "then": "ask", "by": {"roles": ["admin"]}, "mask": ["body"]}


@pytest.mark.promise("P10")
async def test_reviewer_not_named_by_the_rule_sees_no_secrets_and_cannot_cancel(office: Office) -> None:
    await office.policy({"rules": [{**ADMINS, "tool": "send_email"}]})
    item = await office.asked("batched", script(email("hunter2")))
    assert {"reveal", "cancel"}.isdisjoint(item["can"])
    for what in ("reveal", "cancellation"):
        refused = await office.post(item, what)
        assert problem(refused, 403, "not_allowed")["missing"] == ["admins"]
        assert "hunter2" not in refused.text
    now = await office.get(item["id"])
    assert now["status"] == "PENDING"
    assert "item.revealed" not in await office.kinds(item["id"])
    assert "item.attempt_refused" in await office.kinds(item["id"])
    admin = await office.house.admin()
    assert {"reveal", "cancel"} <= set((await office.get(item["id"], admin))["can"])
    assert "hunter2" in (await office.post(item, "reveal", admin)).text
    assert (await office.post(item, "cancellation", office.agent)).json()["status"] == "CANCELLED", "it has asked"


@pytest.mark.promise("P10")
async def test_dry_run_shows_no_items_hidden_by_the_auth_handlers(build: Builder) -> None:
    office = await staff(await build(config=GRAPHS.parents[1] / "graphs_auth" / "langgraph.json"))
    users = ("owner:ada", "own reviewer")
    ada, otto = (office.house.client(headers={"authorization": f"Bearer {who}"}) for who in users)
    thread = await office.run("whoami", {"ask": True}, client=ada)
    [item] = await office.items(f"is:pending thread:{thread}")
    for revision in (1, 7):
        chosen = [{"id": item["id"], "revision": revision, "hash": item["hash"]}]
        body = {"items": chosen, "verb": "approve", "dry_run": True}
        [tried] = (await otto.post("/api/inbox/bulk", json=body)).json()["results"]
        assert (tried["ok"], tried["error"]["code"]) == (False, "not_found")


async def test_dry_run_shows_callers_without_decide_only_that_they_may_not(office: Office) -> None:
    await office.policy({"rules": [ADMINS]})
    item = await office.request()
    for seen in ({"revision": 1, "hash": item["hash"]}, {"revision": 7, "hash": "x"}):
        for client in (office.ana, office.agent):
            body = {"items": [{"id": item["id"], **seen}], "verb": "approve", "dry_run": True}
            [tried] = (await client.post("/api/inbox/bulk", json=body)).json()["results"]
            assert (tried["ok"], tried["error"]["code"]) == (False, "not_allowed")


def hitl(count: int) -> dict[str, Any]:
    """One question about many calls, each of which says what it is about."""
    calls = [{"name": "pay", "args": {"pin": f"pin-{n}"}, "description": f"pin-{count - 1 - n}"} for n in range(count)]
    allowed = [{"action_name": "pay", "allowed_decisions": ["approve", "reject"]}]
    return {"questions": [{"action_requests": calls, "review_configs": allowed}]}


@pytest.mark.promise("P12")
async def test_question_with_many_actions_is_parsed_once(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    await office.policy({"default": {"name": "all", "then": "ask", "mask": ["pin"]}})
    item = await office.asked("asking", hitl(60))
    assert all(action["description"] == "••••••" for action in item["actions"]), "also what another one says of it"
    read: list[object] = []

    def counted(interrupt: Any) -> Any:
        read.append(interrupt)
        return recognise(interrupt)

    monkeypatch.setattr(thread_items, "recognise", counted)
    await office.get(item["id"])
    assert len(read) <= 3
    read.clear()
    assert len((await office.ana.get(f"/api/inbox/items/{item['id']}/revisions")).json()) == 1
    assert len(read) <= 3
    read.clear()
    await office.decided(item, "approve", grace_seconds=60)
    assert len(read) < 20


@pytest.mark.promise("P7")
async def test_question_with_too_many_actions_is_withdrawn(office: Office) -> None:
    """No rule has looked at them, so nobody answers, and nothing that a rule would mask is shown."""
    secret = {"name": "pay", "then": "never", "tool": "pay", "mask": ["pin"]}
    await office.policy({"rules": [secret], "default": "advise"})
    item = await office.asked("asking", hitl(MOST_ACTIONS))
    assert (item["dialect"], len(item["actions"])) == ("hitl_request", MOST_ACTIONS)
    item = await office.asked("asking", hitl(MOST_ACTIONS + 1))
    assert (item["dialect"], item["gated"], item["asked"]) == ("raw", True, None)
    assert "more than 500" in item["problems"][0]["message"]
    assert "pin-" not in str(item)
    assert [action["allowed"] for action in item["actions"]] == [[]]
    thread = item["source"]["thread_id"]
    answer = {"decisions": [{"type": "approve"}] * (MOST_ACTIONS + 1)}
    problem(await office.decide(item, "respond", message="yes"), 422, "invalid_decision")
    for client in (office.agent, office.ana):
        assert (await office.answer(thread, "asking", answer, client)).status_code in (403, 422)
    assert (await office.get(item["id"]))["status"] == "PENDING"
    assert (await office.post(item, "cancellation")).json()["status"] == "CANCELLED"
    await office.rests(thread)


IN_DOUBT = {"kind": "assent.in_doubt", "gate": "assent", "item_id": "i", "grant_id": "g", "name": "pay", "args": {}}


@pytest.mark.promise("P6", "P7")
@pytest.mark.parametrize("value", [IN_DOUBT, {"kind": "assent.in_doubt"}])
async def test_question_that_imitates_a_doubt_of_the_gate_is_gated(office: Office, value: Any) -> None:
    item = await office.asked("asking", {"questions": [value]})
    assert (item["gated"], item["dialect"], item["execution"]) == (True, "raw", None)
    thread = item["source"]["thread_id"]
    refused = await office.answer(thread, "asking", {item["source"]["interrupt_id"]: {"approved": True}})
    assert refused.status_code == 403, refused.text
    assert (await office.get(item["id"]))["status"] == "PENDING"
    await office.decided(item, "respond", message="no")
    assert (await office.values(thread))["answers"] == ["no"]


@pytest.mark.promise("P6")
async def test_question_that_imitates_a_doubt_is_gated_on_postgres(postgres_url: str, build: Builder) -> None:
    office = await open_office(build, database=postgres_url)
    await test_question_that_imitates_a_doubt_of_the_gate_is_gated(office, IN_DOUBT)


@pytest.mark.promise("P3")
async def test_answer_with_the_text_of_a_breakpoint_verb_is_plain_text(office: Office) -> None:
    """`end` ends a thread that stopped before a node; to a question it is a text like any other."""
    item = await office.asked("asking", {"questions": [{"which": "word?"}]})
    await office.decided(item, "respond", message="end")
    assert (await office.values(item["source"]["thread_id"]))["answers"] == ["end"]


@pytest.mark.parametrize("reads", [False, True])
async def test_collaboration_shows_no_item_to_a_key_that_may_not_read(office: Office, reads: bool) -> None:
    """The changes answer with the whole item. No scope implies another; the control is a key with both."""
    scopes = ["comments:write", "items:read"] if reads else ["comments:write"]
    commenter = office.house.client(await office.house.key(Kind.AGENT, *scopes))
    item, thread = await office.request(), await office.thread(office.ana)
    path, until = f"/api/inbox/items/{item['id']}", "2100-01-01T00:00:00Z"
    changes: list[tuple[str, str, Any]] = [
        ("PUT", "claim", None),
        ("DELETE", "claim", None),
        ("PUT", "draft", {"draft": {"notes": "mine"}}),
        ("PUT", "snooze", {"until": until}),
        ("PUT", f"links/{thread}", None),
        ("DELETE", f"links/{thread}", None),
    ]
    answers = [await commenter.request(verb, f"{path}/{below}", json=body) for verb, below, body in changes]
    shown = [answer.status_code for answer in answers if "Raise the limit" in answer.text]
    assert bool(shown) is reads
    assert reads or {answer.status_code for answer in answers} == {403}
    assert (await commenter.post(f"{path}/comments", json={"text": "seen"})).status_code == 201
