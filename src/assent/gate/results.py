"""Records the result of a call as JSON beside its grant: an attempt after a crash gets the same result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage, messages_from_dict
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, Send

from assent.kernel import canonical
from assent.kernel.canonical import Json

_MARK = "assent"


class CallFailed(RuntimeError):
    """The call ran before and failed; it does not run again under the same approval."""


class ResultLost(RuntimeError):
    """The call ran before, and its result could not be stored."""


class Stopped(GraphInterrupt):
    """Raised by a call that cannot continue now: its approval stays valid until the call resumes. `note` is kept with
    the grant: the state of the graph is not trusted to say how the call continues."""

    def __init__(self, note: Json = None) -> None:
        super().__init__()
        self.note = note


class CutOff(RuntimeError):
    """Raised by a call that was sent and whose outcome is unknown: its grant stays started, and the call is in
    doubt."""


def recorded(result: Any) -> Json:
    """Never fails, because the call has already run."""
    try:
        value = _written(result)
        canonical.text(value)
    except (TypeError, ValueError, RecursionError):
        return {"lost": type(result).__name__}
    return {"value": value}


def failure(error: Exception) -> Json:
    return {"error": type(error).__name__, "message": str(error)}


def is_failure(result: Any) -> bool:
    return isinstance(result, ToolMessage) and result.status == "error"


def with_comments(result: Any, comments: str) -> Any:
    """The result of a tool with the comments of reviewers for the model. Only a text can hold them."""
    if isinstance(result, ToolMessage):
        return result.model_copy(update={"content": with_comments(result.content, comments)})
    if isinstance(result, str):
        return f"{result}\n\n{comments}"
    if isinstance(result, list) and all(isinstance(part, str | dict) for part in result):
        return [*result, {"type": "text", "text": comments}]
    return result


def restored(kept: Json) -> Any:
    """Returns the recorded result, or raises the error recorded in its place."""
    if isinstance(kept, dict) and "value" in kept:
        return _read(kept["value"])
    if isinstance(kept, dict) and "error" in kept:
        raise CallFailed(f"the call ran before and failed: {kept['error']}: {kept.get('message')}")
    raise ResultLost("the call ran before, and its result could not be stored")


def settled(kept: Json) -> str | None:
    """The decision of a person about an interrupted call, as text for its caller."""
    if not isinstance(kept, dict) or "doubt" not in kept:
        return None
    notes = f" {kept['notes']}" if kept.get("notes") else ""
    if kept["doubt"] == "done":
        return f"A person has confirmed that this call was carried out.{notes}"
    return f"This call was interrupted, and a person has abandoned it. Do not retry it.{notes}"


def _written(value: Any) -> Json:
    if isinstance(value, BaseMessage):
        return {_MARK: "message", "of": {"type": value.type, "data": _message(value)}}
    if isinstance(value, Command):
        goto = [value.goto] if isinstance(value.goto, str | Send) else list(value.goto)
        return {_MARK: "command", "graph": value.graph, "update": _written(value.update), "goto": _written(goto)}
    if isinstance(value, Send):
        return {_MARK: "send", "node": value.node, "arg": _written(value.arg)}
    if isinstance(value, Mapping):
        # a tool's own value with our key is escaped
        written = {key: _written(item) for key, item in value.items()}
        return {_MARK: "mapping", "of": written} if _MARK in written else written
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_written(item) for item in value]
    return value


def _message(message: BaseMessage) -> Json:
    """Leaves out the artifact of a tool message if it is not JSON."""
    try:
        data = message.model_dump(mode="json")
        canonical.text(data)
    except ValueError:
        return message.model_dump(mode="json", exclude={"artifact"})
    return data


def _read(kept: Json) -> Any:
    if isinstance(kept, list):
        return [_read(item) for item in kept]
    if not isinstance(kept, dict):
        return kept
    match kept.get(_MARK):
        case "message":
            return messages_from_dict([kept["of"]])[0]
        case "command":
            return Command(graph=kept["graph"], update=_read(kept["update"]), goto=_read(kept["goto"]))
        case "send":
            return Send(kept["node"], _read(kept["arg"]))
        case "mapping":
            return {key: _read(item) for key, item in kept["of"].items()}
    return {key: _read(item) for key, item in kept.items()}
