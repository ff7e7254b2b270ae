"""All errors that Assent raises on purpose.

A class has a stable `code`, an HTTP `status` and a `hint` that says what to do next; its docstring is the default
message. Surfaces translate errors (REST problem+json, `{"detail"}` on LangGraph routes, one CLI line and an exit code);
code below a surface does not depend on HTTP.

    AssentError                       internal_error        500
    ├── ConfigError                   invalid_config        500   a setting or file stops the start
    │   ├── UnsafeStart               unsafe_start          500   the server would be open to anyone
    │   │   └── StrictMsgpackOff      strict_msgpack_off    500   stored bytes could run code
    │   ├── ManifestError             invalid_manifest      500   the langgraph.json cannot be used
    │   ├── LoadError                 load_failed           500   an entry of langgraph.json cannot be loaded
    │   └── NotInstalled              not_installed         501   an optional part is not installed (+ `extra`)
    ├── Invalid                       invalid_request       422   the request cannot be understood
    │   ├── InvalidJson               invalid_json          422
    │   ├── InvalidAnswer             invalid_answer        422   does not fit the question (+ `errors`); it stays open
    │   ├── InvalidDecision           invalid_decision      422   does not fit the item (+ `errors`); it stays open
    │   ├── InvalidPolicy             invalid_policy        422   a rule is not valid (+ `errors`)
    │   ├── KeyReused                 key_reused            422   an Idempotency-Key with another request
    │   └── TargetRefused             target_refused        422   an address that this server does not call
    ├── BadRequest                    bad_request           400   understood, but contradicts itself or the state
    ├── Unauthenticated               unauthenticated       401
    ├── Forbidden                     not_allowed           403
    │   ├── OriginRefused             origin_refused        403   a browser page from elsewhere
    │   ├── SelfApproval              self_approval         403   a second person has to approve
    │   ├── ConfirmationRequired      confirmation_required 403   a passkey has to confirm it (+ `confirm`, `url`)
    │   ├── ConfirmationRefused       confirmation_refused  403   the passkey's response is not valid here
    │   └── FreshSignInRequired       sign_in_again         403   a person has to sign in again first
    ├── HandlerRefused                refused_by_handler    403   by the project's auth handler, with its own status
    ├── HostRefused                   host_refused          421   the Host header names another server
    ├── NotFound                      not_found             404   also for rows of another tenant
    ├── MethodNotAllowed              method_not_allowed    405
    ├── Conflict                      conflict              409
    │   ├── AlreadyExists             already_exists        409
    │   ├── ThreadBusy                thread_busy           409   another run of the thread is under way
    │   ├── ThreadWaits               thread_waits          409   a person has to answer first (+ `pending`)
    │   ├── AnswerRefused             answer_refused        409   the question is not open (+ `pending`, `decision`)
    │   ├── AlreadyDecided            already_decided       409   another decision was first (+ `decision`)
    │   ├── StaleRevision             stale_revision        409   the request has changed (+ `revision`, `hash`)
    │   ├── InvalidTransition         invalid_transition    409   (+ `from`, `to`, `allowed`)
    │   ├── ClaimedByOther            claimed_by_other      409   (+ `claimed_by`, `until`)
    │   ├── AwaitingResubmission      awaiting_resubmission 409   the agent works on a new revision
    │   └── InDoubt                   in_doubt              409   the same call may have completed (+ `doubts`)
    ├── TooLarge                      too_large             413
    ├── TooManyRequests               rate_limited          429   try again after `retry_after` seconds
    │   └── QuotaExceeded             quota_exceeded        429   of the tenant (+ `quota`, `limit`)
    ├── AssistantFailed               assistant_failed      502   the assistant's model or a server it needs (+ `id`)
    ├── EmbeddingFailed               embedding_failed      502   the function or provider of `store.index` (+ `id`)
    ├── DeploymentFailed              deployment_failed     502   another deployment cannot be used now (+ `problem`)
    ├── StateError                    invalid_state         500   a graph's state cannot be stored in a checkpoint
    │   ├── BlockedType               blocked_type          500   of a type that checkpoints may not hold
    │   └── UnreadableState           unreadable_state      500   stored bytes cannot be decoded
    ├── AuditBroken                   audit_broken          500   the event chain does not verify
    └── Unavailable                   unavailable           503   try again after `retry_after` seconds
        ├── NotLoaded                 not_loaded            503   `assent dev` loads it again when a file changes
        ├── StoreBusy                 store_busy            503
        └── StorageFull               storage_full          507
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and the field it is wrong in (`action_request.args`; empty for the whole value)."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


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


class StrictMsgpackOff(UnsafeStart):
    """LangGraph was imported without strict checkpoints, so stored bytes could run code."""

    code = "strict_msgpack_off"
    hint = "set LANGGRAPH_STRICT_MSGPACK=true in the environment, or import assent before langgraph"


class ManifestError(ConfigError):
    """The project's langgraph.json cannot be used."""

    code = "invalid_manifest"


class LoadError(ConfigError):
    """An entry of langgraph.json cannot be loaded."""

    code = "load_failed"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        details: str = "",
        place: str = "",
        reason: str = "",
    ) -> None:
        """`place` is the file and line that failed, `reason` the error there."""
        super().__init__(message, hint=hint)
        self.details = details  # the author's traceback: for logs and the operator, so it is no part of `extra`
        self.place = place or "langgraph.json"
        self.reason = reason or self.message


class NotInstalled(ConfigError):
    """An optional part of Assent is not installed."""

    code = "not_installed"
    status = 501


class Invalid(AssentError):
    """The request is not valid."""

    code = "invalid_request"
    status = 422

    def __init__(
        self,
        message: str | None = None,
        *,
        problems: Iterable[Problem] = (),
        hint: str | None = None,
        **extra: Any,
    ) -> None:
        """`problems` name each wrong field. Callers get them as `errors`; without a message they are the message."""
        self.problems = tuple(problems)
        if self.problems:
            message = message or "; ".join(map(str, self.problems))
            extra = {"errors": [asdict(problem) for problem in self.problems], **extra}
        super().__init__(message, hint=hint, **extra)


class InvalidJson(Invalid):
    """The body is not valid, unambiguous JSON."""

    code = "invalid_json"


class InvalidAnswer(Invalid):
    """The answer does not fit the question, which stays open."""

    code = "invalid_answer"


class InvalidDecision(Invalid):
    """The decision does not fit the item, which stays open."""

    code = "invalid_decision"


class InvalidPolicy(Invalid):
    """The policy is not valid."""

    code = "invalid_policy"


class KeyReused(Invalid):
    """This Idempotency-Key was used with another request."""

    code = "key_reused"
    hint = "use a new key for a new request"


class TargetRefused(Invalid):
    """This server does not call that address."""

    code = "target_refused"
    by_name = False
    """Whether the refusal depends on a DNS lookup. Hidden from callers, who could probe internal names with it."""


class BadRequest(AssentError):
    """The request contradicts itself or the current state."""

    code = "bad_request"
    status = 400


class Unauthenticated(AssentError):
    """The request has no valid credential."""

    code = "unauthenticated"
    status = 401
    hint = "send an API key as x-api-key or as a bearer token, or sign in"


class Forbidden(AssentError):
    """The caller may not do this."""

    code = "not_allowed"
    status = 403


class OriginRefused(Forbidden):
    """The request comes from a web page of another origin."""

    code = "origin_refused"
    hint = "name the origin in cors_origins if that page is yours"


class SelfApproval(Forbidden):
    """A second person has to approve: the person who started the run or changed the request does not count."""

    code = "self_approval"


class ConfirmationRequired(Forbidden):
    """Approving this needs a confirmation with your passkey."""

    code = "confirmation_required"
    hint = "approve it on its page in the inbox, which asks for your passkey"


class ConfirmationRefused(Forbidden):
    """The passkey confirmation is not valid; nothing was decided."""

    code = "confirmation_refused"
    hint = "confirm it again"


class FreshSignInRequired(Forbidden):
    """This needs a sign-in from the last few minutes, by a sign-in link."""

    code = "sign_in_again"
    hint = "sign in again with a new sign-in link; an administrator makes one: assent users login-link NAME"


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
    """Not found."""

    code = "not_found"
    status = 404


class MethodNotAllowed(AssentError):
    """This address does not support that method."""

    code = "method_not_allowed"
    status = 405


class Conflict(AssentError):
    """The current state does not allow this."""

    code = "conflict"
    status = 409


class AlreadyExists(Conflict):
    """This name is already taken."""

    code = "already_exists"


class ThreadBusy(Conflict):
    """Thread is already running a task. Wait for it to finish or choose a different multitask strategy."""

    code = "thread_busy"


class ThreadWaits(Conflict):
    """The thread waits for a person's answer. Answer the pending question, or choose a different multitask strategy."""

    code = "thread_waits"


class AnswerRefused(Conflict):
    """That question no longer accepts an answer."""

    code = "answer_refused"


class AlreadyDecided(Conflict):
    """Someone else has decided this item."""

    code = "already_decided"


class StaleRevision(Conflict):
    """The request has changed since you viewed it."""

    code = "stale_revision"
    hint = "look at the current revision and decide again"


class InvalidTransition(Conflict):
    """The item's status does not allow this."""

    code = "invalid_transition"


class ClaimedByOther(Conflict):
    """Someone else is working on this item."""

    code = "claimed_by_other"


class AwaitingResubmission(Conflict):
    """The agent was asked for a new revision; wait for it before you decide."""

    code = "awaiting_resubmission"


class InDoubt(Conflict):
    """The same call was started before and may have completed: record its outcome first."""

    code = "in_doubt"
    hint = "settle the item that is in doubt, then approve this one if it is still wanted"


class TooLarge(AssentError):
    """The request body is larger than this server accepts."""

    code = "too_large"
    status = 413


class TooManyRequests(AssentError):
    """Too many requests in too short a time."""

    code = "rate_limited"
    status = 429

    def __init__(self, message: str | None = None, *, retry_after: int = 1, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after


class QuotaExceeded(TooManyRequests):
    """The tenant has reached its quota."""

    code = "quota_exceeded"


class AssistantFailed(AssentError):
    """The assistant's model, or a server that it needs, failed."""

    code = "assistant_failed"
    status = 502


class EmbeddingFailed(AssentError):
    """The function or the provider of `store.index` failed. The log has the details."""

    code = "embedding_failed"
    status = 502


class DeploymentFailed(AssentError):
    """Another deployment cannot be used now.

    `unsure`: the request may have had its effect. `answered`: the status of the response, if there was one."""

    code = "deployment_failed"
    status = 502

    def __init__(
        self, problem: str, message: str, *, hint: str, unsure: bool = False, answered: int | None = None
    ) -> None:
        super().__init__(message, hint=hint, problem=problem)
        self.problem = problem
        self.unsure = unsure
        self.answered = answered


class AuditBroken(AssentError):
    """The event chain does not verify: rows were changed, removed or reordered."""

    code = "audit_broken"


class Unavailable(AssentError):
    """The service cannot answer right now; nothing was changed."""

    code = "unavailable"
    status = 503
    retry_after: ClassVar[int] = 1


class NotLoaded(Unavailable):
    """The project failed to load; it is loaded again when its file is corrected."""

    code = "not_loaded"


class StoreBusy(Unavailable):
    """The database did not answer in time; nothing was changed."""

    code = "store_busy"


class StorageFull(Unavailable):
    """The database is full; nothing was changed."""

    code = "storage_full"
    status = 507
    retry_after = 30


_PLACES = {"__interrupt__": "the graph's question", "__start__": "the input", "__resume__": "the answer"}


class StateError(AssentError):
    """A value of the graph's state cannot be stored in a checkpoint."""

    code = "invalid_state"

    def name_field(self, channel: str) -> None:
        """Adds the state field that holds the value to the message."""
        place = _PLACES.get(channel, f"the field {channel!r} of the state")
        self.message = f"{place}: {self.message}"
        self.args = (self.message,)


class BlockedType(StateError):
    """A type that is not on the list of those that checkpoints may hold."""

    code = "blocked_type"

    def __init__(self, module: str, name: str) -> None:
        named = f"{module}:{name}"
        super().__init__(
            f"{named} is not a type that checkpoints may hold: it is no data class of the project with a name of its"
            " own in its module, in no schema of the graph, and not in checkpoint_types",
            hint=f"name the type in the schema of the graph's state, or add {_to_add(named)} to checkpoint_types",
            type=named,
        )

    def __str__(self) -> str:
        # Runs show only an exception's text, so it must name the setting that helps.
        return f"{self.message}; {self.hint}"


def _to_add(name: str) -> str:
    """A generic model is allowed with its base, for arguments that are allowed."""
    base = name.partition("[")[0]
    return f'"{name}"' if base == name else f'"{base}" and the classes in its brackets'


class UnreadableState(StateError):
    """Stored bytes cannot be decoded."""

    code = "unreadable_state"
