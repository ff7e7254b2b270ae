"""The rules of the event protocol: translation of frames, numbers and ids, selections, states, commands."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assent.runs.events.model import states
from assent.runs.events.model.channels import BadSelection, selection
from assent.runs.events.model.commands import CommandError, answered, command_in, started
from assent.runs.events.model.events import Event, base_of
from assent.runs.events.model.translation import RunEvents
from assent.threads.model.frames import ATTEMPT_STRIDE, Frame
from assent.threads.model.runs import Run, RunStatus, Strategy

BEGAN = datetime(2026, 11, 18, 12, tzinfo=UTC)
QUESTION = {"id": "0" * 32, "value": {"q": 1}}


def run(**more: Any) -> Run:
    facts: dict[str, Any] = {
        "id": "run",
        "thread_id": "thread",
        "assistant_id": "assistant",
        "graph_id": "graph",
        "status": RunStatus.RUNNING,
        "position": 1,
        "attempt": 1,
        "actor": "agent",
        "answers": False,
        "wake_at": None,
        "cancel": None,
        "temporary": False,
        "multitask_strategy": Strategy.REJECT,
        "metadata": {},
        "kwargs": {},
        "error": None,
        "webhook": None,
        "created_at": BEGAN,
        "updated_at": BEGAN,
        "started_at": BEGAN,
        "ended_at": None,
    }
    return Run(**{**facts, **more})


def frame(seq: int, event: str, data: Any) -> Frame:
    return Frame(seq, event, json.dumps(data).encode(), f"1-{seq}")


def told(events: list[Event]) -> list[tuple[str, tuple[str, ...], Any]]:
    return [(event.method, tuple(event.namespace), event.data) for event in events]


def lifecycle(state: str, name: str = "graph", **more: Any) -> Any:
    return {"event": state, "graph_name": name, **more}


def test_a_run_begins_and_ends_once() -> None:
    events = RunEvents(run())
    seen = [*events.of(frame(1, "metadata", {"run_id": "run"}), 1), *events.of(frame(2, "values", {"a": 1}), 2)]
    seen += [*events.end(RunStatus.SUCCESS, 3), *events.end(RunStatus.SUCCESS, 3)]
    assert told(seen) == [
        ("lifecycle", (), lifecycle("running")),
        ("values", (), {"a": 1}),
        ("lifecycle", (), lifecycle("completed")),
    ]
    assert [event.at for event in seen] == [1, 2, 3]
    assert [event.id for event in seen] == ["synth:run:lc||running", "1-2", "synth:run:lc||completed"]


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (RunStatus.SUCCESS, "completed"),
        (RunStatus.ERROR, "failed"),
        (RunStatus.TIMEOUT, "failed"),
        (RunStatus.INTERRUPTED, "interrupted"),
        (None, "interrupted"),
    ],
)
def test_every_end_is_told(status: RunStatus | None, state: str) -> None:
    [*_, last] = RunEvents(run()).end(status, 1)
    assert last.data["event"] == state


def test_a_question_is_told_once_with_both_names_and_as_the_end() -> None:
    events = RunEvents(run())
    seen = list(events.of(frame(1, "values", {"a": 1, "__interrupt__": [QUESTION]}), 1))
    seen += events.of(frame(2, "updates", {"__interrupt__": [QUESTION]}), 1)
    seen += [*events.ask([QUESTION], 1), *events.end(RunStatus.SUCCESS, 1)]
    assert told(seen) == [
        ("lifecycle", (), lifecycle("running")),
        ("input.requested", (), {"interrupt_id": "0" * 32, "payload": {"q": 1}, "value": {"q": 1}}),
        ("lifecycle", (), lifecycle("interrupted")),
        ("values", (), {"a": 1}),
    ]


def test_an_error_is_told_once() -> None:
    events = RunEvents(run())
    seen = [*events.of(frame(1, "error", {"error": "E", "message": "boom"}), 1), *events.end(RunStatus.ERROR, 1)]
    assert told(seen)[1:] == [("lifecycle", (), lifecycle("failed", error="boom"))]


def test_a_subgraph_that_is_still_open_ends_with_its_run() -> None:
    events = RunEvents(run())
    started = {"event": "started", "namespace": ["child:1"], "graph_name": "child", "trigger_call_id": "1"}
    seen = [*events.of(frame(1, "lifecycle", started), 1), *events.of(frame(2, "values|child:1|deep:2", {"a": 1}), 1)]
    seen += events.end(RunStatus.SUCCESS, 1)
    assert told(seen)[1:] == [
        ("lifecycle", ("child:1",), started),
        ("values", ("child:1", "deep:2"), {"a": 1}),
        ("lifecycle", ("child:1", "deep:2"), lifecycle("completed", "deep")),
        ("lifecycle", ("child:1",), lifecycle("completed", "child")),
        ("lifecycle", (), lifecycle("completed")),
    ]
    assert [child["graph_name"] for child in events.tree()["children"]] == ["child"]


def test_an_update_names_its_node_and_ends_its_oldest_subgraph() -> None:
    events = RunEvents(run())
    list(events.of(frame(1, "values|child:1", {"a": 1}), 1))
    seen = list(events.of(frame(2, "updates", {"child": {"a": 2}}), 1))
    assert [(event.method, event.node) for event in seen] == [("updates", "child"), ("lifecycle", None)]


def test_the_result_of_a_tool_is_a_message_too() -> None:
    finished = {"event": "tool-finished", "tool_call_id": "c", "output": {"content": [1], "id": "m"}}
    _, tool, *messages = RunEvents(run()).of(frame(1, "tools", finished), 1)
    assert tool.method == "tools"
    assert {(event.method, tuple(event.namespace)) for event in messages} == {("messages", ("tools:c",))}
    assert messages[0].data == {"event": "message-start", "role": "tool", "id": "m", "tool_call_id": "c"}
    assert messages[3].data["content"] == {"type": "text", "text": "[1]"}


def test_numbers_grow_over_frames_attempts_and_runs() -> None:
    events = RunEvents(run())
    seen = [*events.of(frame(1, "values", {"a": 1}), 1), *events.of(frame(2, "values", {"a": 2}), 1)]
    second = list(events.of(frame(ATTEMPT_STRIDE + 1, "values", {"a": 3}), 1))
    assert [event.seq - base_of(BEGAN) for event in seen] == [1, 2, 3]
    assert second[0].seq - seen[-1].seq > 64 * 8  # what a process may have sent and not stored
    assert base_of(BEGAN + timedelta(milliseconds=1)) > second[-1].seq
    assert base_of(datetime(2059, 1, 1, tzinfo=UTC)) < 2**53


def test_events_that_cannot_be_translated_again_are_numbered_after_those_that_were_read() -> None:
    events = RunEvents(run())
    events.continue_after(base_of(BEGAN) + 17)
    assert [event.seq - base_of(BEGAN) for event in events.end(RunStatus.SUCCESS, 1)] == [18]


@pytest.mark.parametrize("channels", [None, [], "values", ["debug"], [1], [None], ["custom:"], ["values"] * 2000])
def test_a_bad_selection_is_refused(channels: Any) -> None:
    with pytest.raises(BadSelection):
        selection({"channels": channels})


@pytest.mark.parametrize(
    ("asked", "namespace", "is_selected"),
    [
        ({}, ["child:1"], True),
        ({"namespaces": [["child"]]}, ["child:1", "deep:2"], True),
        ({"namespaces": [["child:2"]]}, ["child:1"], False),
        ({"namespaces": [["child"]], "depth": 0}, ["child:1", "deep:2"], False),
        ({"namespaces": [[]], "depth": 0}, [], True),
        ({"namespaces": [[]], "depth": False}, ["child:1"], True),
        ({"namespaces": "x"}, ["child:1"], True),
    ],
)
def test_namespaces_and_depth_select(asked: Any, namespace: list[str], is_selected: bool) -> None:
    event = Event("id", 1, "values", namespace, {}, 1)
    assert selection({"channels": ["values"], **asked}).matches(event) is is_selected


@pytest.mark.parametrize(("channel", "is_selected"), [("custom", True), ("custom:mine", True), ("custom:other", False)])
def test_a_named_custom_channel_selects_its_events(channel: str, is_selected: bool) -> None:
    event = Event("id", 1, "custom", [], {"name": "mine", "payload": 1}, 1)
    assert selection({"channels": [channel]}).matches(event) is is_selected


def test_messages_in_a_state_have_content_blocks_and_calls() -> None:
    said = {
        "type": "assistant",
        "id": "m",
        "content": ["text", {"type": "image_url", "image_url": {"url": "u"}}, {"type": "own", "x": 1}],
        "response_metadata": {},
        "additional_kwargs": {"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
    }
    assert states.shown({"messages": [said, "x"], "__interrupt__": [QUESTION], "other": {"messages": 1}}) == {
        "messages": [
            {
                "type": "ai",
                "content": [
                    {"type": "text", "text": "text"},
                    {"type": "image", "url": "u"},
                    {"type": "non_standard", "value": {"type": "own", "x": 1}},
                ],
                "id": "m",
                "tool_calls": [{"type": "tool_call", "name": "f", "id": "c", "args": {"a": 1}}],
            },
            "x",
        ],
        "other": {"messages": 1},
    }


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ({"id": "c"}, {"type": "invalid_tool_call", "error": "Incomplete tool call.", "id": "c"}),
        (
            {"name": "f", "args": "{"},
            {"type": "invalid_tool_call", "error": "Malformed args.", "name": "f", "args": "{"},
        ),
    ],
)
def test_calls_that_cannot_be_read_are_invalid(call: Any, shown: Any) -> None:
    said = states.shown([{"type": "ai", "content": "", "tool_calls": [call]}])
    assert said[0]["invalid_tool_calls"] == [shown]


@pytest.mark.parametrize("sent", [None, [], {}, {"id": "1", "method": "x"}, {"id": True, "method": "x"}, {"id": 1}])
def test_a_command_has_a_number_and_a_method(sent: Any) -> None:
    with pytest.raises(CommandError):
        command_in(sent)


def test_an_answer_is_always_by_id() -> None:
    """An unknown key would make the answer positional."""
    with pytest.raises(CommandError, match="Unknown interrupt"):
        answered({"interrupt_id": "decisions", "response": "yes"})
    given = [{"interrupt_id": "0" * 32, "response": 1}, {"interrupt_id": "1" * 32, "response": 2}]
    assert answered({"responses": given, "goto": "x"})["command"] == {
        "resume": {"0" * 32: 1, "1" * 32: 2},
        "goto": "x",
    }


def test_a_fork_is_named_in_the_config() -> None:
    checkpoint = "1f1e3322-0ec3-6dff-bfff-6a35b4f1a300"
    params = {"assistant_id": "a", "config": {"configurable": {"checkpoint_id": checkpoint}}, "multitaskStrategy": "x"}
    fields = started(params)
    assert (fields["checkpoint_id"], fields["multitask_strategy"]) == (checkpoint, None)
