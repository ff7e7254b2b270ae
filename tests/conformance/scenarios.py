"""What is asked of both servers: every graph in every way to run it, then threads, assistants and wrong requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.conformance.cases import CASES, CONTINUE, GRAPHS, Case
from tests.conformance.generated import generated
from tests.conformance.lives import lives
from tests.conformance.protocols import protocols
from tests.conformance.requests import REFUSED
from tests.conformance.talking import Json, Scenario, Talk, command, new_id

MODES = ("values", "updates", "messages", "messages-tuple", "custom", "debug", "tasks", "checkpoints", "events")


def scenarios() -> dict[str, Scenario]:
    made: dict[str, Scenario] = {}
    for case in CASES:
        name = case.graph if case.graph not in {key.split("/")[0] for key in made} else f"{case.graph} again"
        made |= {f"{name}/{kind}": scenario for kind, scenario in _of_case(case)}
    for graph in GRAPHS:
        made[f"{graph}/assistant"] = partial(assistant, graph=graph)
    for name, (method, path, body) in REFUSED.items():
        made[f"refused/{name}"] = partial(refused, method=method, path=path, body=body)
    made |= protocols() | lives() | generated()
    return made | {f"general/{name}": scenario for name, scenario in _GENERAL.items()}


def _of_case(case: Case) -> Iterator[tuple[str, Scenario]]:
    for mode in MODES:
        yield f"stream {mode}", partial(streamed, case=case, modes=[mode])
        if case.nested:
            yield f"stream {mode} with subgraphs", partial(streamed, case=case, modes=[mode], subgraphs=True)
    several = [mode for mode in MODES if mode != "messages"]
    yield "stream several modes", partial(streamed, case=case, modes=several)
    yield "stream several modes with subgraphs", partial(streamed, case=case, modes=several, subgraphs=True)
    yield "wait", partial(waited, case=case)
    yield "join", partial(joined, case=case)
    yield "stateless", partial(stateless, case=case)
    yield "events", partial(events, case=case)
    yield "copy", partial(copied, case=case)


def _request(case: Case, **more: Any) -> Json:
    return {"assistant_id": case.graph, "input": case.input, **case.options, **more}


async def _continued(talk: Talk, case: Case, thread: str, answer: Any) -> Json:
    """The request that answers what the thread waits for."""
    waiting = await talk.call("GET", f"/threads/{thread}")
    if answer is CONTINUE:
        return {"assistant_id": case.graph, **case.options, "input": None}
    return {"assistant_id": case.graph, "command": {"resume": _answers(waiting, answer)}}


def _answers(waiting: Json, answer: Any) -> Json:
    """Answers by question, in the order of the questions' texts."""
    asked = sorted(
        (question for several in (waiting.get("interrupts") or {}).values() for question in several),
        key=lambda question: json.dumps(question["value"]),
    )
    answers = answer if isinstance(answer, list) and len(asked) > 1 else [answer]
    return {question["id"]: each for question, each in zip(asked, answers, strict=False)}


async def streamed(talk: Talk, case: Case, modes: list[str], subgraphs: bool = False) -> None:
    thread = await talk.thread()
    shown = {"stream_mode": modes, "stream_subgraphs": subgraphs}
    await talk.stream("POST", f"/threads/{thread}/runs/stream", _request(case, **shown))
    for answer in case.answers:
        again = await _continued(talk, case, thread, answer)
        await talk.stream("POST", f"/threads/{thread}/runs/stream", {**again, **shown})


async def waited(talk: Talk, case: Case) -> None:
    """Everything that is readable after each turn."""
    thread = await talk.thread(metadata={"mark": "waited"})
    await talk.call("POST", f"/threads/{thread}/runs/wait", _request(case))
    await _read(talk, thread)
    for answer in case.answers:
        again = await _continued(talk, case, thread, answer)
        await talk.call("POST", f"/threads/{thread}/runs/wait", again)
        await _read(talk, thread)


async def _read(talk: Talk, thread: str) -> None:
    await talk.call("GET", f"/threads/{thread}")
    await talk.call("GET", f"/threads/{thread}/state")
    await talk.call("GET", f"/threads/{thread}/state?subgraphs=true")
    past = await talk.call("POST", f"/threads/{thread}/history", {"limit": 50})
    if past and isinstance(past, list):
        oldest = past[-1]["checkpoint"]
        await talk.call("GET", f"/threads/{thread}/state/{oldest['checkpoint_id']}")
        await talk.call("POST", f"/threads/{thread}/state/checkpoint", {"checkpoint": oldest, "subgraphs": True})
    runs = await talk.call("GET", f"/threads/{thread}/runs")
    if runs:
        await talk.call("GET", f"/threads/{thread}/runs/{runs[0]['run_id']}")


async def joined(talk: Talk, case: Case) -> None:
    thread = await talk.thread()
    shown = {"stream_mode": ["values", "updates"], "stream_resumable": True}
    run = await talk.call("POST", f"/threads/{thread}/runs", _request(case, **shown))
    path = f"/threads/{thread}/runs/{run['run_id']}"
    await talk.ended(path)
    await talk.call("GET", f"{path}/join")
    await talk.stream("GET", f"{path}/stream", headers={"last-event-id": "-1"})
    await talk.call("POST", f"{path}/cancel")


async def stateless(talk: Talk, case: Case) -> None:
    await talk.call("POST", "/runs/wait", _request(case))
    await talk.stream("POST", "/runs/stream", _request(case, stream_mode=["updates"]))
    await talk.call("POST", "/runs/batch", [_request(case), _request(case, metadata={"second": True})])


async def events(talk: Talk, case: Case) -> None:
    thread = new_id()
    start = {key: value for key, value in case.options.items() if key in ("config", "metadata")}
    start |= {"assistant_id": case.graph, "input": case.input}
    await talk.call("POST", f"/threads/{thread}/commands", command("run.start", **start))
    seen, last = await talk.events(thread)
    talk.note("events", body=seen)
    for answer in case.answers:
        if answer is CONTINUE:
            return
        given = [
            {"interrupt_id": known, "response": each, "namespace": []}
            for known, each in _answers(await talk.idle(thread), answer).items()
        ]
        await talk.call("POST", f"/threads/{thread}/commands", command("input.respond", responses=given))
        seen, last = await talk.events(thread, since=last)
        talk.note("events", body=seen)


async def copied(talk: Talk, case: Case) -> None:
    """A copy, a fork, an edit; and the thread after it lost its latest run."""
    thread = await talk.thread()
    await talk.call("POST", f"/threads/{thread}/runs/wait", _request(case))
    copy = await talk.call("POST", f"/threads/{thread}/copy")
    await talk.call("GET", f"/threads/{copy['thread_id']}/state")
    await talk.call("POST", f"/threads/{copy['thread_id']}/history", {"limit": 20})
    past = await talk.call("POST", f"/threads/{thread}/history", {"limit": 20})
    if isinstance(past, list) and len(past) > 1:
        again = {"assistant_id": case.graph, **case.options, "checkpoint_id": past[1]["checkpoint"]["checkpoint_id"]}
        await talk.call("POST", f"/threads/{copy['thread_id']}/runs/wait", again)
        await talk.call("POST", f"/threads/{thread}/state", {"values": case.input, "checkpoint": past[1]["checkpoint"]})
        await talk.call("GET", f"/threads/{thread}/state")
    await talk.call("POST", "/threads/prune", {"thread_ids": [copy["thread_id"], new_id()]})
    await talk.call("GET", f"/threads/{copy['thread_id']}")


async def assistant(talk: Talk, graph: str) -> None:
    [listed] = await talk.call("POST", "/assistants/search", {"graph_id": graph, "metadata": {"created_by": "system"}})
    path = f"/assistants/{listed['assistant_id']}"
    for rest in (
        "",
        "/schemas",
        "/graph",
        "/graph?xray=true",
        "/graph?xray=1",
        "/subgraphs",
        "/subgraphs?recurse=true",
    ):
        await talk.call("GET", f"{path}{rest}")
    await talk.call("GET", f"/assistants/{graph}/graph")
    await talk.call("POST", f"{path}/versions", {})


async def refused(talk: Talk, method: str, path: str, body: Any) -> None:
    """`{thread}` is a thread that has run; `{ask}` is one that waits for an answer; `{new}` is an unknown id."""
    known = {"new": new_id()}
    for name, graph in (("thread", "linear"), ("ask", "ask_text")):
        if f"{{{name}}}" in path:
            known[name] = await talk.thread()
            await talk.call(
                "POST", f"/threads/{known[name]}/runs/wait", {"assistant_id": graph, "input": {"text": "x"}}
            )
    await talk.call(method, path.format(**known), body)


async def assistants_changed(talk: Talk) -> None:
    mark = new_id()
    body = {
        "graph_id": "configured",
        "name": "Mine",
        "metadata": {"mark": mark},
        "config": {"configurable": {"mine": 1}},
    }
    made = await talk.call("POST", "/assistants", body)
    path = f"/assistants/{made['assistant_id']}"
    await talk.call("POST", "/assistants", {**body, "assistant_id": made["assistant_id"]})
    await talk.call("POST", "/assistants", {**body, "assistant_id": made["assistant_id"], "if_exists": "do_nothing"})
    await talk.call("PATCH", path, {"name": "Ours", "metadata": {"team": "b"}, "description": "polite"})
    await talk.call("PATCH", path, {"config": {"configurable": {"mine": 2}, "tags": ["t"]}})
    await talk.call("PATCH", path, {"context": {"mine": 3}})
    await talk.call("PATCH", path, {"graph_id": "linear"})
    await talk.call("GET", path)
    await talk.call("POST", f"{path}/versions", {})
    await talk.call("POST", f"{path}/versions", {"limit": 1, "offset": 1})
    await talk.call("POST", f"{path}/versions", {"metadata": {"team": "b"}})
    await talk.call("POST", f"{path}/latest", {"version": 2})
    await talk.call("POST", f"{path}/latest", {"version": 99})
    for query in (
        {"metadata": {"mark": mark}},
        {"name": "our", "metadata": {"mark": mark}},
        {"select": ["name"], "metadata": {"mark": mark}},
    ):
        await talk.call("POST", "/assistants/search", query)
        await talk.call("POST", "/assistants/count", {key: value for key, value in query.items() if key != "select"})
    await talk.call("POST", "/runs/wait", {"assistant_id": made["assistant_id"], "input": {"text": "x"}})
    await talk.call("DELETE", path)
    await talk.call("DELETE", path)
    await talk.call("GET", path)


async def threads_changed(talk: Talk) -> None:
    mark = new_id()
    known = new_id()
    body = {"thread_id": known, "metadata": {"mark": mark, "n": 1}}
    await talk.call("POST", "/threads", body)
    await talk.call("POST", "/threads", body)
    await talk.call("POST", "/threads", {**body, "if_exists": "do_nothing"})
    await talk.call("PATCH", f"/threads/{known}", {"metadata": {"n": 2, "more": None}})
    await talk.call("PATCH", f"/threads/{known}", {"metadata": {"m": 3}}, headers={"prefer": "return=minimal"})
    await talk.call("GET", f"/threads/{known}")
    await talk.call("GET", f"/threads/{known}/state")
    await talk.call("POST", f"/threads/{known}/history", {})
    await talk.call("GET", f"/threads/{known}/runs")
    steps = [{"updates": [{"values": {"text": "x", "log": ["given"]}, "as_node": "__start__"}]}]
    made = await talk.call("POST", "/threads", {"metadata": {"graph_id": "linear", "mark": mark}, "supersteps": steps})
    await talk.call("GET", f"/threads/{made['thread_id']}/state")
    await talk.call("POST", f"/threads/{made['thread_id']}/runs/wait", {"assistant_id": "linear"})
    asking = await talk.thread(metadata={"mark": mark})
    await talk.call("POST", f"/threads/{asking}/runs/wait", {"assistant_id": "ask_text", "input": {"text": "q"}})
    queries: list[Json] = [
        {},
        {"status": "interrupted"},
        {"status": "idle", "sort_by": "created_at", "sort_order": "asc"},
        {"limit": 1, "offset": 1, "sort_by": "created_at", "sort_order": "asc"},
        {"ids": [known, asking], "sort_by": "created_at"},
        {"select": ["thread_id", "status", "metadata"], "sort_by": "created_at"},
        {"metadata": {"mark": mark, "n": 2}},
    ]
    for query in queries:
        marked = {**query, "metadata": {"mark": mark, **query.get("metadata", {})}}
        await talk.call("POST", "/threads/search", marked)
        counted = {key: value for key, value in marked.items() if key in ("metadata", "status")}
        await talk.call("POST", "/threads/count", counted)
    await talk.call("DELETE", f"/threads/{known}")
    await talk.call("GET", f"/threads/{known}")
    await talk.call("DELETE", f"/threads/{known}")


async def states_changed(talk: Talk) -> None:
    thread = await talk.thread()
    await talk.call("POST", f"/threads/{thread}/runs/wait", {"assistant_id": "linear", "input": {"text": "x"}})
    await talk.call("POST", f"/threads/{thread}/state", {"values": {"log": ["by hand"]}, "as_node": "first"})
    await talk.call("GET", f"/threads/{thread}/state")
    await talk.call("POST", f"/threads/{thread}/runs/wait", {"assistant_id": "linear"})
    await talk.call("POST", f"/threads/{thread}/state", {"values": None, "as_node": "__end__"})
    await talk.call("POST", f"/threads/{thread}/state", {"values": {"log": ["x"]}, "as_node": "nobody"})
    await talk.call("POST", f"/threads/{thread}/history", {"limit": 50, "metadata": {"source": "update"}})
    await talk.call("POST", f"/threads/{thread}/runs/wait", {"assistant_id": "linear", "command": {"goto": "third"}})
    update = {"goto": ["second", {"node": "third", "input": {"text": "sent"}}], "update": {"text": "y"}}
    await talk.call("POST", f"/threads/{thread}/runs/wait", {"assistant_id": "linear", "command": update})
    await talk.call("GET", f"/threads/{thread}/state")


async def runs_with_options(talk: Talk) -> None:
    base = {"assistant_id": "linear", "input": {"text": "x"}}
    created = new_id()
    await talk.call("POST", f"/threads/{created}/runs/wait", {**base, "if_not_exists": "create"})
    await talk.call("GET", f"/threads/{created}")
    variants: list[Json] = [
        {"interrupt_before": ["second"]},
        {"interrupt_after": ["first"]},
        {"interrupt_before": "*"},
        {"durability": "exit"},
        {"durability": "sync"},
        {"checkpoint_during": False},
        {"metadata": {"a": 1}, "config": {"tags": ["t"], "recursion_limit": 50, "configurable": {"k": "v"}}},
        {"multitask_strategy": "enqueue"},
        {"on_disconnect": "cancel"},
        {"unknown_field": 1},
        {"input": {"text": 5}},
        {"input": {"nothing": 1}},
        {"input": []},
        {"input": "text"},
        {"input": {}},
        {"input": None},
    ]
    for options in variants:
        thread = await talk.thread()
        await talk.call("POST", f"/threads/{thread}/runs/wait", {**base, **options})
        await talk.call("GET", f"/threads/{thread}")
        await talk.call("POST", f"/threads/{thread}/history", {"limit": 20})
        await talk.call("GET", f"/threads/{thread}/runs")
    await talk.call("POST", "/runs/wait", {**base, "on_completion": "keep", "metadata": {"kept": created}})
    await talk.call("POST", "/threads/search", {"metadata": {"kept": created}})
    await talk.call("POST", "/runs/wait", {**base, "command": {"resume": "x"}})


async def runs_removed(talk: Talk) -> None:
    thread = await talk.thread()
    for text in ("one", "two"):
        await talk.call("POST", f"/threads/{thread}/runs/wait", {"assistant_id": "linear", "input": {"text": text}})
    runs = await talk.call("GET", f"/threads/{thread}/runs?limit=1")
    await talk.call("GET", f"/threads/{thread}/runs?status=success&select=run_id&select=status")
    path = f"/threads/{thread}/runs/{runs[0]['run_id']}"
    await talk.call("POST", f"{path}/cancel?wait=1")
    await talk.call("DELETE", path)
    await talk.call("GET", path)
    await talk.call("GET", f"/threads/{thread}/state")
    await talk.call("POST", f"/threads/{thread}/history", {"limit": 20})


async def store_items(talk: Talk) -> None:
    own = new_id()
    put: list[Json] = [
        {"namespace": [own, "a"], "key": "k", "value": {"n": 1, "s": "x", "l": [1, 2], "d": {"e": 1}}},
        {"namespace": [own, "a"], "key": "z", "value": {}},
        {"namespace": [own, "b"], "key": "\u00e9 \u6f22", "value": {"n": 2}, "ttl": 60, "index": False},
    ]
    for item in put:
        await talk.call("PUT", "/store/items", item)
    await talk.call("GET", f"/store/items?namespace={own}.a&key=k")
    await talk.call("GET", f"/store/items?namespace={own}.a&key=none")
    queries: list[Json] = [
        {},
        {"filter": {"n": 1}},
        {"filter": {"d": {"e": 1}}},
        {"filter": {"l": [1, 2]}},
        {"query": "x", "limit": 10},
        {"filter": {"n": 5}},
    ]
    for query in queries:
        found = await talk.call("POST", "/store/items/search", {"namespace_prefix": [own], **query})
        talk.arrange({item["key"]: item for item in found["items"]})
    for query in ({}, {"suffix": ["a"]}, {"max_depth": 1}, {"limit": 1, "offset": 1}):
        await talk.call("POST", "/store/namespaces", {"prefix": [own], **query})
    for _ in range(2):
        await talk.call("DELETE", "/store/items", {"namespace": [own, "a"], "key": "k"})
    await talk.call("GET", f"/store/items?namespace={own}.a&key=k")


async def crons_changed(talk: Talk) -> None:
    yearly: Json = {"assistant_id": "linear", "schedule": "0 0 1 1 *", "input": {"text": "x"}}
    mark = {"mark": new_id()}
    cron = await talk.call("POST", "/runs/crons", {**yearly, "metadata": mark, "timezone": "Europe/Paris"})
    thread = await talk.thread()
    await talk.call("POST", f"/threads/{thread}/runs/crons", {**yearly, "metadata": mark})
    path = f"/runs/crons/{cron['cron_id']}"
    changes: list[Json] = [
        {},
        {"enabled": False},
        {"schedule": "0 12 1 1 *", "end_time": "2035-01-01T00:00:00Z"},
        {"end_time": None},
        {"metadata": {"more": 1}},
        {"config": {"configurable": {"k": 1}}},
        {"unknown": 1},
    ]
    for change in changes:
        await talk.call("PATCH", path, change)
    for query in ({}, {"sort_by": "next_run_date", "sort_order": "asc"}, {"select": ["schedule"]}, {"limit": 1}):
        await talk.call("POST", "/runs/crons/search", {"metadata": mark, **query})
    await talk.call("POST", "/runs/crons/count", {"metadata": mark})
    for method in ("GET", "DELETE", "DELETE", "GET"):
        await talk.call(method, path)


async def functional_again(talk: Talk) -> None:
    """What an entrypoint saved is there in the next run."""
    thread = await talk.thread()
    for number in (1, 2, 3):
        body = {"assistant_id": "functional_previous", "input": {"number": number}}
        await talk.call("POST", f"/threads/{thread}/runs/wait", body)
    await _read(talk, thread)


async def service(talk: Talk) -> None:
    for path in ("/ok", "/info", "/ok?check_db=1"):
        await talk.call("GET", path)


_GENERAL: dict[str, Scenario] = {
    "assistants": assistants_changed,
    "threads": threads_changed,
    "states": states_changed,
    "options of runs": runs_with_options,
    "removed runs": runs_removed,
    "store": store_items,
    "crons": crons_changed,
    "functional runs": functional_again,
    "service": service,
}
