"""Every error Assent raises on purpose, drawn once.

A class carries a stable `code`, the HTTP `status` it becomes and a `hint` that says what to do next; its message is
its docstring unless the raiser knows better. Surfaces translate (REST problem+json, `{"detail"}` on LangGraph routes,
one CLI line and an exit code); nobody below a surface knows about HTTP responses.

    AssentError                       internal_error        500
    ├── ConfigError                   invalid_config        500   a setting or file stops the start
    │   └── UnsafeStart               unsafe_start          500   serving like this would leave the door open
    ├── Invalid                       invalid_request       422   the request cannot be understood
    │   ├── InvalidJson               invalid_json          422
    │   ├── InvalidAnswer             invalid_answer        422   does not fit the question (+ `errors`); it stays open
    │   ├── InvalidDecision           invalid_decision      422   does not fit the item (+ `errors`); it stays open
    │   ├── InvalidPolicy             invalid_policy        422   a rule that cannot be kept (+ `errors`)
    │   ├── KeyReused                 key_reused            422   an Idempotency-Key with another request
    │   └── TargetRefused             target_refused        422   an address that this server does not call
    ├── BadRequest                    bad_request           400   understood, but contradicts itself or the state
    ├── Unauthenticated               unauthenticated       401
    ├── Forbidden                     not_allowed           403
    │   ├── OriginRefused             origin_refused        403   a browser page from elsewhere
    │   └── SelfApproval              self_approval         403   a second person has to agree
    ├── HandlerRefused                refused_by_handler    403   by the project's auth handler, with its own status
    ├── HostRefused                   host_refused          421   the Host header names another server
    ├── NotFound                      not_found             404   also whatever belongs to another tenant
    ├── MethodNotAllowed              method_not_allowed    405
    ├── Conflict                      conflict              409
    │   ├── AlreadyExists             already_exists        409
    │   ├── ThreadBusy                thread_busy           409   another run of the thread is under way
    │   ├── ThreadWaits               thread_waits          409   a person has to answer first (+ `pending`)
    │   ├── AnswerRefused             answer_refused        409   not a question that waits (+ `pending`, `decision`)
    │   ├── AlreadyDecided            already_decided       409   someone was first (+ `decision`)
    │   ├── StaleRevision             stale_revision        409   what is asked has changed (+ `revision`, `hash`)
    │   ├── InvalidTransition         invalid_transition    409   (+ `from`, `to`, `allowed`)
    │   ├── ClaimedByOther            claimed_by_other      409   (+ `claimed_by`, `until`)
    │   ├── AwaitingResubmission      awaiting_resubmission 409   the agent works on a new revision
    │   └── InDoubt                   in_doubt              409   the same call may have been made (+ `doubts`)
    ├── TooLarge                      too_large             413
    ├── AssistantFailed               assistant_failed      502   the assistant's model or a server it needs (+ `id`)
    ├── AuditBroken                   audit_broken          500   the event chain does not verify
    └── Unavailable                   unavailable           503   try again after `retry_after` seconds
        ├── StoreBusy                 store_busy            503
        └── StorageFull               storage_full          507
"""

from __future__ import annotations

from typing import Any, ClassVar


class AssentError(Exception):
    """Something went wrong inside Assent."""

    code: ClassVar[str] = "internal_error"
    status: int = 500
    hint: str | None = None

    def __init__(self, message: str | None = None, *, hint: str | None = None, **extra: Any) -> None:
        self.message = message or (type(self).__doc__ or "").partition("\n")[0]
        self.hint = hint or self.hint
        self.extra = extra
        super().__init__(self.message)


class ConfigError(AssentError):
    """The configuration is not valid."""

    code = "invalid_config"


class UnsafeStart(ConfigError):
    """Refused to start: anyone who can reach this address could use the server."""

    code = "unsafe_start"


class Invalid(AssentError):
    """The request is not valid."""

    code = "invalid_request"
    status = 422


class InvalidJson(Invalid):
    """The body is not JSON that can be read exactly."""

    code = "invalid_json"


class InvalidAnswer(Invalid):
    """The answer does not fit the question, which still waits."""

    code = "invalid_answer"


class InvalidDecision(Invalid):
    """The decision does not fit what is asked; the item stays open."""

    code = "invalid_decision"


class InvalidPolicy(Invalid):
    """The policy cannot be kept as it is written."""

    code = "invalid_policy"


class KeyReused(Invalid):
    """This Idempotency-Key came with another request before."""

    code = "key_reused"
    hint = "use a new key for a new request"


class TargetRefused(Invalid):
    """This server does not call that address."""

    code = "target_refused"


class BadRequest(AssentError):
    """The request contradicts itself, or what it is about."""

    code = "bad_request"
    status = 400


class Unauthenticated(AssentError):
    """No valid credential came with the request."""

    code = "unauthenticated"
    status = 401
    hint = "send an API key as x-api-key or as a bearer token, or sign in"


class Forbidden(AssentError):
    """The caller is known but may not do this."""

    code = "not_allowed"
    status = 403


class OriginRefused(Forbidden):
    """The request comes from a web page of another origin."""

    code = "origin_refused"
    hint = "name the origin in cors_origins if that page is yours"


class SelfApproval(Forbidden):
    """A second person has to agree: whoever started the run or changed the request does not count."""

    code = "self_approval"


class HandlerRefused(AssentError):
    """The project's auth handler refused this."""

    code = "refused_by_handler"
    status = 403

    def __init__(self, message: str | None = None, *, status: int = 403) -> None:
        super().__init__(message)
        self.status = status if 400 <= status < 600 else 403


class HostRefused(AssentError):
    """The Host header names a host that this server does not answer for."""

    code = "host_refused"
    status = 421
    hint = "name the host in allowed_hosts"


class NotFound(AssentError):
    """There is nothing here by that id."""

    code = "not_found"
    status = 404


class MethodNotAllowed(AssentError):
    """This address does not answer to that method."""

    code = "method_not_allowed"
    status = 405


class Conflict(AssentError):
    """The current state does not allow this."""

    code = "conflict"
    status = 409


class AlreadyExists(Conflict):
    """Something by that name is there already."""

    code = "already_exists"


class ThreadBusy(Conflict):
    """Thread is already running a task. Wait for it to finish or choose a different multitask strategy."""

    code = "thread_busy"


class ThreadWaits(Conflict):
    """The thread waits for a person's answer. Answer what is pending, or choose a different multitask strategy."""

    code = "thread_waits"


class AnswerRefused(Conflict):
    """That question does not wait for an answer any more."""

    code = "answer_refused"


class AlreadyDecided(Conflict):
    """Someone else has decided this item."""

    code = "already_decided"


class StaleRevision(Conflict):
    """What is asked has changed since you saw it."""

    code = "stale_revision"
    hint = "look at the current revision and decide again"


class InvalidTransition(Conflict):
    """The item's status does not allow this."""

    code = "invalid_transition"


class ClaimedByOther(Conflict):
    """Someone else is working on this item."""

    code = "claimed_by_other"


class AwaitingResubmission(Conflict):
    """The agent was asked for a new revision; there is nothing to decide before it comes."""

    code = "awaiting_resubmission"


class InDoubt(Conflict):
    """The same call was begun before and may have been made: say first what became of it."""

    code = "in_doubt"
    hint = "settle the item that is in doubt, then approve this one if it is still wanted"


class TooLarge(AssentError):
    """The request body is larger than this server accepts."""

    code = "too_large"
    status = 413


class AssistantFailed(AssentError):
    """The assistant's model, or a server that it needs, failed."""

    code = "assistant_failed"
    status = 502


class AuditBroken(AssentError):
    """The event chain does not verify: rows were changed, removed or reordered."""

    code = "audit_broken"


class Unavailable(AssentError):
    """The service cannot answer right now; nothing was changed."""

    code = "unavailable"
    status = 503
    retry_after: ClassVar[int] = 1


class StoreBusy(Unavailable):
    """The database did not answer in time; nothing was changed."""

    code = "store_busy"


class StorageFull(Unavailable):
    """The database has no room left; nothing was changed."""

    code = "storage_full"
    status = 507
    retry_after = 30
