"""Masking of a thread's secrets: in calls of every format, in questions, in texts, in streams."""

import json
from typing import Any

import pytest

from assent.review.model.masking import Covering
from assent.review.model.secrets import MASK, Cover, cover_of

pytestmark = pytest.mark.promise("P10")

CANARY = "h'u\"n\\t\ner2 ünï"
ARGS = {"password": CANARY, "to": "a"}
HIDDEN = {"password": MASK, "to": "a"}


def names(tool: str) -> Cover:
    return cover_of(None, ["body"]) if tool == "send" else Cover()


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ({"name": "log_in", "args": ARGS, "id": "1"}, {"name": "log_in", "args": HIDDEN, "id": "1"}),
        ({"tool_name": "log_in", "arguments": ARGS}, {"tool_name": "log_in", "arguments": HIDDEN}),
        ({"action": "log_in", "args": ARGS}, {"action": "log_in", "args": HIDDEN}),
        ({"type": "tool_use", "name": "x", "input": ARGS}, {"type": "tool_use", "name": "x", "input": HIDDEN}),
        (
            {"event": "tool-started", "tool_name": "send", "input": {"body": "b0dy"}},
            {"event": "tool-started", "tool_name": "send", "input": {"body": MASK}},
        ),
        ({"type": "tool_call_chunk", "args": '{"password": "zq'}, {"type": "tool_call_chunk", "args": MASK}),
        ({"name": "send", "args": {"body": "b0dy"}}, {"name": "send", "args": {"body": MASK}}),
        ({"name": "other", "args": {"body": "b0dy"}}, {"name": "other", "args": {"body": "b0dy"}}),
        ({"name": "", "args": {"x": "part"}}, {"name": "", "args": {"x": MASK}}),
        ({"name": "log_in", "args": '{"password": "zqx'}, {"name": "log_in", "args": MASK}),
        (
            {"type": "invalid_tool_call", "name": "x", "args": "{", "error": "bad: {hun"},
            {"type": "invalid_tool_call", "name": "x", "args": "{", "error": MASK},
        ),
        ({"name": "x", "args": {"pin": 123456}, "n": 123456}, {"name": "x", "args": {"pin": MASK}, "n": MASK}),
    ],
)
def test_a_call_is_masked_however_it_is_written(call: Any, shown: Any) -> None:
    assert Covering(names)({"messages": [call]}) == {"messages": [shown]}


def test_arguments_in_a_json_text_are_masked_and_stay_json() -> None:
    call = {"function": {"name": "log_in", "arguments": json.dumps(ARGS)}}
    shown = Covering(names)({"additional_kwargs": {"tool_calls": [call]}})
    assert json.loads(shown["additional_kwargs"]["tool_calls"][0]["function"]["arguments"]) == HIDDEN


def test_texts_before_and_after_a_call_mask_its_secret() -> None:
    said = {"type": "human", "content": f"log in with {CANARY}", "id": "m1"}
    made = {"type": "ai", "tool_calls": [{"name": "log_in", "args": ARGS}]}
    result = {"type": "tool", "content": f"Args: {ARGS!r} {json.dumps(ARGS)}"}
    shown = Covering(names)([said, made, result])
    assert "er2" not in json.dumps(shown)
    assert shown[0] == {"type": "human", "content": f"log in with {MASK}", "id": "m1"}


def test_secret_names_are_masked_outside_of_calls() -> None:
    value = {"profile": {"api_key": "k", "n": 1}, "text": 'x {"token": 1}', "json": '{"token": "t", "n": 1}'}
    shown = Covering(names)(value)
    assert shown["profile"] == {"api_key": MASK, "n": 1}
    assert json.loads(shown["json"]) == {"token": MASK, "n": 1}


def test_a_schema_keeps_its_properties_and_loses_their_values() -> None:
    form = {"type": "object", "properties": {"password": {"type": "string", "default": "d3fault"}}}
    question = {"id": "i", "value": {"requested_schema": form}}
    shown = Covering(names)({"interrupts": {"t": [question]}})
    kept = shown["interrupts"]["t"][0]["value"]["requested_schema"]["properties"]["password"]
    assert kept == {"type": "string", "default": MASK}


def test_secrets_of_a_question_are_learnt_by_name() -> None:
    asked = {"__interrupt__": [{"id": "i", "value": {"token": "t0ken", "message": "use t0ken"}}]}
    assert "t0ken" not in json.dumps(Covering(names)(asked))


def test_tool_result_without_a_name_is_matched_by_its_call() -> None:
    covering = Covering(names, calls={"c1": cover_of(None, ["amount"])})
    answer = {"approvals": [{"call_id": "c1", "approved": True, "arguments": {"amount": 5, "to": "a"}}]}
    assert covering(answer)["approvals"][0]["arguments"] == {"amount": MASK, "to": "a"}


def test_ids_are_not_masked() -> None:
    id = "01234567-1234-1234-1234-123412341234"
    assert Covering(names, ["1234"])({"id": id, "text": "pin 1234"}) == {"id": id, "text": f"pin {MASK}"}


def chunk(text: str, **more: Any) -> list[Any]:
    return [{"type": "AIMessageChunk", "id": "m", "content": text, **more}, {}]


def test_secret_streamed_word_by_word_is_masked() -> None:
    covering = Covering(names, ["open sesame now"])
    parts = ["the word is open", " ses", "ame", " now", ". Or op"]
    said = "".join(covering.part("messages", chunk(part))[0]["content"] for part in parts)
    said += covering.part("messages", chunk("", chunk_position="last"))[0]["content"]
    assert said == f"the word is {MASK}. Or op"


def test_growing_message_does_not_show_the_beginning_of_a_secret() -> None:
    covering = Covering(names, ["sesame"])
    for text, shown in (("say ses", "say "), ("say sesa", "say "), ("say sesame!", f"say {MASK}!")):
        [message] = covering.part("messages/partial", [{"type": "ai", "content": text}])
        assert message["content"] == shown


def block(kind: str, **more: Any) -> Any:
    return {"event": f"content-block-{kind}", "index": 0, **more}


def test_secret_streamed_in_content_blocks_is_masked() -> None:
    covering = Covering(names, ["hunter22"])
    parts = ["it is hun", "ter", "22, again", " hunt"]
    deltas = [block("delta", delta={"type": "text-delta", "text": part}) for part in parts]
    said = "".join(covering.part("messages", delta)["delta"]["text"] for delta in deltas)
    assert said == f"it is {MASK}, again "
    whole = block("finish", content={"type": "text", "text": "".join(parts)})
    assert covering.part("messages", whole)["content"]["text"] == f"it is {MASK}, again hunt"
    another = block("delta", delta={"type": "text-delta", "text": "next"})
    assert covering.part("messages", another)["delta"]["text"] == "next"


def test_pieces_of_calls_in_a_stream_are_masked() -> None:
    pieces = [{"name": None, "args": 'word": "zqx', "index": 0, "id": None, "type": "tool_call_chunk"}]
    block = {"type": "tool_use", "partial_json": 'word": "zqx', "index": 1}
    shown = Covering(names).part("messages", chunk("", tool_call_chunks=pieces, response_metadata={"b": [block]}))
    assert "zqx" not in json.dumps(shown)
