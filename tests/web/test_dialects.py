"""Every way of asking, from its form on the page to the exact value that the agent gets."""

from typing import Any

import pytest

from tests.web.conftest import Desk

pytestmark = pytest.mark.usefixtures("at_once")

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "As on the <b>passport</b>"},
        "age": {"type": "integer"},
        "member": {"type": "boolean", "default": True},
        "plan": {"type": "string", "enum": ["basic", "pro"], "enumNames": ["Basic", "Pro"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}},
        "memo": {"type": "string"},
    },
    "required": ["name", "age"],
}
FILLED = {
    "a0.form.name": "Mira",
    "a0.form.age": "42",
    "a0.form.plan": '"pro"',
    "a0.form.tags": ['"a"', '"c"'],
    "a0.form.memo": "",
}


class TestForms:
    async def test_a_form_is_made_from_its_schema_and_sent(self, desk: Desk) -> None:
        item = await desk.raised({"kind": "form_elicitation", "message": "Who are you?", "schema": FORM})
        page = await desk.open(item["id"])
        assert "As on the &lt;b&gt;passport&lt;/b&gt;" in page
        assert '<option value="&#34;pro&#34;">Pro</option>' in page
        response = await desk.decide(item["id"], "accept", **FILLED)
        assert response.status_code == 303, response.text
        content = {"name": "Mira", "age": 42, "member": False, "plan": "pro", "tags": ["a", "c"]}
        assert await desk.answer(item) == {"action": "accept", "content": content}

    @pytest.mark.parametrize(("age", "told"), [("", "is required"), ("old", "is not JSON"), ("4.5", "age")])
    async def test_what_does_not_fit_is_named_and_kept(self, desk: Desk, age: str, told: str) -> None:
        item = await desk.raised({"kind": "form_elicitation", "message": "Who are you?", "schema": FORM})
        response = await desk.decide(item["id"], "accept", **(FILLED | {"a0.form.age": age}))
        assert response.status_code == 422
        assert told in response.text
        assert "Mira</textarea>" in response.text
        assert (await desk.item(item["id"]))["status"] == "PENDING"

    async def test_what_was_filled_in_stands_there_again_but_no_secret(self, desk: Desk) -> None:
        schema = {**FORM, "properties": {**FORM["properties"], "pin": {"type": "string", "format": "password"}}}
        item = await desk.raised({"kind": "form_elicitation", "message": "Who are you?", "schema": schema})
        response = await desk.decide(item["id"], "accept", **(FILLED | {"a0.form.age": "old", "a0.form.pin": "4711"}))
        assert "4711" not in response.text
        assert '<option value="&#34;pro&#34;" selected>' in response.text
        assert [f'<option value="&#34;{tag}&#34;" selected>' in response.text for tag in "abc"] == [True, False, True]
        assert 'name="a0.form.member" value="true" data-shown' in response.text, "the tick was taken away"

    @pytest.mark.parametrize("verb", ["decline", "cancel"])
    async def test_a_form_can_be_turned_down(self, desk: Desk, verb: str) -> None:
        item = await desk.raised({"kind": "form_elicitation", "message": "Who are you?", "schema": FORM})
        assert (await desk.decide(item["id"], verb)).status_code == 303
        assert await desk.answer(item) == {"action": verb}

    async def test_several_forms_of_a_server_are_answered_at_once(self, desk: Desk) -> None:
        form = {
            "mode": "form",
            "key": "f",
            "message": "Which?",
            "requested_schema": {"properties": {"n": {"type": "number"}}},
        }
        link = {"mode": "url", "key": "u", "message": "Sign in", "url": "https://login.example.com/start?x=1"}
        item = await desk.raised({"type": "mcp_elicitation", "tool_name": "book", "requests": [form, link]})
        page = await desk.open(item["id"])
        assert '<strong class="host">login.example.com</strong>' in page
        sent = {"a0.verb": "accept", "a0.form.n": "598", "a1.verb": "accept"}
        assert (await desk.send(item["id"], "decision", **sent)).status_code == 303
        answers = {"f": {"action": "accept", "content": {"n": 598}}, "u": {"action": "accept"}}
        assert await desk.answer(item) == {"responses": answers}


async def test_a_login_shows_the_whole_host(desk: Desk) -> None:
    url = "https://accounts.example.com.evil.example:8443/o/auth?continue=https://example.com"
    item = await desk.raised({"kind": "oauth_url", "url": url, "message": "Please sign in"})
    page = await desk.open(item["id"])
    assert '<strong class="host">accounts.example.com.evil.example:8443</strong>' in page
    assert 'rel="noopener noreferrer"' in page
    assert (await desk.decide(item["id"], "accept")).status_code == 303
    assert await desk.answer(item) == {"action": "accept"}


async def test_questions_are_answered_each_with_a_text(desk: Desk) -> None:
    asked = [{"call_id": f"c{n}", "question": f"Which {n}?", "context": None} for n in range(2)]
    item = await desk.raised({"kind": "clarification", "clarifications": asked})
    sent = {f"a{n}.verb": "respond" for n in range(2)} | {f"a{n}.message": f"the {n}" for n in range(2)}
    assert (await desk.send(item["id"], "decision", **sent)).status_code == 303
    assert await desk.answer(item) == {"responses": [{"call_id": f"c{n}", "response": f"the {n}"} for n in range(2)]}


async def test_a_confirmation_needs_a_reason_to_be_rejected(desk: Desk) -> None:
    calls = [{"call_id": "c1", "tool_name": "delete_event", "arguments": {"id": 7}}]
    item = await desk.raised({"kind": "confirmation", "tool_calls": calls})
    bare = await desk.decide(item["id"], "reject", **{"a0.message": " "})
    assert bare.status_code == 422
    assert "is required to reject" in bare.text
    assert (await desk.decide(item["id"], "reject", **{"a0.message": "Keep it"})).status_code == 303
    assert await desk.answer(item) == {"approvals": [{"call_id": "c1", "approved": False, "feedback": "Keep it"}]}


@pytest.mark.promise("INBOX-15")
async def test_all_flag_combinations_offer_exactly_what_they_allow(desk: Desk) -> None:
    verbs = {"allow_accept": "approve", "allow_edit": "edit", "allow_respond": "respond", "allow_ignore": "ignore"}
    for flags in range(16):
        config = {flag: bool(flags & 1 << place) for place, flag in enumerate(verbs)}
        request = {"action": "send_email", "args": {"to": "a@b.c"}}
        item = await desk.raised({"action_request": request, "config": config, "description": None})
        page = await desk.open(item["id"])
        offered = {verb for verb in verbs.values() if f'name="verb" value="{verb}"' in page}
        assert offered == {verb for flag, verb in verbs.items() if config[flag]}, config
        assert ("accepts no answer" in page) is (flags == 0)


@pytest.mark.promise("INBOX-27", "INBOX-28")
async def test_what_is_malformed_is_shown_raw_with_what_is_wrong(desk: Desk) -> None:
    broken: dict[str, Any] = {"action_request": {"action": 5, "args": "none"}, "config": {"allow_accept": "yes"}}
    item = await desk.raised(broken)
    page = await desk.open(item["id"])
    assert "Not fully understood" in page
    assert "action_request.action" in page
    assert (await desk.decide(item["id"], "respond", **{"a0.message": "try again"})).status_code == 303
    assert await desk.answer(item) == "try again"
