"""`/run`, `/resume` and `/health-check`: the reference assistant, for whoever wants to talk rather than run graphs.

The status says how far it came: 200 answered, 202 a person is asked, 409 not now, 502 the assistant itself failed.
Whoever accepts `text/event-stream` hears the answer word by word, and the same body at the end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, field_validator

from assent.api.langgraph.routing import router
from assent.domain.questions import Verb
from assent.errors import Invalid
from assent.http import errors
from assent.http.authentication import Caller
from assent.services.assistant import Assistant, thread_of
from assent.services.assistant_answers import Answer, Said
from assent.services.assistant_turns import Replied, Turn
from assent.services.assistant_views import Reply, status_of

HEALTHY = "Server is healthy"

_LONGEST_NAME, _LONGEST_TEXT, _MOST = 200, 100_000, 500
_VERBS = {"accept": Verb.ACCEPT, "decline": Verb.DECLINE, "cancel": Verb.CANCEL}
_WAYS = ("clarification_responses", "approvals", "elicitation")
_STREAM = "text/event-stream"

CallId = Annotated[StrictStr, Field(min_length=1, max_length=500)]
Text = Annotated[StrictStr, Field(max_length=_LONGEST_TEXT)]


class _Body(BaseModel):
    """Unknown keys are ignored, as on every route that other programs' clients call."""

    model_config = ConfigDict(extra="ignore")

    thread_id: Annotated[StrictStr, Field(min_length=1, max_length=_LONGEST_NAME, description="yours to choose")]

    @field_validator("thread_id")
    @classmethod
    def _is_plain(cls, name: str) -> str:
        if not name.isprintable() or not name.strip():
            raise ValueError("must be printable, and not blank")
        return name


class RunBody(_Body):
    user_request: Annotated[StrictStr, Field(min_length=1, max_length=_LONGEST_TEXT)]

    @field_validator("user_request")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be blank")
        return text


class Clarified(BaseModel):
    call_id: CallId
    response: Text

    def said(self) -> Said:
        return Said(self.call_id, Verb.RESPOND, message=self.response)


class Approval(BaseModel):
    call_id: CallId
    approved: StrictBool
    feedback: Text | None = Field(None, description="why not; needed where `approved` is false")
    arguments: dict[str, Any] | None = Field(None, description="other arguments to make the call with")

    def said(self) -> Said:
        verb = Verb.APPROVE if self.approved else Verb.REJECT
        return Said(self.call_id, verb, args=self.arguments, message=self.feedback)


class Elicitation(BaseModel):
    action: Literal["accept", "decline", "cancel"]
    content: Any = Field(None, description="what was filled in, for a form that is accepted")

    def said(self) -> Said:
        return Said(None, _VERBS[self.action], args=self.content)


class ResumeBody(_Body):
    """Exactly one of the three, for what is pending."""

    clarification_responses: Annotated[list[Clarified], Field(max_length=_MOST)] | None = None
    approvals: Annotated[list[Approval], Field(max_length=_MOST)] | None = None
    elicitation: Elicitation | None = Field(None, description="the answer to a form, or to a sign-in that is done")

    def answer(self) -> Answer:
        given = [name for name in _WAYS if getattr(self, name) is not None]
        if len(given) != 1:
            found = f"{' and '.join(given)} were given" if given else "none was given"
            problem = {"path": given[1] if given else "body", "message": f"exactly one of {', '.join(_WAYS)}: {found}"}
            raise Invalid(problem["message"], errors=[problem])
        [name] = given
        value = getattr(self, name)
        parts = value if isinstance(value, list) else [value]
        return Answer(name, tuple(part.said() for part in parts))


class Answered(BaseModel):
    """What comes back; keys that do not apply are left out."""

    status: str = Field(description="success, or what is required: clarification_required, confirmation_required, …")
    thread_id: str
    response: str | None = None
    pending_action: dict[str, Any] | None = None
    url: str | None = None
    message: str | None = None


class Refused(BaseModel):
    """Why not. Some carry `pending_action`, `decision`, `errors` or `id` beside it."""

    model_config = ConfigDict(extra="allow")

    status: Literal["error"]
    message: str
    code: str
    request_id: str | None = None


_ASKED: dict[int | str, dict[str, Any]] = {
    200: {"description": "answered", "content": {_STREAM: {"schema": {"type": "string"}}}},
    202: {"model": Answered, "description": "a person is asked"},
    "4XX": {"model": Refused},
    "5XX": {"model": Refused},
}


def routes(assistant: Assistant) -> APIRouter:
    api = router("", "assistant")

    @api.get("/health-check")
    async def health_check() -> str:
        return HEALTHY

    @api.post("/run", response_model=Answered, responses=_ASKED)
    async def run(request: Request, caller: Caller, body: RunBody) -> Response:
        turn = await assistant.run(caller, body.thread_id, body.user_request, aloud=_listens(request))
        return await _answered(request, turn, thread_of(caller.tenant, body.thread_id))

    @api.post("/resume", response_model=Answered, responses=_ASKED)
    async def resume(request: Request, caller: Caller, body: ResumeBody) -> Response:
        turn = await assistant.resume(caller, body.thread_id, body.answer())
        return await _answered(request, turn, thread_of(caller.tenant, body.thread_id))

    return api


def _listens(request: Request) -> bool:
    return _STREAM in request.headers.get("accept", "")


async def _answered(request: Request, turn: Turn | Replied, thread_id: str) -> Response:
    """The header says which thread of the LangGraph API this is."""
    headers = {"Content-Location": f"/threads/{thread_id}"}
    if _listens(request):
        headers |= {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_spoken(request, turn), media_type=_STREAM, headers=headers)
    reply = await turn.reply()
    return JSONResponse(_body(request, reply), 202 if reply.waits else 200, headers)


async def _spoken(request: Request, turn: Turn | Replied) -> AsyncIterator[bytes]:
    """`words` as they come, then one `reply`: what would have been the body."""
    try:
        async with aclosing(turn.heard()) as heard:
            async for words in heard:
                said = words and orjson.dumps({"message_id": words.message_id, "text": words.text})
                yield _event("words", said) if said else b": still at it\r\n\r\n"
        body = orjson.dumps(_body(request, await turn.reply()))
    except Exception as error:  # noqa: BLE001 - the status is sent already, so it is told here
        body = bytes(errors.last(request.url.path, error).body)
    finally:
        turn.close()
    yield _event("reply", body)


def _event(name: str, data: bytes) -> bytes:
    return b"event: " + name.encode() + b"\r\ndata: " + data + b"\r\n\r\n"


def _body(request: Request, reply: Reply) -> dict[str, Any]:
    if not reply.waits:
        return {"status": "success", "thread_id": reply.thread_id, "response": reply.response or ""}
    status, action = status_of(reply.asked), reply.action or {}
    body: dict[str, Any] = {"status": status, "thread_id": reply.thread_id, "pending_action": action}
    if status == "oauth_required":
        body |= {"url": action["url"], "response": action["message"]}
    if status == "decision_required":
        where = {"url": f"{str(request.base_url).rstrip('/')}{action['url']}"} if "url" in action else {}
        body |= {**where, "message": action["message"]}
    if reply.asked and (approvals := reply.asked["approvals"])["needed"] > 1 and status != "decision_required":
        body["message"] = f"{approvals['given']} of {approvals['needed']} people have agreed"
    return body
