"""What came of a call, as JSON beside its grant: for the attempt that asks again after a crash, and gets the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage, messages_from_dict
from langgraph.types import Command, Send

from assent.domain import canonical
from assent.domain.canonical import Json

_MARK = "assent"


class CallFailed(RuntimeError):
    """The call was made before and failed; it is not made again under the same approval."""


class ResultLost(RuntimeError):
    """The call was made before, and what it returned could not be kept."""


class CutOff(RuntimeError):
    """Raised by a call that was sent and whose end nobody knows: its grant stays started, and the call is in doubt."""


def recorded(result: Any) -> Json:
    """Never fails: the call has been made, whatever it returned."""
    try:
        kept = _written(result)
        canonical.text(kept)
    except (TypeError, ValueError, RecursionError):
        return {"lost": type(result).__name__}
    return {"value": kept}


def failure(error: Exception) -> Json:
    return {"error": type(error).__name__, "message": str(error)}


def is_failure(result: Any) -> bool:
    return isinstance(result, ToolMessage) and result.status == "error"


def restored(kept: Json) -> Any:
    """The result as it was, or the error that stands for it."""
    if isinstance(kept, dict) and "value" in kept:
        return _read(kept["value"])
    if isinstance(kept, dict) and "error" in kept:
        raise CallFailed(f"it failed when it was made: {kept['error']}: {kept.get('message')}")
    raise ResultLost("it was made before, and its result could not be kept")


def settled(kept: Json) -> str | None:
    """What a person has said became of a call that was cut off, in words for whoever waits for its result."""
    if not isinstance(kept, dict) or "doubt" not in kept:
        return None
    notes = f" {kept['notes']}" if kept.get("notes") else ""
    if kept["doubt"] == "done":
        return f"A person has confirmed that this call was carried out.{notes}"
    return f"This call was cut off, and a person has decided to leave it at that. Do not retry it.{notes}"


def _written(value: Any) -> Json:
    if isinstance(value, BaseMessage):
        return {_MARK: "message", "of": {"type": value.type, "data": _message(value)}}
    if isinstance(value, Command):
        goto = [value.goto] if isinstance(value.goto, str | Send) else list(value.goto)
        return {_MARK: "command", "graph": value.graph, "update": _written(value.update), "goto": _written(goto)}
    if isinstance(value, Send):
        return {_MARK: "send", "node": value.node, "arg": _written(value.arg)}
    if isinstance(value, Mapping):
        return {key: _written(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_written(one) for one in value]
    return value


def _message(message: BaseMessage) -> Json:
    """What a tool returns beside its content, for code and not for the model, may be anything: it is kept if it can."""
    try:
        kept = message.model_dump(mode="json")
        canonical.text(kept)
    except ValueError:
        return message.model_dump(mode="json", exclude={"artifact"})
    return kept


def _read(kept: Json) -> Any:
    if isinstance(kept, list):
        return [_read(one) for one in kept]
    if not isinstance(kept, dict):
        return kept
    match kept.get(_MARK):
        case "message":
            return messages_from_dict([kept["of"]])[0]
        case "command":
            return Command(graph=kept["graph"], update=_read(kept["update"]), goto=_read(kept["goto"]))
        case "send":
            return Send(kept["node"], _read(kept["arg"]))
    return {key: _read(one) for key, one in kept.items()}
