"""The questions of MCP servers, as values of pauses (docs/dialects.md), and the answers as the protocol wants them.

A server asks in three ways. Since 2026-07-28 a call ends with its questions and continues in a next round, on any
connection. Before, the server asks over the open connection, and the call goes on after the answer. Error -32042 ends
the call: it has to be made again once the person has followed a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from typing_extensions import TypedDict

from assent.kernel import canonical
from assent.kernel.canonical import Json

if TYPE_CHECKING:
    from mcp_types import ElicitResult, InputRequiredResult

URL_REQUIRED = -32042
_URL = "url"

Answers = Mapping[str, Json]


class PausedCall(TypedDict):
    """A call that waits for answers to `questions`, by key. `token` is the state of the server's next round, or the id
    of the call that this process holds."""

    goes_on: Literal["held", "round", "again"]
    token: str | None
    questions: dict[str, dict[str, Any]]
    id: NotRequired[str]
    seal: NotRequired[str | None]


LOST: PausedCall = {"goes_on": "held", "token": None, "questions": {}}
"""A call of which nobody knows how it continues."""


class Asked(Exception):
    """The server needs input from the person first. `questions` are those without an answer."""

    def __init__(self, paused: PausedCall, answers: Answers | None = None) -> None:
        super().__init__(*paused["questions"])
        self.paused = paused
        self.questions = {key: value for key, value in paused["questions"].items() if key not in (answers or {})}


def held(token: str, key: str, value: dict[str, Any]) -> PausedCall:
    return {"goes_on": "held", "token": token, "questions": {key: value}}


def round_of(result: InputRequiredResult) -> PausedCall:
    from mcp_types import ElicitRequest

    questions = {}
    for key, request in (result.input_requests or {}).items():
        if not isinstance(request, ElicitRequest):
            raise RuntimeError(f"the server asks for {request.method}, which this client does not support")
        questions[key] = value_of(request.params)
    return {"goes_on": "round", "token": result.request_state, "questions": questions}


def link_of(error: Any) -> PausedCall | None:
    """The link that error -32042 requires; None if it names none."""
    data = error.data if isinstance(error.data, dict) else {}
    wanted = next((item for item in data.get("elicitations") or () if isinstance(item, dict) and item.get("url")), None)
    if error.code != URL_REQUIRED or wanted is None:
        return None
    return linked(str(wanted["url"]), str(wanted.get("message") or error.message), wanted.get("elicitationId"))


def linked(url: str, message: str, elicitation_id: Any = None) -> PausedCall:
    """A call that is made again once the person has followed the link."""
    return {"goes_on": "again", "token": None, "questions": {_URL: _link(url, message, elicitation_id)}}


def refusal(paused: PausedCall, answers: Answers) -> str | None:
    """The person's refusal of a link; None if the call is to be made again."""
    answer = answers.get(_URL)
    if paused["goes_on"] != "again" or not isinstance(answer, dict) or answer.get("action") == "accept":
        return None
    return f"{paused['questions'][_URL]['message']}: the person said {answer.get('action')}"


def responses(paused: PausedCall | None, answers: Answers) -> dict[str, ElicitResult]:
    """The answer that the server gets with the next round."""
    if paused is None or paused["goes_on"] != "round":
        return {}
    return {key: elicited(answers[key]) for key in paused["questions"]}


def elicited(answer: Json) -> ElicitResult:
    from mcp_types import ElicitResult

    return ElicitResult.model_validate({"action": answer["action"], "content": answer.get("content")})


def key_of(value: dict[str, Any]) -> str:
    """A question over the connection has no key, so its content is hashed."""
    return canonical.digest({name: part for name, part in value.items() if name in ("message", "schema", "url")})[:16]


def value_of(params: Any) -> dict[str, Any]:
    """The question as the value of a pause."""
    url = getattr(params, "url", None)
    if url is not None:
        return _link(str(url), params.message, getattr(params, "elicitation_id", None))
    return {"kind": "form_elicitation", "message": params.message, "schema": dict(params.requested_schema)}


def _link(url: str, message: str, elicitation_id: Any) -> dict[str, Any]:
    value = {"kind": "oauth_url", "url": url, "message": message}
    return {**value, "elicitation_id": str(elicitation_id)} if elicitation_id else value
