"""A conversation as its page shows it: what people and the assistant said, and the calls that were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assent.assistant.talk.service import title_of
from assent.assistant.tools import CLARIFY
from assent.surfaces.web.text.words import Sign
from assent.surfaces.web.views.threads import conversation
from assent.surfaces.web.views.threads.conversation import Call, Said

PERSON = Sign("person", "You")
ASSISTANT = Sign("agent", "Assistant")
DONE = Sign("check", "Done", "good")
FAILED = Sign("cross", "Failed", "bad")
REJECTED = Sign("dash", "Rejected")

_DEFERRED, _REJECTED = "deferred", "rejected"


@dataclass(frozen=True, slots=True)
class Line:
    """A text, or a call with its result."""

    sign: Sign
    text: str = ""
    call: Call | None = None


def lines(values: Any) -> list[Line]:
    kinds = _kinds(values)
    return [line for said in conversation.of(values).messages for line in _of(said, kinds)]


def title(values: Any) -> str:
    """The first request in the state, on one line: for a thread that was not created by a request to the assistant."""
    said = (message.text for message in conversation.of(values).messages if message.sign.icon == PERSON.icon)
    return title_of(next(said, ""))


def _of(said: Said, kinds: Mapping[str, str]) -> Iterator[Line]:
    """A question to the person is a text like any other, and so is its answer. A call without a result is not shown:
    it runs, or the page shows its item."""
    if said.text:
        yield Line(PERSON if said.sign.icon == PERSON.icon else ASSISTANT, said.text)
    for call in said.calls:
        kind = kinds.get(call.id, "")
        if call.result is None or kind == _DEFERRED:
            continue
        if call.name == CLARIFY:
            yield Line(ASSISTANT, str(call.args.get("question", "")) if isinstance(call.args, Mapping) else "")
            yield Line(PERSON, call.result.text)
        else:
            yield Line(REJECTED if kind == _REJECTED else FAILED if call.result.failed else DONE, call=call)


def _kinds(values: Any) -> dict[str, str]:
    """The kinds of the answers that no tool gave, by call id."""
    messages = values.get("messages") if isinstance(values, Mapping) else None
    answers = [message for message in messages or () if isinstance(message, Mapping) and message.get("tool_call_id")]
    return {str(answer["tool_call_id"]): _kind(answer.get("additional_kwargs")) for answer in answers}


def _kind(kwargs: Any) -> str:
    ours = kwargs.get("assent") if isinstance(kwargs, Mapping) else None
    return str(ours.get("kind") or "") if isinstance(ours, Mapping) else ""
