"""The assistant for whoever accepts `text/event-stream`: its words as they come, then the body that others get."""

import json
from pathlib import Path

import httpx
import pytest

from assent.assistant.talk.views import begins, words_of
from assent.settings import Mode
from assent.threads.model.frames import Frame
from tests.api.house import Builder
from tests.api.talking import GRAPHS, SECRET_KEY, YES, Body, Talk, approvals, house, houses, responses, talk

__all__ = ["house", "houses", "talk"]

STREAM = {"accept": "text/event-stream, application/json"}


async def said(talk: Talk, path: str, **body: object) -> httpx.Response:
    return await talk.client.post(path, json={"thread_id": talk.thread, **body}, headers=STREAM)


def events(response: httpx.Response) -> list[tuple[str, Body]]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in response.text.splitlines() if line and not line.startswith(":")]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in pairs]


async def test_stream_sends_words_and_then_the_reply(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "open").touch()
    response = await said(talk, "/run", user_request=f"speak:{tmp_path / 'open'}")
    *words, (last, reply) = events(response)
    assert [(name, word["text"]) for name, word in words] == [
        ("words", "Well,\nthen"),
        ("words", " let us\x1b begin."),
        ("words", "Done: nothing."),
    ]
    first, second, third = (word["message_id"] for _, word in words)
    assert first == second != third
    assert (last, reply) == (
        "reply",
        {"status": "success", "thread_id": talk.thread, "response": "Done: nothing."},
    )
    assert response.headers["content-location"] == f"/threads/{(await talk.state())['thread_id']}"


async def test_stream_ends_with_the_same_question_as_json(talk: Talk) -> None:
    [(_, asked)] = events(await said(talk, "/run", user_request="ask confirm"))
    assert (asked["status"], asked["thread_id"]) == ("clarification_required", talk.thread)
    answers = responses(asked["pending_action"], "x", "y")
    [(_, asked)] = events(await said(talk, "/resume", clarification_responses=answers))
    assert asked["status"] == "confirmation_required"
    *words, (_, reply) = events(await said(talk, "/resume", approvals=approvals(asked["pending_action"], YES, YES)))
    assert [word["text"] for _, word in words] == [reply["response"]]
    assert len(await talk.done()) == 4


async def test_run_without_words_streams_only_the_reply(talk: Talk) -> None:
    action = await talk.asked("confirm")
    [(name, reply)] = events(await said(talk, "/resume", approvals=approvals(action, YES, YES)))
    assert (name, reply["status"]) == ("reply", "success")


async def test_refusal_is_the_same_as_without_a_stream(talk: Talk) -> None:
    await talk.asked("confirm")
    for path, body, status in (
        ("/run", {"user_request": "hello"}, 409),
        ("/run", {}, 422),
        ("/resume", {"approvals": []}, 422),
        ("/resume", {"approvals": [], "thread_id": "unknown"}, 404),
    ):
        response = await said(talk, path, **body)
        assert (response.status_code, response.json()["status"]) == (status, "error")


async def test_failure_is_sent_at_the_end_of_the_stream(talk: Talk) -> None:
    [(name, reply)] = events(await said(talk, "/run", user_request="fail"))
    assert (name, reply["status"], reply["code"]) == ("reply", "error", "assistant_failed")
    assert reply["id"] in reply["message"]
    assert "sk-do-not-tell" not in str(reply)
    assert (await talk.run("hello")).status_code == 200


def frame(seq: int, event: str, data: object) -> Frame:
    return Frame(seq, event, json.dumps(data).encode(), "id")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"type": "AIMessageChunk", "id": "m", "content": "well"}, "well"),
        ({"type": "ai", "id": "m", "content": [{"type": "text", "text": "we"}, {"type": "image"}, "ll"]}, "well"),
        ({"type": "AIMessageChunk", "id": "m", "content": "", "tool_call_chunks": [{}]}, None),
        ({"type": "human", "id": "m", "content": "well"}, None),
        ({"type": "tool", "id": "m", "content": "well"}, None),
    ],
)
def test_stream_contains_only_words_of_the_model(message: Body, text: str | None) -> None:
    words = words_of(frame(2, "messages", [message, {}]))
    assert (words and words.text) == text
    assert words_of(frame(2, "values", {"messages": [message]})) is None


def test_late_listener_gets_no_words_before_the_next_attempt() -> None:
    heard = [seq for seq in (1, 2, 1_000_000, 1_000_001, 2_000_001, 2_000_002) if begins(frame(seq, "metadata", {}))]
    assert heard == [1, 1_000_001, 2_000_001]


async def test_stream_on_postgres_sends_words_and_then_the_reply(
    postgres_url: str, build: Builder, tmp_path: Path
) -> None:
    (tmp_path / "open").touch()
    settings = {"config": GRAPHS, "secret_key": SECRET_KEY, "assistant": "scripted", "database": postgres_url}
    house = await build(Mode.SERVE, **settings)
    client = house.client(await house.person("ana"))
    talk = Talk(house, client, client, "t")
    *words, (_, reply) = events(await said(talk, "/run", user_request=f"speak:{tmp_path / 'open'} ask"))
    assert "".join(word["text"] for _, word in words) == "Well,\nthen let us\x1b begin."
    answers = responses(reply["pending_action"], "x", "y")
    *words, (_, reply) = events(await said(talk, "/resume", clarification_responses=answers))
    assert "".join(word["text"] for _, word in words) in ("", reply["response"])
    assert reply["response"] == "Done: x; y."
