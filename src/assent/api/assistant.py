"""`/run`, `/resume` and `/health-check`: the reference assistant, for whoever wants to talk rather than run graphs.

The status says how far it came: 200 answered, 202 a person is asked, 409 not now, 502 the assistant itself failed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, field_validator

from assent.api.langgraph.routing import router
from assent.domain.questions import Verb
from assent.errors import Invalid
from assent.http.authentication import Caller
from assent.services.assistant import Answer, Assistant, Reply, Said, status_of, thread_of

HEALTHY = "Server is healthy"

_LONGEST_NAME, _LONGEST_TEXT, _MOST = 200, 100_000, 500
_VERBS = {"accept": Verb.ACCEPT, "decline": Verb.DECLINE, "cancel": Verb.CANCEL}
_WAYS = ("clarification_responses", "approvals", "elicitation")

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


class Response(BaseModel):
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

    clarification_responses: Annotated[list[Response], Field(max_length=_MOST)] | None = None
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
    async def run(caller: Caller, body: RunBody) -> JSONResponse:
        reply = await assistant.run(caller, body.thread_id, body.user_request)
        return _answered(reply, thread_of(caller.tenant, body.thread_id))

    @api.post("/resume", response_model=Answered, responses=_ASKED)
    async def resume(caller: Caller, body: ResumeBody) -> JSONResponse:
        reply = await assistant.resume(caller, body.thread_id, body.answer())
        return _answered(reply, thread_of(caller.tenant, body.thread_id))

    return api


def _answered(reply: Reply, thread_id: str) -> JSONResponse:
    """The header says which thread of the LangGraph API this is."""
    headers = {"Content-Location": f"/threads/{thread_id}"}
    if not reply.waits:
        body = {"status": "success", "thread_id": reply.thread_id, "response": reply.response or ""}
        return JSONResponse(body, headers=headers)
    return JSONResponse(_asking(reply), 202, headers)


def _asking(reply: Reply) -> dict[str, Any]:
    status, action = status_of(reply.asked), reply.action or {}
    body: dict[str, Any] = {"status": status, "thread_id": reply.thread_id, "pending_action": action}
    if status == "oauth_required":
        body |= {"url": action["url"], "response": action["message"]}
    if status == "decision_required":
        where = {"url": f"/inbox/{action['item_id']}"} if "item_id" in action else {}
        body |= {**where, "message": action["message"]}
    if reply.asked and (approvals := reply.asked["approvals"])["needed"] > 1:
        body["message"] = f"{approvals['given']} of {approvals['needed']} people have agreed"
    return body
