"""The assistant over HTTP: every row of the contract's table, over a graph that asks by script."""

import asyncio
from pathlib import Path

import httpx
import pytest

from assent.assistant.talk.service import thread_of
from assent.identity.model.access import DEFAULT_TENANT, Kind, Role, operator
from assent.identity.onboarding import LOCAL_USER
from assent.settings import Mode
from tests.api.house import LOOPBACK, Builder, House
from tests.api.talking import GRAPHS, NO, SECRET_KEY, YES, Body, Talk, approvals, demo, house, houses, responses, talk
from tests.servers import dev_server, running
from tests.waiting import until, wait_until

__all__ = ["demo", "house", "houses", "talk"]

EVIL = "https://evil.example"


class TestSituations:
    @pytest.mark.promise("ASST-18")
    async def test_health_check_answers_200(self, house: House) -> None:
        response = await house.client().get("/health-check")
        assert (response.status_code, response.json()) == (200, "Server is healthy")

    @pytest.mark.promise("ASST-10")
    async def test_run_without_questions_answers_success(self, talk: Talk) -> None:
        response = await talk.run("hello")
        assert response.status_code == 200
        assert response.json() == {"status": "success", "thread_id": talk.thread, "response": "Done: nothing."}
        thread_id = (await talk.state())["thread_id"]
        assert response.headers["content-location"] == f"/threads/{thread_id}"

    @pytest.mark.promise("ASST-11", "ASST-13", "ASST-22")
    async def test_clarification_is_asked_and_answered(self, talk: Talk) -> None:
        response = await talk.run("ask")
        assert response.status_code == 202
        body = response.json()
        assert body.keys() == {"status", "thread_id", "pending_action"}
        assert (body["status"], body["thread_id"]) == ("clarification_required", talk.thread)
        action = body["pending_action"]
        assert action["kind"] == "clarification"
        first, second = action["clarifications"]
        assert (first["question"], first["context"]) == ("When?", "a day and a time")
        answered = await talk.resume(
            clarification_responses=[  # in any order
                {"call_id": second["call_id"], "response": "room 2"},
                {"call_id": first["call_id"], "response": "tomorrow"},
            ]
        )
        assert answered.status_code == 200
        assert answered.json() == {
            "status": "success",
            "thread_id": talk.thread,
            "response": "Done: tomorrow; room 2.",
        }

    @pytest.mark.promise("ASST-12", "ASST-14", "ASST-22")
    async def test_partial_approval_runs_only_the_approved_calls(self, talk: Talk) -> None:
        response = await talk.run("confirm")
        assert (response.status_code, response.json()["status"]) == (202, "confirmation_required")
        action = response.json()["pending_action"]
        assert action["kind"] == "confirmation"
        assert [call["tool_name"] for call in action["tool_calls"]] == ["create_event", "create_event"]
        assert action["tool_calls"][0]["arguments"] == {"name": "Standup", "minutes": 30}
        answered = await talk.resume(approvals=approvals(action, YES, NO))
        assert (answered.status_code, answered.json()["status"]) == (200, "success")
        assert await talk.done() == [{"name": "Standup", "minutes": 30}, "not done: too late"]

    async def test_approval_with_edited_arguments_runs_the_edited_call(self, talk: Talk) -> None:
        action = await talk.asked("confirm")
        same, other = {"minutes": 30, "name": "Standup"}, {"name": "Dinner", "minutes": 90}
        said = approvals(action, {**YES, "arguments": same}, {**YES, "arguments": other})
        assert (await talk.resume(approvals=said)).status_code == 200
        assert await talk.done() == [same, other]

    async def test_approval_with_feedback_is_recorded_as_notes(self, talk: Talk) -> None:
        action = await talk.asked("confirm")
        said = approvals(action, {**YES, "feedback": "but keep it short"}, YES)
        assert (await talk.resume(approvals=said)).status_code == 200
        [item] = await talk.items("is:approved")
        [decision] = (await talk.client.get(f"/api/inbox/items/{item['id']}")).json()["decisions"]
        assert decision["notes"] == "but keep it short"

    async def test_incomplete_answer_is_no_success(self, talk: Talk) -> None:
        response = await talk.run("cut")
        body = response.json()
        assert (response.status_code, body["status"], body["reason"]) == (200, "incomplete", "cut_reply")
        assert body["response"]
        assert (await talk.run("hello")).json()["status"] == "success"

    @pytest.mark.promise("ASST-19", "ASST-22")
    async def test_login_is_asked_with_its_url_and_confirmed(self, talk: Talk) -> None:
        response = await talk.run("login")
        url = "https://accounts.example.com:8443/connect?state=1"
        assert response.status_code == 202
        assert response.json() == {
            "status": "oauth_required",
            "thread_id": talk.thread,
            "url": url,
            "response": "Connect your calendar",
            "pending_action": {
                "kind": "oauth_url",
                "url": url,
                "message": "Connect your calendar",
                "elicitation_id": "e1",
            },
        }
        answered = await talk.resume(elicitation={"action": "accept"})
        assert answered.json()["response"] == "Done: {'action': 'accept'}."

    @pytest.mark.promise("ASST-22")
    async def test_form_is_asked_checked_and_submitted(self, talk: Talk) -> None:
        response = await talk.run("form")
        assert (response.status_code, response.json()["status"]) == (202, "form_required")
        action = response.json()["pending_action"]
        assert (action["kind"], action["message"]) == ("form_elicitation", "Which room?")
        assert action["schema"]["required"] == ["room", "people"]
        wrong = await talk.resume(elicitation={"action": "accept", "content": {"room": "red", "people": 2}})
        assert wrong.status_code == 422
        assert wrong.json()["errors"][0]["path"] == "elicitation.content.room"
        content = {"room": "blue", "people": 2}
        answered = await talk.resume(elicitation={"action": "accept", "content": content})
        assert answered.status_code == 200
        assert await talk.done() == [{"action": "accept", "content": content}]

    @pytest.mark.parametrize("action", ["decline", "cancel"])
    async def test_declined_form_continues_the_run(self, talk: Talk, action: str) -> None:
        await talk.asked("form")
        assert (await talk.resume(elicitation={"action": action})).status_code == 200
        assert await talk.done() == [{"action": action}]

    @pytest.mark.promise("ASST-17")
    async def test_successive_questions_are_asked_one_by_one(self, talk: Talk) -> None:
        action = await talk.asked("ask ask confirm login form")
        for status in ("clarification_required", "confirmation_required"):
            answered = await talk.resume(clarification_responses=responses(action, "x", "y"))
            assert (answered.status_code, answered.json()["status"]) == (202, status)
            action = answered.json()["pending_action"]
        answered = await talk.resume(approvals=approvals(action, YES, YES))
        assert answered.json()["status"] == "oauth_required"
        answered = await talk.resume(elicitation={"action": "decline"})
        assert answered.json()["status"] == "form_required"
        answered = await talk.resume(elicitation={"action": "decline"})
        assert answered.json()["status"] == "success"
        assert len(await talk.done()) == 8

    async def test_other_question_refers_to_the_inbox(self, talk: Talk) -> None:
        response = await talk.run("odd")
        [item] = await talk.items()
        assert (response.status_code, response.json()["status"]) == (202, "decision_required")
        assert response.json()["url"] == f"{LOOPBACK}/inbox/{item['id']}"
        action = {"kind": "other", "item_id": item["id"], "title": item["title"], "url": f"/inbox/{item['id']}"}
        assert response.json()["pending_action"] == {**action, "message": "decide it in the inbox"}
        refused = await talk.resume(approvals=[])
        assert (refused.status_code, refused.json()["status"]) == (409, "error")
        assert refused.json()["pending_action"] == response.json()["pending_action"]
        assert len(await talk.items()) == 1

    async def test_failed_run_shows_only_an_error_id_and_the_thread_stays_usable(self, talk: Talk) -> None:
        response = await talk.run("fail")
        assert response.status_code == 502
        body = response.json()
        assert (body["status"], body["code"], body["thread_id"]) == ("error", "assistant_failed", talk.thread)
        assert body["id"] in body["message"]
        for internal in ("model.internal", "sk-do-not-tell", "RuntimeError", "Traceback"):
            assert internal not in response.text
        again = await talk.run("ask")
        assert again.status_code == 202, again.text
        failed = await talk.resume(clarification_responses=responses(again.json()["pending_action"], "a", "b"))
        assert failed.status_code == 200

    async def test_failure_after_an_answer_is_502_and_the_thread_stays_usable(self, talk: Talk) -> None:
        action = await talk.asked("confirm fail")
        response = await talk.resume(approvals=approvals(action, YES, YES))
        assert (response.status_code, response.json()["code"]) == (502, "assistant_failed")
        assert (await talk.run("hello")).status_code == 200

    async def test_later_run_continues_the_thread(self, talk: Talk) -> None:
        for _ in range(3):
            assert (await talk.run("hello")).status_code == 200
        assert len((await talk.state())["values"]["messages"]) == 6


class TestBadInput:
    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"user_request": "hello"}, "thread_id"),
            ({"thread_id": "t"}, "user_request"),
            ({"thread_id": 5, "user_request": "hello"}, "thread_id"),
            ({"thread_id": "", "user_request": "hello"}, "thread_id"),
            ({"thread_id": " ", "user_request": "hello"}, "thread_id"),
            ({"thread_id": "a\nb", "user_request": "hello"}, "thread_id"),
            ({"thread_id": "x" * 201, "user_request": "hello"}, "thread_id"),
            ({"thread_id": "t", "user_request": ""}, "user_request"),
            ({"thread_id": "t", "user_request": "  "}, "user_request"),
            ({"thread_id": "t", "user_request": None}, "user_request"),
            ({"thread_id": "t", "user_request": ["hello"]}, "user_request"),
        ],
    )
    async def test_invalid_run_body_is_422_with_its_field(self, talk: Talk, body: Body, field: str) -> None:
        response = await talk.client.post("/run", json=body)
        assert response.status_code == 422
        assert response.json()["status"] == "error"
        assert field in response.json()["message"]
        assert [error["path"] for error in response.json()["errors"]] == [field]
        assert (await talk.client.post("/threads/search", json={})).json() == []

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"x"', b'{"thread_id":"t","thread_id":"u"}', b"\xff"])
    @pytest.mark.parametrize("path", ["/run", "/resume"])
    async def test_body_that_is_no_object_is_422(self, talk: Talk, path: str, content: bytes) -> None:
        response = await talk.client.post(path, content=content, headers={"content-type": "application/json"})
        assert response.status_code == 422
        assert response.json().keys() >= {"status", "message", "code"}
        assert response.json()["status"] == "error"

    async def test_wrong_method_and_wrong_content_type_are_refused(self, talk: Talk) -> None:
        assert (await talk.client.get("/run")).json()["status"] == "error"
        told = await talk.client.post("/run", content=b"thread_id=t", headers={"content-type": "text/plain"})
        assert (told.status_code, told.json()["status"]) == (422, "error")

    async def test_refused_answer_shows_the_pending_action(self, talk: Talk) -> None:
        action = await talk.asked("ask")
        for way in ("approvals", "clarification_responses"):
            assert (await talk.resume(**{way: []})).json()["pending_action"] == action
        blank = await talk.resume(clarification_responses=responses(action, "x", ""))
        assert (blank.status_code, blank.json()["errors"][0]["path"]) == (422, "clarification_responses[1].response")


class TestNotNow:
    async def test_resume_of_an_unknown_thread_is_refused(self, talk: Talk) -> None:
        response = await talk.resume(approvals=[])
        assert (response.status_code, response.json()["status"]) == (404, "error")
        assert response.json()["thread_id"] == talk.thread
        assert talk.thread in response.json()["message"]

    async def test_resume_with_nothing_pending_is_409(self, talk: Talk) -> None:
        await talk.run("hello")
        response = await talk.resume(approvals=[])
        assert response.status_code == 409
        assert response.json()["pending_action"] == {"kind": "no_action_needed"}
        assert "decision" not in response.json()

    async def test_resume_of_a_decided_item_is_409_with_the_decision(self, talk: Talk) -> None:
        action = await talk.asked("confirm")
        said = approvals(action, YES, NO)
        assert (await talk.resume(approvals=said)).status_code == 200
        again = await talk.resume(approvals=said)
        assert again.status_code == 409
        decision = again.json()["decision"]
        assert (decision["actor_name"], decision["via"]) == ("ana", "assistant")
        assert [action["verb"] for action in decision["actions"]] == ["approve", "reject"]

    async def test_run_with_a_pending_question_is_409(self, talk: Talk) -> None:
        action = await talk.asked("confirm")
        response = await talk.run("something else")
        assert (response.status_code, response.json()["status"]) == (409, "error")
        assert response.json()["pending_action"] == action
        assert await talk.runs() == 1

    async def test_run_during_a_run_is_409(self, talk: Talk, tmp_path: Path) -> None:
        gate = tmp_path / "open"
        first = asyncio.create_task(talk.run(f"slow:{gate}"))

        async def busy() -> bool:
            body = (await talk.client.post("/threads/search", json={})).json()
            return bool(body and body[0]["status"] == "busy")

        await until(busy)
        second = await talk.run("hello")
        answered = await talk.resume(approvals=[])
        assert (second.status_code, answered.status_code) == (409, 409)
        assert second.json()["pending_action"] == {"kind": "no_action_needed"}
        gate.touch()
        assert (await first).status_code == 200

    async def test_cancelled_request_ends_and_the_thread_stays_usable(self, talk: Talk, tmp_path: Path) -> None:
        running = asyncio.create_task(talk.run(f"slow:{tmp_path / 'never'}"))

        async def busy() -> bool:
            body = (await talk.client.post("/threads/search", json={})).json()
            return bool(body and body[0]["status"] == "busy")

        await until(busy)
        cancelled = await talk.client.post("/cancel", json={"thread_id": talk.thread})
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
        assert (await running).status_code == 409
        again = await talk.client.post("/cancel", json={"thread_id": talk.thread})
        assert (again.status_code, again.json()["message"]) == (409, "the assistant is not working on a request")
        unknown = await talk.client.post("/cancel", json={"thread_id": "nobody's"})
        assert unknown.status_code == 404
        assert (await talk.run("hello")).status_code == 200

    async def test_three_concurrent_resumes_have_one_winner(self, talk: Talk) -> None:
        action = await talk.asked("confirm")
        said = approvals(action, YES, YES)
        answers_given = await asyncio.gather(*(talk.resume(approvals=said) for _ in range(3)))
        assert sorted(response.status_code for response in answers_given) == [200, 409, 409]
        losers = [response.json() for response in answers_given if response.status_code == 409]
        assert len({loser["decision"]["id"] for loser in losers}) == 1
        assert len(await talk.done()) == 2

    async def test_thread_of_another_graph_is_refused(self, talk: Talk) -> None:
        made = await talk.client.post("/threads", json={})
        thread_id = made.json()["thread_id"]
        run = {"assistant_id": "email_draft", "input": {"to": "a@b.c"}}
        await talk.client.post(f"/threads/{thread_id}/runs/wait", json=run)
        talk.thread = thread_id
        assert (await talk.run("hello")).status_code == 404
        assert (await talk.resume(approvals=[])).status_code == 404

    async def test_missing_assistant_graph_is_refused(self, build: Builder) -> None:
        house = await build(Mode.SERVE, config=GRAPHS, secret_key=SECRET_KEY, assistant="missing")
        client = house.client(await house.person("ana"))
        response = await client.post("/run", json={"thread_id": "t", "user_request": "x"})
        assert (response.status_code, response.json()["status"]) == (503, "error")

    async def test_without_an_assistant_the_routes_are_404(self, build: Builder) -> None:
        house = await build(Mode.SERVE)
        client = house.client(await house.person("ana"))
        assert (await client.post("/run", json={})).status_code == 404
        assert (await client.get("/health-check")).status_code == 404


class TestOneQuestionEverywhere:
    async def test_resume_after_a_decision_in_the_inbox_is_409(self, talk: Talk) -> None:
        action = await talk.asked("confirm")
        [item] = await talk.items()
        whole = (await talk.client.get(f"/api/inbox/items/{item['id']}")).json()
        assert [action["call_id"] for action in whole["actions"]] == [
            tool_call["call_id"] for tool_call in action["tool_calls"]
        ]
        decision = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
        decided = await talk.client.post(f"/api/inbox/items/{item['id']}/decision", json=decision)
        assert decided.status_code == 200
        late = await talk.resume(approvals=approvals(action, NO, NO))
        assert late.status_code == 409
        assert [action["verb"] for action in late.json()["decision"]["actions"]] == ["approve", "approve"]

        async def rests() -> bool:
            return bool((await talk.state())["status"] == "idle")

        await until(rests)
        assert len(await talk.done()) == 2

    async def test_resume_after_an_answer_by_a_stock_client_is_409(self, talk: Talk) -> None:
        action = await talk.asked("confirm")
        thread_id = (await talk.state())["thread_id"]
        resume = {"approvals": approvals(action, YES, YES)}
        run = {"assistant_id": "scripted", "command": {"resume": resume}}
        answered = await talk.client.post(f"/threads/{thread_id}/runs/wait", json=run)
        assert answered.status_code == 200
        late = await talk.resume(approvals=approvals(action, NO, NO))
        assert (late.status_code, late.json()["decision"]["via"]) == (409, "langgraph")

    async def test_decision_by_resume_is_shown_in_the_inbox(self, talk: Talk) -> None:
        action = await talk.asked("confirm")
        await talk.resume(approvals=approvals(action, YES, NO))
        [item] = await talk.items("")
        assert (item["status"], item["resolution"]) == ("APPROVED", "partial")
        told = (await talk.client.get(f"/api/inbox/items/{item['id']}/timeline")).json()
        assert told[-1]["payload"]["via"] == "assistant"

    @pytest.mark.parametrize("confirm", ["passkey", None])
    async def test_item_that_needs_a_passkey_is_not_approved_by_resume(self, talk: Talk, confirm: str | None) -> None:
        """The control: without the word in the rule it is."""
        rule = {"name": "all", "tool": "*", "then": "ask", "confirm": confirm}
        await talk.house.services.policies.put(operator(), {"rules": [rule]})
        action = await talk.asked("confirm")
        [item] = await talk.items()
        answered = await talk.resume(approvals=approvals(action, YES, YES))
        if confirm is None:
            assert answered.status_code == 200
            return
        told = answered.json()
        assert (answered.status_code, told["status"], told["code"]) == (403, "error", "confirmation_required")
        assert told["url"] == f"http://localhost:2024/inbox/{item['id']}"
        assert await talk.done() == []
        assert (await talk.resume(approvals=approvals(action, NO, NO))).status_code == 200

    async def test_existing_thread_id_continues_that_thread(self, talk: Talk) -> None:
        made = (await talk.client.post("/threads", json={})).json()
        talk.thread = made["thread_id"]
        response = await talk.run("hello")
        assert response.headers["content-location"] == f"/threads/{made['thread_id']}"

    @pytest.mark.promise("P10")
    async def test_name_that_an_agent_took_first_gets_no_request_of_a_person(self, talk: Talk) -> None:
        """An agent can guess a name. It may read a thread that it owns, also one that it has shared."""
        trap = thread_of(DEFAULT_TENANT, talk.thread)
        made = await talk.agent.post("/threads", json={"thread_id": trap, "visibility": "shared"})
        assert made.status_code == 200, made.text
        told = await talk.run("my salary is a secret")
        assert (told.status_code, told.json()["code"]) == (409, "conflict")
        assert "salary" not in (await talk.agent.get(f"/threads/{trap}/state")).text
        talk.client = talk.agent
        assert (await talk.run("hello")).status_code == 200

    async def test_two_tenants_with_the_same_name_have_two_threads(self, talk: Talk) -> None:
        await talk.asked("confirm")
        other = talk.house.client(await talk.house.person("eve", tenant="other"))
        assert (await other.post("/resume", json={"thread_id": talk.thread, "approvals": []})).status_code == 404
        ran = await other.post("/run", json={"thread_id": talk.thread, "user_request": "hello"})
        assert ran.status_code == 200


class TestWho:
    @pytest.mark.promise("P6")
    async def test_request_without_a_credential_in_production_is_refused(self, talk: Talk) -> None:
        action = await talk.asked("confirm")
        stranger = talk.house.client()
        for path in ("/run", "/resume"):
            body = {"thread_id": talk.thread, "user_request": "x", "approvals": approvals(action, YES, YES)}
            response = await stranger.post(path, json=body)
            assert (response.status_code, response.json()["status"]) == (401, "error")
        assert len(await talk.items()) == 1

    @pytest.mark.promise("P6")
    async def test_an_agent_asks_and_answers_questions_but_decides_nothing(self, talk: Talk) -> None:
        talk.client, person = talk.agent, talk.client
        action = await talk.asked("ask confirm login")
        answered = await talk.resume(clarification_responses=responses(action, "x", "y"))
        assert answered.status_code == 202
        said = approvals(answered.json()["pending_action"], YES, YES)
        refused = await talk.resume(approvals=said)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
        talk.client = person
        assert (await talk.resume(approvals=said)).json()["status"] == "oauth_required"
        talk.client = talk.agent
        assert (await talk.resume(elicitation={"action": "accept"})).status_code == 403

    async def test_service_decides_nothing_on_a_shared_thread_and_does_not_find_a_private_one(self, talk: Talk) -> None:
        action, owner = await talk.asked("confirm"), talk.client
        talk.client = talk.house.client(await talk.house.key(Kind.SERVICE))
        assert (await talk.resume(approvals=approvals(action, YES, YES))).status_code == 404
        [thread] = (await owner.post("/threads/search", json={})).json()
        shared = await owner.patch(f"/threads/{thread['thread_id']}", json={"visibility": "shared"})
        assert shared.status_code == 200, shared.text
        assert (await talk.resume(approvals=approvals(action, YES, YES))).status_code == 403

    async def test_viewer_cannot_run(self, talk: Talk) -> None:
        talk.client = talk.house.client(await talk.house.person("vic", Role.VIEWER))
        assert (await talk.run("hello")).status_code == 403

    async def test_a_session_from_another_page_is_refused(self, talk: Talk) -> None:
        browser = await talk.house.signed_in("ben")
        action = await talk.asked("confirm")
        body = {"thread_id": talk.thread, "approvals": approvals(action, YES, YES)}
        refused = await browser.post("/resume", json=body, headers={"origin": EVIL})
        assert refused.status_code == 403
        assert (await browser.post("/resume", json=body)).status_code == 200


class TestKeylessInTheDemo:
    async def test_keyless_caller_runs_and_decides_as_the_local_person(self, demo: House) -> None:
        client = demo.client()
        asked = await client.post("/run", json={"thread_id": "t", "user_request": "confirm"})
        assert asked.status_code == 202, asked.text
        said = approvals(asked.json()["pending_action"], YES, YES)
        assert (await client.post("/resume", json={"thread_id": "t", "approvals": said})).status_code == 200
        late = (await client.post("/resume", json={"thread_id": "t", "approvals": said})).json()
        assert late["decision"]["actor_name"] == LOCAL_USER

    @pytest.mark.promise("P6")
    async def test_keyless_caller_is_an_agent_on_other_routes(self, demo: House) -> None:
        client = demo.client()
        await client.post("/run", json={"thread_id": "t", "user_request": "confirm"})
        assert (await client.get("/api/me")).json()["id"] == "local-agent"
        [item] = (await client.get("/api/inbox/items")).json()["items"]
        decision = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
        assert (await client.post(f"/api/inbox/items/{item['id']}/decision", json=decision)).status_code == 403
        for path in ("/run/", "/resume/", "//resume"):
            refused = await client.post(path, json={"thread_id": "t", "approvals": []})
            assert refused.status_code in (307, 404, 405)

    @pytest.mark.promise("P6")
    @pytest.mark.parametrize("path", ["/run", "/resume"])
    @pytest.mark.parametrize(
        ("client", "headers", "status"),
        [
            ({}, {"origin": EVIL}, 401),
            ({}, {"origin": "null"}, 401),
            ({}, {"origin": "http://127.0.0.1:2024"}, 401),
            ({}, {"origin": "http://localhost:3000"}, 401),
            ({}, {"sec-fetch-site": "cross-site"}, 401),
            ({}, {"x-forwarded-for": "127.0.0.1"}, 401),
            ({"peer": "192.168.1.7"}, {}, 401),
            ({"url": "http://rebound.example:2024"}, {}, 421),
        ],
    )
    async def test_keyless_caller_from_a_page_or_another_machine_is_refused(
        self, demo: House, path: str, client: Body, headers: dict[str, str], status: int
    ) -> None:
        asked = await demo.client().post("/run", json={"thread_id": "t", "user_request": "confirm"})
        said = approvals(asked.json()["pending_action"], YES, YES)
        body = {"thread_id": "t", "user_request": "hello", "approvals": said}
        refused = await demo.client(**client).post(path, json=body, headers=headers)
        assert (refused.status_code, refused.json()["status"]) == (status, "error")
        control = await demo.client().post("/resume", json={"thread_id": "t", "approvals": said})
        assert control.status_code == 200

    @pytest.mark.promise("P6")
    @pytest.mark.parametrize(
        "headers", [{"x-api-key": "nope"}, {"authorization": "Bearer nope"}, {"authorization": "Basic abc"}]
    )
    async def test_invalid_credential_is_refused(self, demo: House, headers: dict[str, str]) -> None:
        asked = await demo.client().post("/run", json={"thread_id": "t", "user_request": "confirm"})
        body = {"thread_id": "t", "approvals": approvals(asked.json()["pending_action"], YES, YES)}
        refused = await demo.client().post("/resume", json=body, headers=headers)
        assert refused.status_code == 403
        assert (await demo.client().post("/resume", json=body)).status_code == 200

    async def test_keyless_caller_in_dev_stays_an_agent(self, build: Builder) -> None:
        policy = {"config": GRAPHS, "secret_key": SECRET_KEY, "assistant": "scripted"}
        house = await build(Mode.DEV, **policy)
        await house.services.onboarding.welcome()
        client = house.client()
        asked = await client.post("/run", json={"thread_id": "t", "user_request": "confirm"})
        said = approvals(asked.json()["pending_action"], YES, YES)
        refused = await client.post("/resume", json={"thread_id": "t", "approvals": said})
        assert (refused.status_code, refused.json()["status"]) == (403, "error")
        assert "reviewer key" in refused.json()["hint"]

    async def test_a_disabled_local_person_decides_nothing(self, demo: House) -> None:
        await demo.services.users.change(operator(), LOCAL_USER, disabled=True)
        client = demo.client()
        asked = await client.post("/run", json={"thread_id": "t", "user_request": "confirm"})
        said = approvals(asked.json()["pending_action"], YES, YES)
        assert (await client.post("/resume", json={"thread_id": "t", "approvals": said})).status_code == 403


async def test_rule_with_two_approvals_needs_two_people(talk: Talk) -> None:
    two = {"default": {"name": "two", "then": "ask", "approvals": 2}}
    await talk.house.services.policies.put(operator(), two)
    action = await talk.asked("confirm")
    said = approvals(action, YES, YES)
    half = await talk.resume(approvals=said)
    assert (half.status_code, half.json()["message"]) == (202, "1 of 2 people have agreed")
    assert half.json()["pending_action"] == action
    assert (await talk.resume(approvals=said)).status_code == 409
    talk.client = talk.house.client(await talk.house.person("ben"))
    assert (await talk.resume(approvals=said)).status_code == 200


async def test_secrets_stay_masked_and_keep_their_place(talk: Talk) -> None:
    rule = {"name": "all", "then": "ask", "mask": ["name"]}
    await talk.house.services.policies.put(operator(), {"default": rule})
    action = await talk.asked("confirm")
    assert "Standup" not in str(action)
    first = action["tool_calls"][0]["arguments"]
    said = approvals(action, {**YES, "arguments": {**first, "minutes": 45}}, YES)
    answered = await talk.resume(approvals=said)
    assert answered.status_code == 200, answered.text
    assert (await talk.done())[0] == {"name": "Standup", "minutes": 45}
    assert "Standup" not in str((await talk.resume(approvals=said)).json()["decision"])


async def test_concurrent_resumes_on_postgres_have_one_winner(postgres_url: str, build: Builder) -> None:
    house = await build(Mode.SERVE, config=GRAPHS, secret_key=SECRET_KEY, assistant="scripted", database=postgres_url)
    client = house.client(await house.person("ana"))
    talk = Talk(house, client, client, "t")
    action = await talk.asked("ask confirm")
    asked = await talk.resume(clarification_responses=responses(action, "x", "y"))
    assert asked.json()["status"] == "confirmation_required", asked.text
    said = approvals(asked.json()["pending_action"], YES, YES)
    answers_given = await asyncio.gather(*(talk.resume(approvals=said) for _ in range(3)))
    assert sorted(response.status_code for response in answers_given) == [200, 409, 409]
    assert len(await talk.done()) == 4


@pytest.mark.parametrize("is_read", [False, True])
async def test_check_of_a_conversation_does_not_count_as_shown(talk: Talk, is_read: bool) -> None:
    """An answer by position is for a question that someone has read: `/cancel` shows none."""
    thread = f"/threads/{(await talk.client.post('/threads', json={})).json()['thread_id']}"
    asks = {"assistant_id": "scripted", "input": {"messages": [{"role": "user", "content": "odd"}]}}
    assert (await talk.client.post(f"{thread}/runs", json=asks)).status_code == 200

    async def is_asked() -> bool:
        return bool(await talk.items())

    await until(is_asked)
    refused = await talk.client.post("/cancel", json={"thread_id": thread.rpartition("/")[2]})
    assert refused.json()["message"] == "the assistant is not working on a request"
    if is_read:
        await talk.client.get(thread)
    answer = {"assistant_id": "scripted", "command": {"resume": "fine"}}
    answered = await talk.client.post(f"{thread}/runs/wait", json=answer)
    assert answered.status_code == (200 if is_read else 409), answered.text


def test_pending_question_survives_a_killed_server(tmp_path: Path) -> None:
    """A real server, killed while a person thinks, and killed again while it works."""
    server = dev_server(f"sqlite:///{tmp_path / 'talk.db'}", config=GRAPHS, ASSENT_ASSISTANT="scripted")
    gate = tmp_path / "open"
    with running(server):
        headers = {"x-api-key": server.printed("reviewer key")}
        ask = {"thread_id": "t", "user_request": f"confirm slow:{gate}"}
        asked = httpx.post(f"{server.url}/run", json=ask, headers=headers, trust_env=False, timeout=30)
        assert asked.status_code == 202, asked.text
        server.kill()
    said = {"thread_id": "t", "approvals": approvals(asked.json()["pending_action"], YES, NO)}
    with running(server):
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/resume", json=said, headers=headers, trust_env=False, timeout=2)
        server.kill()
    gate.touch()
    with running(server), httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=30) as client:
        late = client.post("/resume", json=said)
        assert (late.status_code, late.json()["decision"]["via"]) == (409, "assistant")
        query = {"metadata": {"assistant_thread_id": "t"}, "status": "idle"}
        wait_until(lambda: client.post("/threads/search", json=query).json(), "it did not go on")
        [thread] = client.post("/threads/search", json=query).json()
        assert thread["values"]["done"] == [{"name": "Standup", "minutes": 30}, "not done: too late"]
