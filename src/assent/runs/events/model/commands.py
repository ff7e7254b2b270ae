"""The commands of the protocol: what a client may ask, and how it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from assent.review.dialects.answers import is_interrupt_id
from assent.runs.events.model.channels import is_namespace
from assent.threads.model.runs import Strategy

START, RESPOND, TREE = "run.start", "input.respond", "agent.getTree"
SUBSCRIBE, UNSUBSCRIBE, RECONNECT = "subscription.subscribe", "subscription.unsubscribe", "subscription.reconnect"
METHODS = frozenset({START, RESPOND, TREE, SUBSCRIBE, UNSUBSCRIBE, RECONNECT})

INVALID, UNKNOWN, NO_RUN = "invalid_argument", "unknown_command", "no_such_run"
NO_INTERRUPT, NO_SUBSCRIPTION, DENIED, ERROR = (
    "no_such_interrupt",
    "no_such_subscription",
    "permission_denied",
    "unknown_error",
)

_TRACED = frozenset({"project_name", "example_id"})


class CommandError(Exception):
    """A command is refused. `code` is one of the protocol's; `facts` are sent beside it."""

    def __init__(self, code: str, message: str, facts: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts = facts or {}


@dataclass(frozen=True, slots=True)
class Command:
    id: int
    method: str
    params: dict[str, Any]


def command_in(sent: Any) -> Command:
    fields = sent if isinstance(sent, dict) else {}
    number, method = fields.get("id"), fields.get("method")
    if not isinstance(number, int) or isinstance(number, bool) or not isinstance(method, str):
        raise CommandError(INVALID, "Protocol commands must include an integer id and string method.")
    params = fields.get("params")
    return Command(number, method, params if isinstance(params, dict) else {})


def success(command: Command, result: dict[str, Any], seq: int = 0) -> dict[str, Any]:
    return {"type": "success", "id": command.id, "result": result, "meta": {"applied_through_seq": seq}}


def failure(command_id: Any, error: CommandError) -> dict[str, Any]:
    return {**error.facts, "type": "error", "id": command_id, "error": error.code, "message": error.message}


def started(params: dict[str, Any]) -> dict[str, Any]:
    """The fields of the run that `run.start` asks for."""
    assistant_id = params.get("assistant_id")
    if not isinstance(assistant_id, str) or not assistant_id:
        raise CommandError(INVALID, "run.start requires an assistant_id.")
    _require_tracer(params.get("langsmith_tracer"))
    named = params.get("multitaskStrategy")
    known = isinstance(named, str) and named in set(Strategy)
    return {
        "assistant_id": assistant_id,
        "input": params.get("input"),
        "checkpoint_id": _checkpoint(params),
        "multitask_strategy": named if known else None,
        "if_not_exists": "create",
        **_configured(params),
    }


def answered(params: dict[str, Any]) -> dict[str, Any]:
    """The fields of the run that `input.respond` asks for: answers by the ids of their questions. The assistant is the
    one of the thread."""
    steering = {name: params[name] for name in ("update", "goto") if params.get(name) is not None}
    command = {"resume": answers_in(params), **steering}
    return {"command": command, **_configured(params)}


def answers_in(params: dict[str, Any]) -> dict[str, Any]:
    """The answers by interrupt id: a single one, or several in `responses`."""
    listed = params.get("responses")
    entries = listed if isinstance(listed, list) else [params]
    if not entries:
        raise CommandError(INVALID, "input.respond requires at least one response.")
    answers: dict[str, Any] = {}
    for entry in entries:
        if not isinstance(entry, dict):
            raise CommandError(INVALID, "input.respond responses entries must be objects.")
        if not isinstance(entry.get("interrupt_id"), str):
            place = "responses entries require" if entry is not params else "requires"
            raise CommandError(INVALID, f"input.respond {place} an interrupt_id.")
        if not is_interrupt_id(entry["interrupt_id"]):  # as a mere key it would make the answer positional
            raise CommandError(NO_INTERRUPT, f"Unknown interrupt: {entry['interrupt_id'][:100]}", {"status": 409})
        if not is_namespace(entry.get("namespace", [])):
            raise CommandError(INVALID, "input.respond requires namespace to be a list of strings.")
        if entry["interrupt_id"] in answers:
            raise CommandError(INVALID, "input.respond answers the same interrupt twice.")
        answers[entry["interrupt_id"]] = entry.get("response")
    return answers


def _configured(params: dict[str, Any]) -> dict[str, Any]:
    return {name: params.get(name) for name in ("config", "metadata")}


def _checkpoint(params: dict[str, Any]) -> str | None:
    config = params.get("config")
    named = config.get("configurable") if isinstance(config, dict) else None
    checkpoint = named.get("checkpoint_id") if isinstance(named, dict) else None
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, str) or not checkpoint.strip():
        raise CommandError(INVALID, "config.configurable.checkpoint_id must be a non-empty string.")
    try:
        UUID(checkpoint)
    except ValueError:
        raise CommandError(INVALID, f"Invalid config.configurable.checkpoint_id: {checkpoint[:100]!r}.") from None
    return checkpoint


def _require_tracer(tracer: Any) -> None:
    """Checked as LangGraph's server does, and otherwise ignored."""
    if tracer is None:
        return
    if not isinstance(tracer, dict):
        raise CommandError(INVALID, "langsmith_tracer must be an object.")
    if unknown := sorted(tracer.keys() - _TRACED):
        raise CommandError(INVALID, f"langsmith_tracer has unsupported fields: {unknown[:5]!r}.")
    for name, value in tracer.items():
        if not isinstance(value, str):
            raise CommandError(INVALID, f"langsmith_tracer.{name} must be a string.")
