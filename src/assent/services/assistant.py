"""The assistant that one graph is: people talk to it in threads of their own naming, and answer what it asks.

A talk is a thread of the LangGraph API and its questions are items of the inbox; nothing is kept here. So whatever is
said here shows everywhere, and what was answered elsewhere is answered here too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

import orjson

from assent.dialects.breakpoint import NAME as BREAKPOINT
from assent.domain import canonical
from assent.domain.access import DEFAULT_TENANT, ROLE_SCOPES, Kind, Principal, Role
from assent.domain.deliveries import DeliveryStatus
from assent.domain.ids import new_id
from assent.domain.items import Item
from assent.domain.questions import Verb, Verdict
from assent.domain.runs import Run, RunStatus, Strategy
from assent.domain.threads import Thread
from assent.errors import (
    AnswerRefused,
    AssentError,
    AssistantFailed,
    Conflict,
    InvalidAnswer,
    InvalidDecision,
    NotFound,
    StaleRevision,
    ThreadBusy,
    ThreadWaits,
    Unavailable,
)
from assent.ports import FellBehind, Store, Subscription
from assent.services.deciding import Proposal
from assent.services.decision_views import decision_view
from assent.services.inbox import Inbox
from assent.services.item_views import View, full
from assent.services.onboarding import LOCAL_USER
from assent.services.runs import Runs
from assent.services.starting import RunRequest
from assent.services.threads import Threads
from assent.store import answers, decisions, deliveries, items, runs, threads, users
from assent.store.transaction import Tx

OWN_ID = "assistant_thread_id"
"""Where a thread's metadata keep the name that its talk goes by."""

VIA = "assistant"
NO_ACTION: View = {"kind": "no_action_needed"}

_TALKS = UUID("5b0c8f5e-7d0e-5f0c-9a55-6a1f3c1f7b01")
_LOOK_EVERY = 1.0
_ELICITED = {"form": "form_elicitation", "oauth": "oauth_url"}
_STATUSES = {
    "clarification": "clarification_required",
    "confirmation": "confirmation_required",
    "oauth_url": "oauth_required",
    "form_elicitation": "form_required",
}
_ANSWERED_BY = {
    "clarification": "clarification_responses",
    "confirmation": "approvals",
    "oauth_url": "elicitation",
    "form_elicitation": "elicitation",
}
_PARTS = {
    "clarification_responses": {"message": "response"},
    "approvals": {"verb": "approved", "args": "arguments", "message": "feedback"},
    "elicitation": {"verb": "action", "args": "content"},
}
_ELSEWHERE = "decide it in the inbox"
_FAILED = "its model, or a server that it needs, failed"
_FAILURES = {
    "Unavailable": "the MCP server that it needs does not answer",
    "ConfigError": "it is not configured rightly",
    "ModelFailed": "its model failed",
}
"""What an error of ours in a run says, without its details."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the assistant says: its answer, or what it waits for."""

    thread_id: str
    response: str | None = None
    asked: View | None = None
    """The item that waits, as the caller sees it."""
    waits: bool = False

    @property
    def action(self) -> View | None:
        return pending_action(self.asked) if self.waits else None


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a person says: to the question or the call of this id, or to the one form or link there is."""

    call_id: str | None
    verb: Verb
    args: Any = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person answers with. `field` is the name of the list, or `elicitation`."""

    field: str
    said: Sequence[Said] = ()


def thread_of(tenant: str, name: str) -> str:
    """The thread that a talk is: its name where that is a thread's id already, and otherwise always the same one."""
    with suppress(ValueError):
        if str(UUID(name)) == name:
            return name
    return str(uuid5(_TALKS, f"{tenant}\n{name}"))


def request_of(graph_id: str, name: str, text: str) -> RunRequest:
    """The run that hears what someone says."""
    return RunRequest(
        assistant_id=graph_id,
        input={"messages": [{"role": "user", "content": text}]},
        metadata={OWN_ID: name},
        create_thread=True,
        multitask_strategy=Strategy.REJECT,
    )


class Assistant:
    def __init__(
        self,
        store: Store,
        runs: Runs,
        threads: Threads,
        inbox: Inbox,
        graph_id: str,
        *,
        is_loaded: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._runs = runs
        self._threads = threads
        self._inbox = inbox
        self._graph_id = graph_id
        self._is_loaded = is_loaded

    async def run(self, caller: Principal, name: str, text: str) -> Reply:
        """Says something to the assistant, and waits until it answers or asks."""
        if not self._is_loaded():
            raise Unavailable(
                f"the assistant is not there: the graph {self._graph_id!r} was not loaded",
                hint="the server's log says why",
            )
        thread_id, run_id = thread_of(caller.tenant, name), new_id()
        await self._require_own_or_none(caller, thread_id)
        subscription = self._runs.follow(run_id)
        try:
            request = request_of(self._graph_id, name, text)
            await self._runs.create(caller, thread_id, request, run_id=run_id)
            return await self._reply(caller, name, thread_id, run_id, subscription)
        except (ThreadBusy, ThreadWaits) as error:
            raise await self._not_now(caller, thread_id, error) from None
        finally:
            subscription.close()

    async def resume(self, caller: Principal, name: str, answer: Answer) -> Reply:
        """Answers what the assistant waits for, and waits for what it says to that."""
        thread_id = thread_of(caller.tenant, name)
        thread = await self._threads.get(caller, thread_id)
        self._require_own(thread)
        asked = await self._store.read(caller.tenant, _asked, caller, thread_id, answer)
        if asked is None:
            raise await self._store.read(caller.tenant, _nothing_waits, thread_id)
        verdicts = _verdicts(asked, answer)
        if asked["revision"] > 1 and not thread.shown:
            raise StaleRevision(revision=asked["revision"], hash=asked["hash"], pending_action=pending_action(asked))
        proposal = Proposal(asked["revision"], asked["hash"], verdicts, via=VIA)
        try:
            decided = await self._inbox.decide(caller, asked["id"], proposal)
        except InvalidDecision as error:
            raise _refused(asked, answer, error) from None
        if decided["status"] == "PENDING":  # more people have to agree
            return Reply(name, asked=decided, waits=True)
        return await self._carried(caller, name, thread_id, decided["delivery"]["id"])

    async def _require_own_or_none(self, caller: Principal, thread_id: str) -> None:
        try:
            thread = await self._threads.get(caller, thread_id)
        except NotFound:  # then it is made
            return
        self._require_own(thread)

    def _require_own(self, thread: Thread) -> None:
        """A thread of another graph is none of the assistant's, and its state would not fit."""
        if thread.graph_id not in (None, self._graph_id):
            raise NotFound("there is no such thread of the assistant's")

    async def _carried(self, caller: Principal, name: str, thread_id: str, delivery_id: str) -> Reply:
        """The run that carries an answer has the id of its delivery."""
        subscription = self._runs.follow(delivery_id)
        try:
            return await self._reply(caller, name, thread_id, delivery_id, subscription)
        finally:
            subscription.close()

    async def _reply(
        self, caller: Principal, name: str, thread_id: str, run_id: str, subscription: Subscription
    ) -> Reply:
        run, left = await self._ended(caller, run_id, subscription)
        if run.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
            raise _failure(name, run)
        result = await self._runs.result(caller, thread_id, run_id) if left is None else left
        found = await self._store.read(caller.tenant, _waiting, caller, thread_id, _interrupts(result))
        if found is not None:
            return Reply(name, asked=found or None, waits=True)
        if run.status is RunStatus.INTERRUPTED:
            raise Conflict("it was stopped before it was done", thread_id=name)
        return Reply(name, response=last_answer(result))

    async def _ended(self, caller: Principal, run_id: str, subscription: Subscription) -> tuple[Run, Any]:
        """The run once it has ended, and what it left, where it ended before our eyes."""
        left: Any = None
        while True:
            run, lost = await self._store.read(caller.tenant, _run, run_id)
            if run is not None and not run.status.active:
                return run, left
            if lost:
                raise Conflict("the thread has moved on, and does not ask this any more")
            try:
                async with asyncio.timeout(_LOOK_EVERY):
                    left = orjson.loads((await subscription.end()).data)
            except TimeoutError:
                continue
            except FellBehind:
                await asyncio.sleep(_LOOK_EVERY)

    async def _not_now(self, caller: Principal, thread_id: str, error: AssentError) -> AssentError:
        found, decision = await self._store.read(caller.tenant, _standing, caller, thread_id)
        if found is None:
            told: View = {"decision": decision} if decision and isinstance(error, ThreadWaits) else {}
            return ThreadBusy("the assistant is still at it", hint=None, pending_action=NO_ACTION, **told)
        return ThreadWaits("the assistant waits for an answer first", pending_action=pending_action(found))


class LocalPerson:
    """The person at this machine, as the first start made them; None where the operator has disabled them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self) -> Principal | None:
        user = await self._store.read(DEFAULT_TENANT, users.by_name, LOCAL_USER)
        if user is None or user.disabled_at is not None:
            return None
        scopes = ROLE_SCOPES[user.role] & ROLE_SCOPES[Role.REVIEWER]
        return Principal(Kind.REVIEWER, user.id, user.name, DEFAULT_TENANT, scopes)


def kind_of(item: View) -> str | None:
    """Which of the four ways of asking it is; None where it is another, which the inbox knows how to answer."""
    if item["dialect"] in _STATUSES:
        return str(item["dialect"])
    return _ELICITED.get(item["type"]) if len(item["actions"]) == 1 else None


def status_of(item: View | None) -> str:
    kind = kind_of(item) if item else None
    return _STATUSES[kind] if kind else "decision_required"


def pending_action(item: View | None) -> View:
    """What is asked, as the contract writes it."""
    kind = kind_of(item) if item else None
    if item is None or kind is None:
        named = {"item_id": item["id"], "title": item["title"]} if item else {}
        return {"kind": "other", **named, "message": _ELSEWHERE}
    if kind == "clarification":
        return {"kind": kind, "clarifications": [_clarification(one) for one in item["actions"]]}
    if kind == "confirmation":
        return {"kind": kind, "tool_calls": [_tool_call(one) for one in item["actions"]]}
    [action] = item["actions"]
    told = {"kind": kind, "message": action["description"] or ""}
    if kind == "oauth_url":
        return {**told, "url": action["args"]["url"], "elicitation_id": action["call_id"]}
    return {**told, "schema": action["schema"]}


def last_answer(values: Any) -> str:
    """The text of the last message that the model wrote."""
    messages = values.get("messages") if isinstance(values, Mapping) else None
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, Mapping) and message.get("type", message.get("role")) in ("ai", "assistant"):
            return _text(message.get("content"))
    return ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(
        part if isinstance(part, str) else str(part.get("text", ""))
        for part in parts
        if isinstance(part, str) or (isinstance(part, Mapping) and part.get("type") == "text")
    )


def _clarification(action: View) -> View:
    asked = action["args"]
    return {"call_id": action["call_id"], "question": asked["question"], "context": asked["context"] or ""}


def _tool_call(action: View) -> View:
    return {"call_id": action["call_id"], "tool_name": action["name"], "arguments": action["args"]}


def _verdicts(asked: View, answer: Answer) -> tuple[Verdict, ...]:
    """What was said, by the actions that it is about; or what is wrong with it, before anything is touched."""
    kind = kind_of(asked)
    if kind is None:
        raise Conflict(f"the assistant waits for something else: {_ELSEWHERE}", pending_action=pending_action(asked))
    if _ANSWERED_BY[kind] != answer.field:
        problem = {
            "path": answer.field,
            "message": f"the assistant waits for {_ANSWERED_BY[kind]}: a {kind} is pending",
        }
        raise InvalidAnswer(_spelled([problem]), errors=[problem], pending_action=pending_action(asked))
    if answer.field == "elicitation":
        [action] = asked["actions"]
        return tuple(Verdict(action["key"], one.verb, args=one.args) for one in answer.said)
    actions = {action["call_id"]: action for action in asked["actions"]}
    problems = _misnamed(answer, list(actions))
    if problems:
        raise InvalidAnswer(_spelled(problems), errors=problems, pending_action=pending_action(asked))
    return tuple(_verdict(actions[one.call_id], one) for one in answer.said)


def _verdict(action: View, said: Said) -> Verdict:
    """Arguments that repeat the request are an approval."""
    if said.verb is Verb.APPROVE and said.args is not None and not canonical.same(said.args, action["args"]):
        return Verdict(action["key"], Verb.EDIT, args=said.args, message=said.message)
    args = said.args if said.verb is Verb.REJECT else None
    return Verdict(action["key"], said.verb, args=args, message=said.message)


def _misnamed(answer: Answer, known: Sequence[str | None]) -> list[View]:
    problems: list[View] = []
    seen: set[str | None] = set()
    for index, one in enumerate(answer.said):
        path = f"{answer.field}[{index}].call_id"
        if one.call_id not in known:
            problems.append({"path": path, "message": f"nothing is asked under {one.call_id!r}"})
        elif one.call_id in seen:
            problems.append({"path": path, "message": f"{one.call_id!r} is answered twice"})
        seen.add(one.call_id)
    missing = [call_id for call_id in known if call_id not in seen]
    return problems + [{"path": answer.field, "message": f"nothing is said to {one!r}"} for one in missing]


def _refused(asked: View, answer: Answer, error: InvalidDecision) -> InvalidAnswer:
    """The same problems, by the names that the caller used."""
    problems = [_renamed(one, answer) for one in error.extra.get("errors", ())]
    told = _spelled(problems) or error.message
    return InvalidAnswer(told, errors=problems, pending_action=pending_action(asked))


def _renamed(problem: Mapping[str, Any], answer: Answer) -> View:
    head, _, rest = str(problem["path"]).partition(".")
    part, dot, below = rest.partition(".")
    name = _PARTS[answer.field].get(part, part)
    index = head.removeprefix("actions[").removesuffix("]")
    whole = answer.field if answer.field == "elicitation" else f"{answer.field}[{index}]"
    found: View = {"path": f"{whole}.{name}{dot}{below}" if name else whole, "message": problem["message"]}
    if index.isdecimal() and int(index) < len(answer.said) and answer.said[int(index)].call_id is not None:
        found["call_id"] = answer.said[int(index)].call_id
    return found


def _spelled(problems: Sequence[View]) -> str:
    return "; ".join(
        f"{one['path']}{' of ' + repr(one['call_id']) if 'call_id' in one else ''}: {one['message']}"
        for one in problems
    )


def _failure(name: str, run: Run) -> AssistantFailed:
    """What exactly went wrong may hold anything, so only the log tells it."""
    kind = str((run.error or {}).get("error"))
    what = "it took too long" if run.status is RunStatus.TIMEOUT else _FAILURES.get(kind, _FAILED)
    told = f"the assistant could not answer: {what}; the log has it under {run.id}. The thread can be continued."
    return AssistantFailed(told, id=run.id, thread_id=name)


def _interrupts(result: Any) -> list[str]:
    asked = result.get("__interrupt__", []) if isinstance(result, Mapping) else []
    return [str(one["id"]) for one in asked if isinstance(one, Mapping) and "id" in one]


def _open(tx: Tx, thread_id: str) -> list[Item]:
    """What the thread waits for, looked at without a lock: whoever decides takes that."""
    thread, latest = threads.get(tx, thread_id), runs.page(tx, thread_id, status=None, limit=1, offset=0)
    asked = [str(one["id"]) for one in (thread.pending if thread else [])]
    asked += [f"{BREAKPOINT}:{run.id}" for run in latest]
    found = (items.latest_of_interrupt(tx, thread_id, interrupt_id) for interrupt_id in asked)
    return [item for item in found if item is not None and item.status.open]


def _asked(tx: Tx, caller: Principal, thread_id: str, answer: Answer) -> View | None:
    """The open item that an answer is meant for: of several that wait, the one that it fits best."""
    found = [full(tx, caller, item) for item in _open(tx, thread_id)]
    named = {one.call_id for one in answer.said} - {None}

    def fit(item: View) -> tuple[bool, bool]:
        kind = kind_of(item)
        ids = {action["call_id"] for action in item["actions"]}
        return kind is not None and _ANSWERED_BY[kind] == answer.field, bool(ids & named)

    return max(found, key=fit, default=None)


def _waiting(tx: Tx, caller: Principal, thread_id: str, interrupts: Sequence[str]) -> View | None:
    """The item that the run stopped for; empty where it asks what has no item of its own."""
    for interrupt_id in interrupts:
        if (item := items.latest_of_interrupt(tx, thread_id, interrupt_id)) is not None:
            return full(tx, caller, item)
    found = _open(tx, thread_id)  # one that stopped before a node, and asks nothing
    return full(tx, caller, found[0]) if found else {} if interrupts else None


def _standing(tx: Tx, caller: Principal, thread_id: str) -> tuple[View | None, View | None]:
    found = _open(tx, thread_id)
    return (full(tx, caller, found[0]), None) if found else (None, _last_decision(tx, thread_id))


def _nothing_waits(tx: Tx, thread_id: str) -> AnswerRefused:
    decision = _last_decision(tx, thread_id)
    if decision is None:
        return AnswerRefused("the assistant waits for no answer", pending_action=NO_ACTION)
    return AnswerRefused("it was answered already", pending_action=NO_ACTION, decision=decision)


def _last_decision(tx: Tx, thread_id: str) -> View | None:
    """Of what the thread still asks, or else of what it asked last."""
    thread, given = threads.get(tx, thread_id), answers.latest(tx, thread_id)
    asked = [str(one["id"]) for one in (thread.pending if thread else [])] + ([given.interrupt_id] if given else [])
    for interrupt_id in asked:
        item = items.latest_of_interrupt(tx, thread_id, interrupt_id)
        if item is not None and (decision := decisions.closing(tx, item.id)) is not None:
            return decision_view(tx, decision)
    return None


def _run(tx: Tx, run_id: str) -> tuple[Run | None, bool]:
    """The run, and whether it will never be: what should have begun it has failed for good, or is gone."""
    run = runs.get(tx, run_id)
    if run is not None:
        return run, False
    delivery = deliveries.get(tx, run_id)
    return None, delivery is None or delivery.status in (DeliveryStatus.FAILED, DeliveryStatus.DELIVERED)
