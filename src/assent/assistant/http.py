"""`/run`, `/resume`, `/cancel`, `/prompts` and `/health-check`: a conversation API for the reference assistant.

Statuses: 200 answered, 202 a person has to answer, 409 not in this state, 502 the assistant failed. A client that
accepts `text/event-stream` receives the answer as it is generated, and the same body at the end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, field_validator

from assent.assistant.talk.answers import Answer, Said
from assent.assistant.talk.prompts import Prompts
from assent.assistant.talk.service import Assistant, thread_of
from assent.assistant.talk.turns import Replied, Turn
from assent.assistant.talk.views import Reply, status_of
from assent.errors import Invalid
from assent.review.model.questions import Verb
from assent.surfaces.api.langgraph.routing import router
from assent.surfaces.http import errors
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.limits.execution import Executing, Execution
from assent.surfaces.http.public import public

HEALTHY = "Server is healthy"

_LONGEST_NAME, _LONGEST_TEXT, _MOST = 200, 100_000, 500
_VERBS = {"accept": Verb.ACCEPT, "decline": Verb.DECLINE, "cancel": Verb.CANCEL}
_WAYS = ("clarification_responses", "approvals", "elicitation")
_STREAM = "text/event-stream"

CallId = Annotated[StrictStr, Field(min_length=1, max_length=500)]
Text = Annotated[StrictStr, Field(max_length=_LONGEST_TEXT)]


class _Body(BaseModel):
    """Unknown keys are ignored, as on every route for third-party clients."""

    model_config = ConfigDict(extra="ignore")

    thread_id: Annotated[
        StrictStr, Field(min_length=1, max_length=_LONGEST_NAME, description="any name; chosen by the caller")
    ]

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
    def _is_not_blank(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be blank")
        return text


class CancelBody(_Body):
    """The conversation whose present request is stopped."""


class _Part(BaseModel):
    """A part of an answer. Unknown keys are refused: a misspelt one would change what is approved."""

    model_config = ConfigDict(extra="forbid")


class Clarified(_Part):
    call_id: CallId
    response: Text

    def said(self) -> Said:
        return Said(self.call_id, Verb.RESPOND, message=self.response)


class Approval(_Part):
    call_id: CallId
    approved: StrictBool
    feedback: Text | None = Field(None, description="the reason; required if `approved` is false")
    arguments: dict[str, Any] | None = Field(None, description="changed arguments for the call")

    def said(self) -> Said:
        verb = Verb.APPROVE if self.approved else Verb.REJECT
        return Said(self.call_id, verb, args=self.arguments, message=self.feedback)


class Elicitation(_Part):
    action: Literal["accept", "decline", "cancel"]
    content: Any = Field(None, description="the content of an accepted form")

    def said(self) -> Said:
        return Said(None, _VERBS[self.action], args=self.content)


class ResumeBody(_Body):
    """Exactly one of the three answers, for the pending action."""

    clarification_responses: Annotated[list[Clarified], Field(max_length=_MOST)] | None = None
    approvals: Annotated[list[Approval], Field(max_length=_MOST)] | None = None
    elicitation: Elicitation | None = Field(None, description="the answer to a form or a completed sign-in")
    revision: Annotated[StrictInt, Field(ge=1)] | None = Field(
        None, description="the reviewed revision; requires `hash`"
    )
    hash: StrictStr | None = Field(None, description="the reviewed hash; requires `revision`")

    def answer(self) -> Answer:
        names = [name for name in _WAYS if getattr(self, name) is not None]
        if len(names) != 1:
            sent = f"{' and '.join(names)} were given" if names else "none was given"
            problem = {"path": names[1] if names else "body", "message": f"exactly one of {', '.join(_WAYS)}: {sent}"}
            raise Invalid(problem["message"], errors=[problem])
        [name] = names
        value = getattr(self, name)
        parts = value if isinstance(value, list) else [value]
        return Answer(name, tuple(part.said() for part in parts), self._seen())

    def _seen(self) -> tuple[int, str] | None:
        if self.revision is not None and self.hash is not None:
            return self.revision, self.hash
        if self.revision is None and self.hash is None:
            return None
        missing = "hash" if self.hash is None else "revision"
        message = "revision and hash belong together: set both or neither"
        raise Invalid(message, errors=[{"path": missing, "message": message}])


class PromptBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[StrictStr, Field(min_length=1, max_length=_LONGEST_NAME)]
    arguments: dict[str, Text] = Field(default_factory=dict)


class PromptArgument(BaseModel):
    name: str
    description: str
    required: bool


class PromptView(BaseModel):
    """A prompt of an MCP server."""

    name: str
    description: str
    arguments: list[PromptArgument]


class PromptList(BaseModel):
    prompts: list[PromptView]
    problems: list[str] = Field(description="why some servers could not be asked for theirs")


class PromptText(BaseModel):
    """The text of a prompt, to be sent as `user_request`, as it is or changed."""

    name: str
    text: str


class Answered(BaseModel):
    """A response; keys that do not apply are omitted."""

    status: str = Field(
        description="success, incomplete, or what is required: clarification_required, confirmation_required, …"
    )
    thread_id: str
    response: str | None = None
    pending_action: dict[str, Any] | None = None
    url: str | None = None
    message: str | None = None
    reason: str | None = Field(None, description="of `incomplete`: empty_reply, cut_reply, model_call_limit, …")


class Refused(BaseModel):
    """An error. Some have `pending_action`, `decision`, `errors` or `id` as well."""

    model_config = ConfigDict(extra="allow")

    status: Literal["error"]
    message: str
    code: str
    request_id: str | None = None


_REFUSED: dict[int | str, dict[str, Any]] = {"4XX": {"model": Refused}, "5XX": {"model": Refused}}
_ASKED: dict[int | str, dict[str, Any]] = {
    200: {"description": "answered", "content": {_STREAM: {"schema": {"type": "string"}}}},
    202: {"model": Answered, "description": "a person has to answer"},
    **_REFUSED,
}


def routes(assistant: Assistant, prompts: Prompts) -> APIRouter:
    api = router("", "assistant")

    @api.get("/health-check")
    @public
    async def health_check() -> str:
        return HEALTHY

    @api.post("/run", response_model=Answered, responses=_ASKED)
    async def run(request: Request, caller: Caller, executing: Executing, body: RunBody) -> Response:
        turn = await assistant.run(caller, body.thread_id, body.user_request, aloud=_accepts_stream(request))
        return await _answered(request, executing, turn, thread_of(caller.tenant, body.thread_id))

    @api.post("/resume", response_model=Answered, responses=_ASKED)
    async def resume(request: Request, caller: Caller, executing: Executing, body: ResumeBody) -> Response:
        turn = await assistant.resume(caller, body.thread_id, body.answer())
        return await _answered(request, executing, turn, thread_of(caller.tenant, body.thread_id))

    @api.post("/cancel", response_model=Answered, responses={"4XX": {"model": Refused}})
    async def cancel(caller: Caller, body: CancelBody) -> Response:
        await assistant.cancel(caller, body.thread_id)
        return JSONResponse({"status": "cancelled", "thread_id": body.thread_id})

    _add_prompts(api, prompts)
    return api


def _add_prompts(api: APIRouter, prompts: Prompts) -> None:
    @api.get("/prompts", responses=_REFUSED)
    async def list_prompts(caller: Caller) -> PromptList:
        return PromptList.model_validate(asdict(await prompts.list(caller)))

    @api.post("/prompts", responses=_REFUSED)
    async def prompt_text(caller: Caller, body: PromptBody) -> PromptText:
        """Reads a prompt. It sends nothing to the assistant."""
        return PromptText(name=body.name, text=await prompts.text(caller, body.name, body.arguments))


def _accepts_stream(request: Request) -> bool:
    return _STREAM in request.headers.get("accept", "")


async def _answered(request: Request, executing: Execution, turn: Turn | Replied, thread_id: str) -> Response:
    """The header names the thread of the LangGraph API."""
    headers = {"Content-Location": f"/threads/{thread_id}"}
    if _accepts_stream(request):
        headers |= {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_streamed(request, turn), media_type=_STREAM, headers=headers)
    executing.end()
    reply = await turn.reply()
    return JSONResponse(_body(request, reply), 202 if reply.waits else 200, headers)


async def _streamed(request: Request, turn: Turn | Replied) -> AsyncIterator[bytes]:
    """Events `words` as they are generated, then one event `reply` with the response body."""
    try:
        async with aclosing(turn.words()) as stream:
            async for words in stream:
                data = words and orjson.dumps({"message_id": words.message_id, "text": words.text})
                yield _event("words", data) if data else b": heartbeat\r\n\r\n"
        body = orjson.dumps(_body(request, await turn.reply()))
    except Exception as error:  # noqa: BLE001 - the status is already sent, so the error is an event
        body = bytes(errors.last(request.url.path, error).body)
    finally:
        turn.close()
    yield _event("reply", body)


def _event(name: str, data: bytes) -> bytes:
    return b"event: " + name.encode() + b"\r\ndata: " + data + b"\r\n\r\n"


def _body(request: Request, reply: Reply) -> dict[str, Any]:
    body: dict[str, Any]
    if not reply.waits:
        body = {"status": "success", "thread_id": reply.thread_id, "response": reply.response or ""}
        return {**body, "status": "incomplete", "reason": reply.outcome} if reply.outcome else body
    status, action = status_of(reply.asked), reply.action or {}
    body = {"status": status, "thread_id": reply.thread_id, "pending_action": action}
    if status == "oauth_required":
        body |= {"url": action["url"], "response": action["message"]}
    if status == "decision_required":
        where = {"url": f"{str(request.base_url).rstrip('/')}{action['url']}"} if "url" in action else {}
        body |= {**where, "message": action["message"]}
    if reply.asked and (approvals := reply.asked["approvals"])["needed"] > 1 and status != "decision_required":
        body["message"] = f"{approvals['given']} of {approvals['needed']} people have agreed"
    return body
