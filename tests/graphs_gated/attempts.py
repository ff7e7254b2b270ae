"""Every route that changes something, and what someone sends there who wants a waiting call to be made unapproved, or a
thread to pass its breakpoint.

A row per route; `tests/faults/test_bypass.py` fails for a route without one. What reads with POST, or cannot help an
attacker by itself, still has a row: what counts is what happens, not what a route is meant to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

Json = dict[str, Any]
Sent = dict[str, Any]
"""What goes with a request: `json`, `data`, `params`, `content`, `headers`."""


@dataclass(frozen=True)
class Target:
    """A thread whose agent waits for a person, and everything that an attacker could know about it."""

    graph: str
    log: str
    tag: str
    thread_id: str
    run_id: str
    assistant_id: str
    interrupt_id: str
    item_id: str
    revision: int
    hash: str
    message: Json
    """The model's message with the call."""

    checkpoints: tuple[str, ...]
    """Newest first."""

    @property
    def ids(self) -> dict[str, str]:
        nothing = "0197c5a0-0000-7000-8000-000000000000"
        return {
            **{name: getattr(self, name) for name in ("thread_id", "run_id", "assistant_id", "item_id")},
            **dict.fromkeys(("agent", "agent_id"), "a agent"),
            **dict.fromkeys(("key_id", "approval_id", "delivery_id", "cron_id"), nothing),
            **dict.fromkeys(("inbox_id", "passkey_id", "reason_id", "grant_id"), nothing),
            "deployment_id": nothing,
            "name": "ana",
        }

    @property
    def seen(self) -> Json:
        return {"revision": self.revision, "hash": self.hash}

    @property
    def call(self) -> Json:
        call: Json = self.message["tool_calls"][0]
        return {**call, "type": "tool_call"}

    @property
    def evil(self) -> Json:
        return {"log": self.log, "tag": f"{self.tag}-evil"}

    @property
    def stops(self) -> bool:
        """Whether a breakpoint is all that guards the effect."""
        return self.graph in ("stopping", "nested", "after")

    @property
    def acts(self) -> str:
        """The node that has the effect."""
        return "pay" if self.stops else "tools"

    @property
    def prepares(self) -> str:
        """The node before it."""
        return "prepare" if self.stops else "model"

    def script(self) -> Json:
        return self.evil if self.stops else script(self.evil)

    def forged(self, **change: Any) -> Json:
        """The model's message with other arguments, or another call."""
        return {**self.message, "tool_calls": [{**self.call, "args": self.evil, **change}]}

    def changed(self, **change: Any) -> Json:
        """The state before the effect, with other arguments."""
        return self.evil if self.stops else {"messages": [self.forged(**change)]}


def script(args: Json) -> Json:
    """The input that makes the model call the tool with these arguments."""
    call = [{"name": "act", "args": args}]
    return {"messages": [{"role": "user", "content": json.dumps(call)}]}


STRATEGIES = ("reject", "enqueue", "interrupt", "rollback")
"""A strategy that is missing here fails `test_every_strategy_is_attempted_in_every_way`."""

APPROVALS: tuple[Any, ...] = (
    {"type": "approve"},
    {"decisions": [{"type": "approve"}]},
    [{"type": "accept", "args": None}],
    True,
    "yes",
)


def resumes(target: Target) -> Iterator[Any]:
    edited = {"type": "edit", "edited_action": {"name": "act", "args": target.evil}}
    for answer in (*APPROVALS, edited):
        yield {target.interrupt_id: answer}
    yield APPROVALS[0]
    yield {"0" * 32: APPROVALS[0]}


def commands(target: Target) -> Iterator[Json]:
    context = {"__type": "tool_call_with_context", "tool_call": target.call, "state": {"messages": [target.message]}}
    send = {"node": target.acts, "input": target.evil if target.stops else context}
    for resume in resumes(target):
        yield {"resume": resume}
    yield {"goto": target.acts}
    yield {"goto": [send]}
    yield {"goto": [{"node": target.acts, "input": [{**target.call, "args": target.evil, "id": "another"}]}]}
    yield {"update": target.changed(), "goto": target.acts}
    yield {"update": target.changed(id="another"), "goto": target.prepares}
    yield {"update": {f"branch:to:{target.acts}": None}}
    yield {"update": target.changed()}
    yield {"resume": {target.interrupt_id: APPROVALS[0]}, "goto": [send]}
    yield {"resume": {target.interrupt_id: APPROVALS[0]}, "update": target.changed()}


def configs(target: Target) -> Iterator[Json]:
    resume = {"__pregel_resuming": True, "__pregel_resume_map": {target.interrupt_id: APPROVALS[0]}}
    yield {"configurable": resume}
    user = {"identity": "ana", "permissions": ["decide", "assent:decide", "admin"]}
    yield {"configurable": {"langgraph_auth_user": user, "langgraph_auth_permissions": ["decide"], "user_id": "ana"}}
    yield {"configurable": {"__assent_scope": None, "thread_id": target.thread_id, "checkpoint_ns": ""}}


def runs(target: Target) -> Iterator[Json]:
    """Bodies of a run on the thread."""
    for command in commands(target):
        yield {"command": command}
    for config in configs(target):
        yield {"config": config, "input": None}
        yield {"config": config, "command": {"resume": {target.interrupt_id: APPROVALS[0]}}}
    for strategy in STRATEGIES:
        yield {"input": target.script(), "multitask_strategy": strategy}
        yield {"input": None, "multitask_strategy": strategy}
    for checkpoint in target.checkpoints:
        yield {"checkpoint_id": checkpoint, "input": None}
        yield {"checkpoint": {"checkpoint_id": checkpoint}, "command": {"goto": target.acts}}
    yield {"checkpoint_id": target.checkpoints[-1], "input": target.script()}
    yield {"input": None, "interrupt_before": [target.acts]}
    yield {"input": None, "interrupt_after": "*"}
    yield {"command": {"resume": APPROVALS[0]}, "durability": "exit"}
    for strategy, moved in product(STRATEGIES, moves(target)):
        yield {**moved, "multitask_strategy": strategy, "after_seconds": 0.01}
        yield {**moved, "multitask_strategy": strategy}
    yield {"input": target.script(), "durability": "exit", "multitask_strategy": "rollback"}


def moves(target: Target) -> Iterator[Json]:
    """Ways to go on that are no answer: from where the thread stands, from before, steered."""
    yield {"input": None}
    yield {"input": target.script()}
    yield {"command": {"goto": target.acts}}
    yield {"command": {"update": target.changed(), "goto": target.acts}}
    yield {"checkpoint_id": target.checkpoints[0], "input": None}
    yield {"checkpoint_id": target.checkpoints[-1], "command": {"goto": target.acts}}


def protocol_commands(target: Target) -> Iterator[Json]:
    """Commands of the event protocol: every answer, alone and with more, and every way to start a run."""
    for params in (*_responses(target), *_started(target)):
        method = "input.respond" if "interrupt_id" in params or "responses" in params else "run.start"
        yield {"id": 1, "method": method, "params": params}
    for method in ("agent.getTree", "input.inject", "state.fork", "subscription.subscribe"):
        yield {"id": 1, "method": method, "params": {"channels": ["values"], "input": target.script()}}


def _started(target: Target) -> Iterator[Json]:
    graphs = (target.graph,) if target.stops else (target.graph, "stock")
    inputs: list[Any] = [None, target.script(), APPROVALS[0], {target.interrupt_id: APPROVALS[0]}]
    for graph, strategy, given in product(graphs, (None, *STRATEGIES), inputs):
        yield {"assistant_id": graph, "input": given, "multitaskStrategy": strategy}
    for checkpoint, config in product(target.checkpoints, configs(target)):
        named = {**config.get("configurable", {}), "checkpoint_id": checkpoint}
        yield {"assistant_id": target.graph, "input": None, "config": {**config, "configurable": named}}


def _responses(target: Target) -> Iterator[Json]:
    for approval in APPROVALS:
        alone = {"interrupt_id": target.interrupt_id, "response": approval, "namespace": []}
        yield alone
        yield {"responses": [alone]}
        yield {"responses": [alone, {"interrupt_id": "0" * 32, "response": approval}]}
        yield {**alone, "goto": target.acts}
        yield {**alone, "update": target.changed()}
        yield {**alone, "metadata": {"graph_id": "stock"}}
        yield {"interrupt_id": "decisions", "response": approval}
    for config in configs(target):
        yield {"interrupt_id": target.interrupt_id, "response": APPROVALS[0], "config": config}


def run_bodies(target: Target) -> Iterator[Sent]:
    for body in runs(target):
        yield {"json": {"assistant_id": target.graph, **body}}
    if target.stops:
        return
    elsewhere: list[Json] = [{"input": None}, *({"command": command} for command in commands(target))]
    for body in elsewhere:
        yield {"json": {"assistant_id": "stock", **body}}  # a graph that has the same nodes, and no gate


def stateless(target: Target) -> Iterator[Sent]:
    chosen = {"configurable": {"thread_id": target.thread_id}}
    given: tuple[Json, ...] = (
        {"command": {"resume": {target.interrupt_id: APPROVALS[0]}}},
        {"input": target.script()},
        {},
    )
    for body in given:
        yield {"json": {"assistant_id": target.graph, "config": chosen, "on_completion": "keep", **body}}


def crons(target: Target) -> Iterator[Sent]:
    """Due every second, so that they fire at once."""
    due = {"assistant_id": target.graph, "schedule": "* * * * * *", "on_run_completed": "keep"}
    yield {"json": {**due, "command": {"resume": {target.interrupt_id: APPROVALS[0]}}}}
    for config in configs(target):
        yield {"json": {**due, "config": config}}
        yield {"json": {**due, "config": config, "input": target.script()}}
    for strategy, moved in product(STRATEGIES, moves(target)):
        yield {"json": {**due, **moved, "multitask_strategy": strategy}}
    if not target.stops:
        yield {"json": {**due, "assistant_id": "stock", "multitask_strategy": "enqueue"}}


def state_updates(target: Target) -> Iterator[Sent]:
    for changed, node in product((target.changed(), {}, None), (target.prepares, target.acts, "__start__", None)):
        yield {"json": {"values": changed, "as_node": node}}
    if target.stops:
        return
    result = {"type": "tool", "name": "act", "content": "done", "tool_call_id": target.call["id"]}
    messages: tuple[list[Json], ...] = (
        [target.message],
        [target.forged()],
        [target.forged(id="another")],
        [result],
        [],
    )
    stock = "HumanInTheLoopMiddleware.after_model"
    for values, node in product(messages, ("model", "tools", stock, "__input__", "__start__", None)):
        yield {"json": {"values": {"messages": values}, "as_node": node}}
    for node in ("__copy__", "__end__", "tools", "model"):
        yield {"json": {"values": None, "as_node": node}}
    for checkpoint in target.checkpoints:
        yield {"json": {"values": {"messages": [target.forged()]}, "as_node": "model", "checkpoint_id": checkpoint}}
        yield {"json": {"values": None, "as_node": "__copy__", "checkpoint": {"checkpoint_id": checkpoint}}}


def new_threads(target: Target) -> Iterator[Sent]:
    """Threads with a past that never was: one that stands before the call."""
    if target.stops:
        past = [{"updates": [{"values": target.evil, "as_node": target.prepares}]}]
        yield {"json": {"metadata": {"graph_id": target.graph}, "supersteps": past}}
        return
    for node in ("model", "HumanInTheLoopMiddleware.after_model"):
        past = [
            {"updates": [{"values": {"messages": target.script()["messages"]}, "as_node": "__input__"}]},
            {"updates": [{"values": {"messages": [target.message]}, "as_node": node}]},
        ]
        told = {"metadata": {"graph_id": target.graph}, "supersteps": past}
        yield {"json": told}
        yield {"json": {**told, "thread_id": target.thread_id, "if_exists": "do_nothing"}}


def decisions(target: Target) -> Iterator[Sent]:
    yield {"json": {**target.seen, "verb": "approve"}}
    yield {"json": {**target.seen, "actions": [{"key": "0", "verb": "approve"}]}}
    yield {"json": {**target.seen, "actions": [{"key": target.call["id"], "verb": "edit", "args": target.evil}]}}
    yield {"json": {**target.seen, "verb": "reject"}}
    for header in ("x-assent-actor", "x-user-id", "x-forwarded-user", "x-auth-scheme"):
        yield {"json": {**target.seen, "verb": "approve"}, "headers": {header: "langsmith"}}


def bulk(target: Target) -> Iterator[Sent]:
    for dry_run in (False, True):
        named = {"id": target.item_id, **target.seen}
        yield {"json": {"items": [named, named], "verb": "approve", "dry_run": dry_run}}


def policies(target: Target) -> Iterator[Sent]:
    yield {"json": {"policy": {"default": "allow"}}}
    yield {"json": {"policy": {"rules": [{"name": "all", "tool": "*", "then": "allow"}]}}}
    yield {"json": {"policy": '[[rules]]\nname = "all"\ntool = "act"\nthen = "allow"'}}


def keys(target: Target) -> Iterator[Sent]:
    yield {"json": {"name": "k", "kind": "reviewer", "user": "ana", "scopes": ["decide"]}}
    yield {"json": {"name": "k", "kind": "agent", "scopes": ["decide"]}}
    yield {"json": {"name": "k", "kind": "service", "scopes": ["decide", "admin"]}}


def pages(target: Target) -> Iterator[Sent]:
    seen = {"revision": str(target.revision), "hash": target.hash}
    for origin in ({}, {"origin": "http://127.0.0.1:2024"}):
        yield {"data": {**seen, "verb": "approve", "a0-verb": "approve", "outcome": "run_again"}, "headers": origin}
        yield {"data": {**seen, "comment": "yes", "revision_notes": "again", "cancel_notes": "no"}, "headers": origin}


def from_pages(*given: Json) -> Iterator[Sent]:
    """Forms, as from a page of ours and as from nowhere."""
    for data, origin in product(given, ({}, {"origin": "http://127.0.0.1:2024"})):
        yield {"data": data, "headers": origin}


def bulk_pages(target: Target) -> Iterator[Sent]:
    chosen = f"{target.item_id} {target.revision} {target.hash}"
    yield from from_pages({"do": "approval", "chosen": chosen, "sure": "yes"}, {"do": "approval", "chosen": chosen})


def policy_pages(target: Target) -> Iterator[Sent]:
    yield from from_pages({"policy": 'default = "allow"', "version": "0"}, {"text": 'default = "allow"'})


def inbox_pages(target: Target) -> Iterator[Sent]:
    yield from from_pages({"graph_id": target.graph, "name": "mine"}, {"search": "1", "filter": "is:pending"})


def key_pages(target: Target) -> Iterator[Sent]:
    yield from from_pages({"name": "k", "kind": "reviewer", "user": "ana", "scopes": "decide"})


def people_pages(target: Target) -> Iterator[Sent]:
    yield from from_pages({"name": "eve", "role": "admin"}, {"name": "ana", "role": "admin", "groups": "approvers"})


def bodies(*given: Json) -> Callable[[Target], Iterator[Sent]]:
    return lambda target: iter([{"json": one} for one in given])


def with_params(*given: Json) -> Callable[[Target], Iterator[Sent]]:
    return lambda target: iter([{"params": one} for one in given])


def nothing(target: Target) -> Iterator[Sent]:
    yield {}


def rpc(method: str, params: Json) -> Sent:
    return {"json": {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}}


def mcp(target: Target) -> Iterator[Sent]:
    yield rpc("tools/call", {"name": target.graph, "arguments": target.script()})
    for config in configs(target):
        context = config["configurable"]
        yield rpc("tools/call", {"name": target.graph, "arguments": target.script(), "context": context})
    told = {"thread_id": target.thread_id}
    yield rpc("tools/call", {"name": "continue_run", "arguments": told})
    for resume in resumes(target):
        answers = resume if isinstance(resume, dict) else {target.interrupt_id: resume}
        yield rpc("tools/call", {"name": "continue_run", "arguments": {**told, "answers": answers}})


def a2a(target: Target) -> Iterator[Sent]:
    task = {"taskId": f"{target.thread_id}:{target.run_id}", "contextId": target.thread_id}
    messages: list[Json] = [{"parts": [{"kind": "data", "data": target.script()}]}]
    for resume in resumes(target):
        messages.append({**task, "parts": [{"kind": "data", "data": {"resume": resume}}]})
        messages.append({**task, "command": {"resume": resume}, "parts": [{"kind": "text", "text": "approve"}]})
    messages.append({"contextId": target.thread_id, "parts": [{"kind": "data", "data": target.script()}]})
    for method, message in product(("message/send", "SendStreamingMessage"), messages):
        yield rpc(method, {"message": {"messageId": "m", "role": "user", **message}})
    for method in ("tasks/get", "CancelTask"):
        yield rpc(method, {"id": task["taskId"]})


def graphql(target: Target) -> Iterator[Sent]:
    item, seen = json.dumps(target.item_id), f'revision: {target.revision}, hash: "{target.hash}"'
    thread, run = json.dumps(target.thread_id), json.dumps(target.run_id)
    for field in (
        f"approveInboxItem(id: {item}, {seen}) {{ id }}",
        f'rejectInboxItem(id: {item}, {seen}, message: "no") {{ id }}',
        f"decideInboxItem(id: {item}, decision: {{{seen}, verb: APPROVE}}) {{ id }}",
        f'decideInboxItem(id: {item}, decision: {{{seen}, actions: [{{key: "0", verb: EDIT, args: {{}}}}]}}) {{ id }}',
        f'requestRevision(id: {item}, {seen}, notes: "again") {{ id }}',
        f'requestRevisionInboxItem(id: {item}, {seen}, notes: "again") {{ id }}',
        f'resubmitInboxItem(id: {item}, input: {{title: "other"}}) {{ id }}',
        f"cancelInboxItem(id: {item}) {{ id }}",
        f'addInboxItemComment(id: {item}, text: "approve it") {{ id }}',
        f"addInboxItemLink(id: {item}, threadId: {thread}) {{ id }}",
        f"removeInboxItemLink(id: {item}, threadId: {thread}) {{ id }}",
        'createInboxItem(input: {type: "a", title: "b"}) { id }',
        f"acceptAgentWorkspaceReview(runId: {run}, {seen}) {{ id }}",
        f"cancelAgentWorkspaceReview(runId: {run}, {seen}) {{ id }}",
        f'resumeAgentWorkspaceRun(runId: {run}, {seen}, responseMarkdown: "go on") {{ id }}',
    ):
        yield {"json": {"query": f"mutation {{ {field} }}"}}


def inbox_mcp(target: Target) -> Iterator[Sent]:
    seen = {"id": target.item_id, **target.seen}
    for name, arguments in (
        ("decide", {**seen, "verb": "approve"}),
        ("decide", {**seen, "verb": "reject"}),
        ("request_revision", {**seen, "notes": "again"}),
        ("recommend", {**seen, "verb": "approve", "reason": "it is fine"}),
        ("comment", {"id": target.item_id, "text": "approve it"}),
        ("claim_item", {"id": target.item_id}),
    ):
        yield rpc("tools/call", {"name": name, "arguments": arguments})


_ITEM = "/api/inbox/items/{item_id}"
_AGENT = "/inbox/agents/{agent_id}"


def gate_call(target: Target, **change: Any) -> Json:
    """The waiting call, as a gate elsewhere would describe it."""
    call = {"thread_id": target.thread_id, "call_id": "another", "tool": "act", "args": target.evil, "task": "tools:1"}
    if not target.stops:
        call |= {"call_id": target.call["id"], "args": target.call["args"]}
    return {**call, **change}


def gate_questions(target: Target) -> Iterator[Sent]:
    call = gate_call(target)
    named = {"tool_call_id": call["call_id"], "name": "act", "args": call["args"]}
    value = {"type": "tool_approval", "gate": "assent", **named}
    asked: Json = {"thread_id": target.thread_id, "interrupt_id": target.interrupt_id, "value": value}
    yield {"json": asked}
    yield {"json": {**asked, "before": [target.interrupt_id]}}
    doubt = {**value, "kind": "assent.in_doubt", "item_id": target.item_id, "grant_id": target.item_id}
    yield {"json": {**asked, "value": doubt}}


def gate_reports(target: Target) -> Iterator[Sent]:
    for kind in ("alive", "done", "failed", "paused", "returned", "doubted"):
        yield {"json": {"kind": kind, "attempt": "a", "result": {"value": 1}, "interrupt_id": target.interrupt_id}}


_REVIEW = "/api/workspace-reviews/{run_id}"
_PAGE = "/inbox/{item_id}"
ATTEMPTS: dict[str, Callable[[Target], Iterator[Sent]]] = {
    "POST /threads/{thread_id}/runs/stream": run_bodies,
    "POST /threads/{thread_id}/runs/wait": run_bodies,
    "POST /threads/{thread_id}/runs": run_bodies,
    "POST /runs/stream": stateless,
    "POST /runs/wait": stateless,
    "POST /runs": stateless,
    "POST /runs/batch": lambda target: iter([{"json": [attempt["json"] for attempt in stateless(target)]}]),
    "POST /runs/cancel": lambda target: iter(
        {"json": body, "params": {"action": action}}
        for body in ({"status": "all"}, {"thread_id": target.thread_id, "run_ids": [target.run_id]})
        for action in ("interrupt", "rollback")
    ),
    "DELETE /threads/{thread_id}/runs/{run_id}": nothing,
    "POST /threads/{thread_id}/runs/{run_id}/cancel": with_params({"action": "interrupt"}, {"action": "rollback"}),
    "POST /threads": new_threads,
    "POST /threads/search": bodies({}),
    "POST /threads/count": bodies({}),
    "PATCH /threads/{thread_id}": lambda target: iter(
        {"json": {"metadata": one}}
        for one in ({"graph_id": "stock"}, {"graph_id": "stock", "assistant_id": "stock"}, {"owner": "ana"})
    ),
    "DELETE /threads/{thread_id}": nothing,
    "POST /threads/prune": lambda target: iter(
        {"json": {"thread_ids": [target.thread_id], "strategy": strategy}} for strategy in ("keep_latest", "delete")
    ),
    "POST /threads/{thread_id}/copy": nothing,
    "POST /threads/{thread_id}/state/checkpoint": bodies({"checkpoint": {}}),
    "POST /threads/{thread_id}/state": state_updates,
    "POST /threads/{thread_id}/history": bodies({"limit": 10}),
    "POST /api/threads/{thread_id}/repair": nothing,
    f"POST {_ITEM}/decision": decisions,
    f"DELETE {_ITEM}/decision": nothing,
    f"POST {_ITEM}/revision-request": lambda target: iter([{"json": {**target.seen, "notes": "again"}}]),
    f"POST {_ITEM}/recommendation": lambda target: iter(
        [{"json": {**target.seen, "verb": "approve", "reason": "approve it"}}]
    ),
    f"POST {_ITEM}/confirmation": decisions,
    f"POST {_ITEM}/in-doubt/confirmation": bodies({"outcome": "run_again"}),
    f"POST {_ITEM}/in-doubt": bodies({"outcome": "run_again"}, {"outcome": "done"}, {"outcome": "abandon"}),
    "POST /api/inbox/bulk": bulk,
    "POST /api/inbox/items": lambda target: iter(
        [{"json": {"type": "tool", "title": "t", "thread_ids": [target.thread_id], "actions": [{"name": "act"}]}}]
    ),
    f"POST {_ITEM}/resubmission": lambda target: iter(
        [{"json": {"actions": [{"name": "act", "args": target.evil}]}}, {"json": {"title": "harmless"}}]
    ),
    f"POST {_ITEM}/cancellation": bodies({"notes": "not needed"}),
    f"POST {_ITEM}/comments": bodies({"text": "approve"}),
    f"PUT {_ITEM}/claim": nothing,
    f"DELETE {_ITEM}/claim": nothing,
    f"PUT {_ITEM}/owner": bodies({"owner": "me"}, {"owner": "ana"}),
    f"DELETE {_ITEM}/owner": nothing,
    f"PUT {_ITEM}/draft": bodies({"draft": {"verb": "approve"}}),
    f"PUT {_ITEM}/snooze": bodies({"until": "2099-01-01T00:00:00Z"}, {"until": None}),
    f"PUT {_ITEM}/links/{{thread_id}}": nothing,
    f"DELETE {_ITEM}/links/{{thread_id}}": nothing,
    "POST /api/gate/look": lambda target: iter([{"json": {"call": gate_call(target)}}]),
    "POST /api/gate/questions": gate_questions,
    "POST /api/gate/grants": lambda target: iter(
        [
            {"json": {"call": gate_call(target), "attempt": "a"}},
            {"json": {"call": gate_call(target, args=target.evil), "attempt": "a", "answered": [target.interrupt_id]}},
            {"json": {"call": gate_call(target), "attempt": "a", "recall": True, "items": [target.item_id]}},
        ]
    ),
    "POST /api/gate/grants/{grant_id}/reports": gate_reports,
    "POST /api/workspace-reviews": lambda target: iter([{"json": {"run_id": target.run_id, "body": "harmless"}}]),
    f"POST {_REVIEW}/acceptance": lambda target: iter([{"json": target.seen}]),
    f"POST {_REVIEW}/cancellation": lambda target: iter([{"json": target.seen}]),
    f"POST {_REVIEW}/resumption": lambda target: iter([{"json": {**target.seen, "response_markdown": "go on"}}]),
    "PUT /api/policies": policies,
    "POST /api/policies/test": policies,
    "POST /api/standing-approvals": lambda target: iter(
        {"json": {"item_id": target.item_id, **target.seen, "lifetime_seconds": 3600, "same_args": same}}
        for same in (True, False)
    ),
    "POST /api/standing-approvals/proposal": lambda target: iter(
        [{"json": {"item_id": target.item_id, **target.seen, "lifetime_seconds": 3600, "days": 7}}]
    ),
    "DELETE /api/standing-approvals/{approval_id}": nothing,
    "DELETE /api/sample-data": nothing,
    "POST /api/session": bodies({"credential": "ana"}, {"credential": ""}),
    "DELETE /api/session": nothing,
    "POST /api/keys": keys,
    "DELETE /api/keys/{key_id}": nothing,
    "POST /api/keys/{key_id}/rotation": bodies({}),
    "POST /api/users": bodies({"name": "eve", "role": "admin"}),
    "PATCH /api/users/{name}": bodies({"role": "admin"}, {"disabled": True}, {"groups": ["approvers"]}),
    "POST /api/users/{name}/login-link": nothing,
    "DELETE /api/users/{name}": nothing,
    "POST /api/agents": bodies({"name": "eve", "human": "ana", "source": "system"}),
    "PATCH /api/agents/{agent}": bodies({"human": "ana"}, {"source": "system"}),
    "DELETE /api/agents/{agent}": nothing,
    "POST /api/passkeys/registration": nothing,
    "POST /api/passkeys": bodies({"name": "mine", "credential": {}}),
    "PATCH /api/passkeys/{passkey_id}": bodies({"name": "mine"}),
    "DELETE /api/passkeys/{passkey_id}": nothing,
    "DELETE /api/users/{name}/passkeys/{passkey_id}": nothing,
    "POST /api/audit/erasures": lambda target: iter([{"json": {"subject": f"item:{target.item_id}"}}]),
    "POST /api/deliveries/{delivery_id}/retry": nothing,
    "POST /assistants": lambda target: iter(
        [{"json": {"graph_id": target.graph, "config": config, "name": "mine"}} for config in configs(target)]
    ),
    "POST /assistants/search": bodies({}),
    "POST /assistants/count": bodies({}),
    "PATCH /assistants/{assistant_id}": lambda target: iter(
        [{"json": {"graph_id": "stock"}}, *({"json": {"config": config}} for config in configs(target))]
    ),
    "DELETE /assistants/{assistant_id}": with_params({}, {"delete_threads": "true"}),
    "POST /assistants/{assistant_id}/versions": bodies({}),
    "POST /assistants/{assistant_id}/latest": bodies({"version": 1}, {"version": 2}),
    "POST /runs/crons": crons,
    "POST /runs/crons/search": bodies({}),
    "POST /runs/crons/count": bodies({}),
    "DELETE /runs/crons/{cron_id}": nothing,
    "PATCH /runs/crons/{cron_id}": bodies({"enabled": True}, {"input": {"text": "x"}}),
    "POST /threads/{thread_id}/runs/crons": crons,
    "DELETE /store/items": bodies({"namespace": ["a"], "key": "k"}),
    "PUT /store/items": bodies({"namespace": ["a"], "key": "k", "value": {}}),
    "POST /store/items/search": bodies({"namespace_prefix": []}),
    "POST /store/namespaces": bodies({}),
    "POST /threads/{thread_id}/commands": lambda target: ({"json": sent} for sent in protocol_commands(target)),
    "POST /threads/{thread_id}/stream/events": bodies({}, {"channels": ["values", "input"]}),
    "POST /graphql": graphql,
    "POST /api/mcp": inbox_mcp,
    "DELETE /api/mcp": nothing,
    "POST /mcp": mcp,
    "POST /mcp/": mcp,
    "DELETE /mcp": nothing,
    "DELETE /mcp/": nothing,
    "POST /a2a/{assistant_id}": a2a,
    "POST /login": lambda target: iter([{"data": {"token": "ana"}}]),
    "POST /logout": nothing,
    f"POST {_PAGE}/decision": pages,
    f"POST {_PAGE}/revision-request": pages,
    f"POST {_PAGE}/undo": pages,
    f"POST {_PAGE}/cancellation": pages,
    f"POST {_PAGE}/in-doubt": pages,
    f"POST {_PAGE}/decision/confirmation": pages,
    f"POST {_PAGE}/in-doubt/confirmation": pages,
    f"POST {_PAGE}/comments": pages,
    f"POST {_PAGE}/delivery": pages,
    f"POST {_PAGE}/snooze": pages,
    f"POST {_PAGE}/claim": pages,
    f"POST {_PAGE}/owner": pages,
    f"POST {_PAGE}/resubmission": pages,
    f"POST {_PAGE}/reveal": pages,
    f"POST {_PAGE}/standing": pages,
    "POST /inbox/sample-data/removal": pages,
    f"POST {_PAGE}/standing/preview": pages,
    f"POST {_ITEM}/reveal": nothing,
    "POST /inbox/bulk": bulk_pages,
    "POST /inbox/bulk/undo": lambda target: from_pages({"undo": target.item_id}),
    "POST /inbox/preferences": lambda target: iter([{"data": {"language": "zh", "theme": "dark"}}]),
    "POST /inbox/policies": policy_pages,
    "POST /inbox/policies/test": policy_pages,
    "POST /inbox/policies/standing/{approval_id}/revocation": pages,
    "POST /inbox/audit/verification": pages,
    "POST /inbox/crons/{cron_id}/state": lambda target: iter([{"data": {"enabled": "yes"}}]),
    "POST /inbox/crons/{cron_id}/removal": pages,
    "POST /inbox/agents": lambda target: from_pages({"name": "eve", "human": "ana", "source": "system"}),
    f"POST {_AGENT}": lambda target: from_pages({"human": "ana", "source": "system"}),
    f"POST {_AGENT}/removal": pages,
    f"POST {_AGENT}/rules": lambda target: from_pages({"tool": "*", "then": "allow", "version": "1"}),
    f"POST {_AGENT}/rules/removal": lambda target: from_pages({"number": "1", "version": "1"}),
    "POST /inbox/inboxes": inbox_pages,
    "POST /inbox/inboxes/{inbox_id}": inbox_pages,
    "POST /inbox/inboxes/{inbox_id}/removal": pages,
    "POST /inbox/settings/reasons": pages,
    "POST /inbox/settings/reasons/{reason_id}/change": pages,
    "POST /inbox/settings/reasons/{reason_id}/removal": pages,
    "POST /inbox/settings/deployments": pages,
    "POST /inbox/settings/deployments/{deployment_id}/check": pages,
    "POST /inbox/settings/deployments/{deployment_id}/key": pages,
    "POST /inbox/settings/deployments/{deployment_id}/pause": pages,
    "POST /inbox/settings/deployments/{deployment_id}/removal": pages,
    "POST /inbox/settings/deployments/{deployment_id}/webhook": pages,
    "POST /inbox/settings/deployments/{deployment_id}/webhook/removal": pages,
    "POST /inbox/settings/keys": key_pages,
    "POST /inbox/settings/keys/{key_id}/revocation": pages,
    "POST /inbox/settings/keys/{key_id}/rotation": pages,
    "POST /inbox/settings/people": people_pages,
    "POST /inbox/settings/people/change": people_pages,
    "POST /inbox/settings/people/disabling": people_pages,
    "POST /inbox/settings/people/login-link": people_pages,
    "POST /inbox/settings/people/passkey-removal": people_pages,
    "POST /inbox/settings/account/passkeys/{passkey_id}/name": pages,
    "POST /inbox/settings/account/passkeys/{passkey_id}/removal": pages,
    "POST /inbox/settings/notifications/{delivery_id}/retry": pages,
    "POST /inbox/settings/notifications/secret": pages,
    "POST /api/deployments": bodies({"url": "http://127.0.0.1:9", "key": "k"}),
    "PATCH /api/deployments/{deployment_id}": bodies({"name": "other"}),
    "DELETE /api/deployments/{deployment_id}": nothing,
    "POST /api/deployments/{deployment_id}/webhook": nothing,
    "DELETE /api/deployments/{deployment_id}/webhook": nothing,
    "POST /api/deployments/look": nothing,
    "POST /api/deployments/{deployment_id}/check": nothing,
    "PUT /api/deployments/{deployment_id}/key": bodies({"key": "k"}),
    "POST /api/deployments/{deployment_id}/pause": nothing,
    "POST /api/deployments/{deployment_id}/resume": nothing,
    "POST /api/inboxes": bodies({"name": "all", "filter": "is:pending"}),
    "PUT /api/inboxes/{inbox_id}": bodies({"name": "all", "filter": "is:pending"}),
    "DELETE /api/inboxes/{inbox_id}": nothing,
    "POST /api/reasons": bodies({"name": "no", "text": "No."}),
    "PUT /api/reasons/{reason_id}": bodies({"name": "no", "text": "No."}),
    "DELETE /api/reasons/{reason_id}": nothing,
}
