"""The differences from LangGraph's server that are on purpose, one by one, each with its reason.

A row applies to a difference whose place (`scenario path`) matches `place`, and whose values satisfy `holds`. A row
that explains nothing in the full run fails it, unless it depends on the speed of the servers: so the table stays true.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.comparing import NOTHING, Difference


@dataclass(frozen=True)
class Allowed:
    reason: str
    place: str
    holds: Callable[[Any, Any], bool] = field(default=lambda theirs, ours: True)
    depends_on_speed: bool = False
    """Not in every run: how far a server has come when it is asked."""

    def explains(self, difference: Difference) -> bool:
        place = f"{difference.scenario} {difference.path}"
        return bool(re.search(self.place, place)) and self.holds(difference.theirs, difference.ours)


def _only_theirs(theirs: Any, ours: Any) -> bool:
    return ours is NOTHING


def _only_ours(theirs: Any, ours: Any) -> bool:
    return theirs is NOTHING


def _refuses(theirs: Any, ours: Any) -> bool:
    """Their answer is accepted by LangGraph's server, or fails it; ours is a refusal with its reason."""
    return ours in (400, 404, 409, 422) if isinstance(ours, int) else ours is NOTHING


def _takes(theirs: Any, ours: Any) -> bool:
    """LangGraph's server refuses it, or fails."""
    return theirs >= 400 and ours < 300 if isinstance(theirs, int) else theirs is NOTHING


_OF_FIELDS = [
    Allowed(
        "Postgres cannot store U+0000: refused in bodies and parameters, the same on both databases",
        r"^field/.*\.((object of )?U\+0000|a%00b)\.(status|body)$",
        _refuses,
    ),
    Allowed("null is the same as absent", r"^field/.*\]\.null\."),
    Allowed(
        "a key that occurs twice has no single meaning: refused", r"^field/.* body \[\d+\]\.a key twice\.", _refuses
    ),
    Allowed(
        "a wrong parameter is 422 everywhere, also where LangGraph's server ignores it or answers 400 or 404",
        r"^field/[\w ]+\?(\w+) \[\d+\]\.",
        _refuses,
    ),
    Allowed("`check_db` may also be written as true or false", r"^field/ok\?check_db \[\d+\]\.(true|false)\.", _takes),
    Allowed("an empty list of modes is none", r"^field/thread stream\?stream_modes \[\d+\]\.\[\]\.", _takes),
    Allowed(
        "integers stay exact; LangGraph's server makes those beyond 64 bits decimal numbers",
        r"^field/.*\.huge( number)?\.body(\.metadata|\.payload\.\w+|\.__error__|\.values)?(\.\w+)*$",
        lambda theirs, ours: "1e+2" in str(theirs) or isinstance(theirs, float),
    ),
    Allowed(
        "an integer beyond 64 bits, which no checkpoint can store, is refused",
        r"^field/(run|start|state change|new cron|cron of a thread|cron change)/\S+ .*\.huge\.",
        lambda theirs, ours: _refuses(theirs, ours) or ours == "error",
    ),
    Allowed(
        "limits, offsets, lifetimes and versions have a range",
        r"^field/[\w ]+/(limit|offset|max_depth|ttl|ttl\.ttl|version|after_seconds|config\.recursion_limit) "
        r"\[\d+\]\.(zero|negative|huge)\.",
        _refuses,
    ),
    Allowed(
        "a lifetime names its minutes",
        r"^field/(new thread|thread change)/ttl \[\d+\]\.(empty object|object)\.",
        _refuses,
    ),
    Allowed(
        "an empty text is no id",
        r"^field/(new thread/thread_id|(new assistant|crons|cron count|new cron|cron of a thread)/assistant_id"
        r"|(crons|cron count)/thread_id) .*\.empty text\.",
        _refuses,
    ),
    Allowed(
        "malformed ids are refused, not answered with 400",
        r"^field/threads/ids .*\.list of text\.status$",
        _refuses,
    ),
    Allowed(
        "a step without updates is refused",
        r"^field/thread with steps/supersteps\.0\.updates .*\.empty list\.",
        _refuses,
    ),
    Allowed(
        "a state that no node can have written is 400, where LangGraph's server says 422 or fails",
        r"^field/(thread with steps/supersteps\.0\.updates\.0\.values|state change/values\.log) \[\d+\]\.",
        _refuses,
    ),
    Allowed(
        "a step may be a command; LangGraph's server fails with 500",
        r"^field/thread with steps/supersteps\.0\.updates\.0\.command .*\.object\.",
        _takes,
    ),
    Allowed(
        "a search by values finds threads; LangGraph's server fails as soon as one has none (contract, §1.15)",
        r"^field/(threads|thread count)/values(\.x)? ",
        _takes,
    ),
    Allowed(
        "answers that fit no question are refused (rulings *Second clicks*, *What an answer must look like*)",
        r"^field/(run|stateless run)/command\.resume ",
        _refuses,
    ),
    Allowed(
        "a command that asks nothing is none; LangGraph's server fails the run",
        r"^field/(run|stateless run)/command(\.update|\.goto)? .*\.body",
        lambda theirs, ours: "UnboundLocalError" in str(theirs) or "internal error" in str(theirs) or theirs is NOTHING,
    ),
    Allowed(
        "`command.update` may be the whole state, which graphs with named keys ignore",
        r"^field/(run|stateless run)/command\.update \[\d+\]\.(list of \w+|object)\.body",
    ),
    Allowed(
        "fields of runs and crons that are documented are honoured or refused, wherever they are (ruling *Fields*)",
        r"^field/((stateless )?run|(new )?cron( of a thread| change)?)/(config\.metadata|on_completion|checkpoint"
        r"|checkpoint_id|checkpoint\.checkpoint_id|interrupt_before|interrupt_after|multitask_strategy|if_not_exists|after_seconds"
        r"|on_run_completed) ",
        _refuses,
    ),
    Allowed(
        "only the documented keys of a config have a meaning, and `configurable` cannot address checkpoints",
        r"^field/(run|stateless run)/config\.(max_concurrency|run_name|unknown|configurable\.\w+) ",
    ),
    Allowed(
        "`feedback_keys` and `langsmith_tracer` do nothing here, whatever they are (ruling *Fields*)",
        r"^field/(run|stateless run)/(feedback_keys|langsmith_tracer) ",
    ),
    Allowed(
        "an unknown checkpoint is 404, a malformed one is 422",
        r"^field/state change/(checkpoint_id|checkpoint\.checkpoint_id) ",
        _refuses,
    ),
    Allowed(
        "the state of an unknown checkpoint has no address",
        r"^field/state at/checkpoint\.checkpoint_id .*\.(checkpoint|checkpoint_id)$",
    ),
    Allowed(
        "the thread of a checkpoint is the one of the path, whatever the address says",
        r"^field/(state at|state change|history)/checkpoint\.thread_id ",
        _takes,
    ),
    Allowed(
        "`before` may be the id alone, as in the SDK",
        r"^field/history/before .*\.(empty text|text|number as text)\.",
        _takes,
    ),
    Allowed("`before.configurable` must be an address", r"^field/history/before\.configurable ", _refuses),
    Allowed("the input of a cron may be any JSON, as that of a run", r"^field/.*cron.*/input ", _takes),
    Allowed(
        "what would be refused when a cron fires is refused when it is created; an `end_time` that is a text stops all"
        " crons of LangGraph's server",
        r"^field/.*cron.*/(end_time|timezone) ",
        _refuses,
    ),
    Allowed(
        "a body without fields is 422, also where LangGraph's server fails",
        r"^field/[\w ]+ body \[\d+\]\.(object|huge number)\.",
        _refuses,
    ),
    Allowed(
        "a search without a prefix finds items; LangGraph's server fails with 500",
        r"^field/items( body|/namespace_prefix) ",
        _takes,
    ),
    Allowed(
        "negative limits and offsets of the store, and wrong operators, are refused",
        r"^field/(items|namespaces)/",
        _refuses,
    ),
    Allowed("0 is false", r"^field/new item/index .*\.zero\.", _takes),
    Allowed("the number of a command is an integer", r"^field/start/id \[\d+\]\.(true|false|huge)\."),
    Allowed(
        "the config and the metadata of a command must be objects",
        r"^field/start/params\.(config|config\.configurable|metadata) .*\.body\.",
    ),
    Allowed(
        "a refused command has the status and the details of the runs API, and texts of our own",
        r"^field/(start|respond)/.*\.body\.(error|message|status|code|hint|errors|request_id)$",
    ),
    Allowed("HEAD is answered on `/ok`; pages and streams are 405", r"^field/methods of .* \[\d\]\.(status|allow)"),
    Allowed(
        "LangGraph's server fails now and then with 500 while it is asked much at once",
        r"^field/.*\.(status|body)$",
        lambda theirs, ours: theirs == 500 or (theirs is NOTHING and ours is None),
        depends_on_speed=True,
    ),
]

ALLOWED: list[Allowed] = [
    Allowed(
        "a run may have begun when it is shown",
        r"/(stateless|join) .*\.status$",
        lambda theirs, ours: {theirs, ours} == {"pending", "running"},
        depends_on_speed=True,
    ),
    Allowed(
        "the event of a failure has its text, also if the reader came late",
        r"/events .*\.data\.error$",
        _only_ours,
        depends_on_speed=True,
    ),
    Allowed(
        "names LangGraph's server, its version or plan",
        r"\.langgraph_(api_url|api_version|host|plan|version)$",
        _only_theirs,
    ),
    Allowed(
        "internal to LangGraph's server",
        r"\.(__after_seconds__|__request_start_time_ms__|langgraph_request_id|__pregel_node_finished)$",
        _only_theirs,
    ),
    Allowed(
        "the caller: `langgraph dev` has nobody, `assent dev` has the local agent (ruling *Keyless on loopback*)",
        r"\.(langgraph_auth_(permissions|user|user_id)|user_id)$",
    ),
    Allowed("the environment of our tests has LangChain", r"\.lc_versions\.langchain$", _only_ours),
    Allowed("a refusal also has a code and the request's id", r"\.body\.(code|request_id)$", _only_ours),
    Allowed(
        "who created it, and who else may see it (ruling *Owner of a thread*)", r"\.(owner|visibility)$", _only_ours
    ),
    Allowed("the documented field of the SDK, which LangGraph's server leaves out", r"\.cancel_reason$", _only_ours),
    Allowed(
        "the default strategy is `reject` (ruling *The default strategy stays `reject`*)",
        r"\.multitask_strategy$",
        lambda theirs, ours: (theirs, ours) == ("enqueue", "reject"),
    ),
    Allowed(
        "a question without a schema has no field for it: older clients refuse the unknown field (contract, §6)",
        r"\.response_schema$",
        lambda theirs, ours: theirs is None and ours is NOTHING,
    ),
    Allowed(
        "metadata of a checkpoint: LangGraph's savers leave out addresses and steps, its server's own saver keeps them",
        r"\.metadata\.(thread_id|checkpoint_(id|ns|map)|langgraph_(step|node|triggers|path|checkpoint_ns))$",
        _only_theirs,
    ),
    Allowed(
        "LangGraph's server adds what a factory was given to the metadata of its tasks",
        r"^made/.*\.metadata\.(mine|run_id)$",
        _only_theirs,
    ),
    Allowed(
        "LangGraph's server changes the stored arguments while it executes them",
        r"\.kwargs\.config\.(metadata\.(run_attempt|run_id)|configurable\.__context_provided__)$",
        _only_theirs,
    ),
    Allowed(
        "a batch names the graph, as every other run does",
        r"/stateless.*\.kwargs\.config\.metadata\.graph_id$",
        _only_ours,
    ),
    Allowed("the address of a checkpoint is complete", r"\.checkpoint\.checkpoint_ns$", _only_ours),
    Allowed(
        "a state that was updated by hand names the assistant",
        r"/copy \[7\]\.body\.metadata\.assistant_id$|general/states.*\.metadata\.assistant_id$",
        _only_ours,
    ),
    Allowed(
        "missing parts of an answer are filled in from the request (ruling *What an answer must look like*)",
        r"^ask_human/.*\.args$",
    ),
    Allowed(
        "texts of the author's exceptions reach callers in development (ruling *Exceptions of authors' code*)",
        r"^own_error/.*\.message$",
        lambda theirs, ours: (theirs, ours) == ("An internal error occurred", "mine"),
    ),
    Allowed(
        "a cron shows its last run, and the due times that it missed",
        r"\.(last_run_date|last_run_id|missed|problem)$",
        _only_ours,
    ),
    Allowed("a refusal names each field", r"\.body\.errors$", _only_ours),
    Allowed("a refusal says what to do", r"\.body\.hint$", _only_ours),
    Allowed("texts of refusals are our own", r"\.body\.detail$", lambda theirs, ours: NOTHING not in (theirs, ours)),
    Allowed(
        "an event tells a question in both fields that clients read (contract, §1.13)",
        r"/events .*\.data\.value$",
        _only_ours,
    ),
    Allowed(
        "private state stays private: values are limited to the output schema also in events (contract, P10)",
        r"^private(_asking)?/(stream (several modes|events)|events)",
    ),
    Allowed("the input of an answer is the command as LangGraph reads it", r"\.data\.input\.goto$"),
    Allowed("decimal numbers stay exact", r"^odd_values/.*\.kept\.exact$"),
    Allowed(
        "LangGraph's server reads some types of a stored state as the arguments of their constructors",
        r"^odd_values/.*\.kept\.(day|span|exact|detail|level|id|set|when)",
    ),
    Allowed(
        "a copy keeps its state, its error and its questions (ruling *When the gate looks*)",
        r"(/copy \[1\]|threads\.copy)\.body\.(config\.configurable|error|interrupts|status|values)$",
    ),
    Allowed(
        "a copy waits, too: it refuses a run that would drop its question (ruling *Answers and multitask*)",
        r"^(private_asking|own_types|refusing|pairs|stops_after|ask_\w+|functional_asking)/copy \[5\]\.",
    ),
    Allowed(
        "LangGraph's server fails to begin at a checkpoint of a copy with subgraphs (KeyError)",
        r"^\w+/copy \[5\]\.body",
        lambda theirs, ours: "KeyError" in str(theirs) or theirs is NOTHING,
    ),
    Allowed(
        "a replay ends with the error",
        r"/join \[2\]\.body$",
        lambda theirs, ours: theirs == ours[:-1] and ours[-1]["event"] == "error",
    ),
    Allowed("the result of a run that asks has its values, as from `wait`", r"/join \[1\]\.body\.", _only_ours),
    Allowed(
        "a state shows what can be read of it, without writes that a reducer refuses",
        r"^(rejected|bad_message)/(wait|copy) ",
    ),
    Allowed(
        "LangGraph's server forgets which edges of a join have arrived when it reads a stored state",
        r"^branches/.*\.(next|tasks)$",
    ),
    Allowed("pydantic makes another title of `__end__`", r"^functional\w*/assistant .*\.__end__\.title$"),
    Allowed(
        "a batch names the graph, as every other run does",
        r"/stateless \[2\]\.body\[\d\]\.metadata\.graph_id$",
        _only_ours,
    ),
    Allowed(
        "an event has its values as they were when it happened: a message gets its id later",
        r"^(ask_tool|tools)/stream .*\.id$",
        lambda theirs, ours: ours is None,
    ),
    Allowed(
        "a run that pauses at several places returns its values, too",
        r"^ask_(parallel|sent)/(wait|stateless|copy) \[\d+\]\.body\.",
        _only_ours,
    ),
    Allowed(
        "a question is told after its subgraph has ended, when it can be answered", r"^ask_inside/events \[1\]\.body$"
    ),
    Allowed(
        "the values of events are complete, as those of run streams",
        r"^(pydantic|dataclass)_state/events .*\.(level|amounts)$",
        _only_ours,
    ),
    Allowed(
        "texts of the author's exceptions reach callers in development (ruling *Exceptions of authors' code*)",
        r"^own_error/events .*\.error$",
    ),
    Allowed(
        "the config of a thread has no options of a single run",
        r"\.body\.config\.(recursion_limit|tags)$",
        _only_theirs,
    ),
    Allowed(
        "a failed thread shows what its other nodes have written", r"^failing_beside/wait \[1\]\.body\.values\.log$"
    ),
    Allowed(
        "an update of the context keeps the rest of the config", r"^general/assistants .*\.config\.tags$", _only_ours
    ),
    Allowed(
        "setting the latest version restores all of it, also context and graph (contract, §1.15)",
        r"^general/assistants \[(11|13|14|15|16|17|18|19)\]",
    ),
    Allowed(
        "a thread has all its fields",
        r"\.body\.config\.configurable$|^general/options of runs \[\d+\]\.body\.(interrupts|values)$",
    ),
    Allowed("`goto` may be a list of nodes and Sends (contract, §4.1)", r"^general/states \[[89]\]"),
    Allowed("`checkpoint_during` is honoured", r"\.kwargs\.checkpoint_during$"),
    Allowed("Assent's own version and features", r"^general/service \[1\]\.body\.(version|flags\.)"),
    Allowed(
        "values that are documented are honoured or refused (ruling *Fields*)",
        r"^refused/run with (negative delay|unknown on_disconnect) \[1\]",
    ),
    Allowed(
        "wrong answers are refused, and the question stays (rulings *Second clicks*, *What an answer must look like*)",
        r"^refused/resume (of unknown question|without question|with null) \[1\]",
    ),
    Allowed(
        "a thread that waits refuses a run that would drop its question (ruling *Answers and multitask*)",
        r"^refused/(input|nothing|another graph) instead of an answer \[1\]",
    ),
    Allowed("an unknown run is 404 on every route (contract, §1.15)", r"^refused/(join|stream) of unknown run \[1\]"),
    Allowed("a malformed id is an unknown one", r"^refused/(run on malformed thread|malformed run) \[\d\]\.status$"),
    Allowed(
        "a wrong parameter is 422 everywhere",
        r"^refused/(cancel with unknown action|runs with limit text|search with malformed ids) ",
    ),
    Allowed("a wrong filter is refused, not ignored", r"^refused/runs with (unknown status|limit 0) "),
    Allowed("a thread with invalid steps is not created", r"^refused/thread with supersteps without graph "),
    Allowed(
        "the state of an unknown checkpoint has no address",
        r"^refused/state at unknown checkpoint .*\.(checkpoint|checkpoint_id)$",
    ),
    Allowed(
        "messages of tools are sent as events, as by LangGraph's JavaScript server",
        r"^(tools|ask_tool)/events \[\d\]\.body$",
    ),
    Allowed(
        "an internal error is JSON with its id in the log (neither server draws a graph whose cache key needs a state)",
        r"^cached/assistant .*\.body$",
        lambda theirs, ours: theirs == "Internal Server Error" and ours["code"] == "internal_error",
    ),
    Allowed(
        "a refusal of the store is JSON with its text as `detail`, also where LangGraph's server sends the plain text",
        r"^refused/item (in a namespace with a dot|without a (key|namespace)) .*\.body",
        lambda theirs, ours: "detail" in ours if isinstance(ours, dict) else NOTHING in (theirs, ours),
    ),
    Allowed(
        "negative lifetimes, limits and offsets of the store, and unknown operators, are refused",
        r"^refused/(item|items|namespaces) with (negative|unknown operator)",
    ),
    Allowed(
        "a search without a prefix finds items; LangGraph's server fails with 500", r"^refused/items without a prefix "
    ),
    Allowed(
        "what would be refused when a cron fires is refused when it is created",
        r"^refused/cron with (end_time text|unknown strategy|context and configurable) ",
    ),
    Allowed("null in a cron is the same as absent", r"^refused/cron with (input|metadata) null "),
    Allowed(
        "a wrong schedule or timezone is 422, never 400 or 500",
        r"^refused/cron (without schedule|that is never due|with empty timezone) \[0\]\.(status|body)",
    ),
    Allowed("a cron that has ended is not due", r"^refused/cron that has ended .*\.next_run_date$"),
    Allowed(
        "a refused command has the status and the details of the runs API, and texts of our own",
        r"^refused/(start|answer|unsubscription) .*\.body\.(decision|message|pending|status)$",
    ),
    Allowed(
        "a wrong argument of a command has its own code",
        r"^refused/start (of unknown graph|on malformed thread) .*\.body\.error$",
        lambda theirs, ours: (theirs, ours) == ("unknown_error", "invalid_argument"),
    ),
    Allowed("the config of a command must be an object", r"^refused/start with config list .*\.body\."),
    Allowed(
        "events of an id that no thread can have are refused; LangGraph's stream ends at once, and clients try again",
        r"^refused/events of malformed thread ",
    ),
    Allowed(
        "the error of a cancelled run names no route: another run may have asked for it, or its client went away",
        r"^life/.*\.error\.message$",
        lambda theirs, ours: theirs != ours == "interrupt requested",
    ),
    Allowed(
        "a run that was rolled back is gone, with its error, also if it had not begun; joining it is 404",
        r"^life/rollback of a (running|delayed|queued) run ",
        lambda theirs, ours: NOTHING in (theirs, ours) or (theirs, ours) == (200, 404),
    ),
    Allowed(
        "the result of a run that asks has its values, as from `wait`", r"^life/.* of a waiting run \[7\]", _only_ours
    ),
    Allowed(
        "a request without a key declares its body as JSON (ruling *Bodies and origins*)", r"^life/content type \w+ "
    ),
    *_OF_FIELDS,
    Allowed("Assent's name and instructions", r"^mcp/.*\.result\.(instructions|serverInfo\.(name|version))$"),
    Allowed("an unknown cursor is refused, not ignored", r"^mcp/tools at an unknown cursor "),
    Allowed("the result of a tool, also as JSON", r"^mcp/call.*\.structuredContent$", _only_ours),
    Allowed(
        "texts of the author's exceptions reach callers in development (ruling *Exceptions of authors' code*)",
        r"^(mcp/call that fails|a2a/message to a graph that fails) .*\.text$",
        lambda theirs, ours: ours == f"{theirs}: boom: x",
    ),
    Allowed(
        "a call that pauses says how to continue; LangGraph's server deletes its thread",
        r"^mcp/call that pauses .*\.content\[0\]\.text$",
    ),
    Allowed(
        "arguments that are no object are refused before a run begins", r"^mcp/call with arguments that are a text "
    ),
    Allowed(
        "a refusal over MCP is a JSON-RPC error",
        r"^mcp/(body: |other methods).*\.body\.(error|id|jsonrpc)$|^mcp/body: method that is a number \[0\]\.status$",
    ),
    Allowed("texts of refusals are our own", r"^(mcp|a2a)/.*\.body\.error\.message$"),
    Allowed(
        "an agent's card names both versions of A2A, our address and version, and no extension that is not served",
        r"^a2a/cards \[1\]\.body\."
        r"(capabilities\.extensions|preferredTransport|protocolVersion|supportedInterfaces|url|version)",
    ),
    Allowed("push notifications have the protocol's own error", r"^a2a/cards \[8\]\.body\.error\.code$"),
    Allowed("events of version 1.0 of A2A are wrapped by their kind", r"^a2a/conversation 1\.0 \[17\]\.body\[\d\]$"),
    Allowed("version 1.0 of A2A has no `kind`", r"^a2a/.* 1\.0 .*\.kind$", _only_theirs),
    Allowed("texts of artifacts and states are our own", r"^a2a/.*\.(artifacts\[0\]\.description|status\.message)$"),
    Allowed("a task that is read has its artifacts, as when it ended", r"^a2a/.*\.result\.artifacts$", _only_ours),
    Allowed("a state without messages is sent as data, too", r"^a2a/data .*\.artifacts\[0\]\.parts$"),
    Allowed("an empty data part is an empty input", r"^a2a/empty data .*\.body\.(error|result)$"),
    Allowed("an unknown role is refused", r"^a2a/unknown role .*\.body\.(error|result)$"),
    Allowed("a failed task has its time", r"^a2a/.*\.status\.timestamp$", _only_ours),
    Allowed("whether only a person may answer a question", r"^a2a/.*\.data\.gated$", _only_ours),
]


def unexplained(found: Iterable[Difference], used: Counter[str]) -> list[Difference]:
    """The differences that no row allows; no row allows an internal error of ours. `used` counts the rows of the
    others."""
    return [difference for difference in found if not _is_explained(difference, used)]


def _is_explained(difference: Difference, used: Counter[str]) -> bool:
    if difference.path.endswith(".status") and isinstance(difference.ours, int) and difference.ours >= 500:
        return False
    row = next((row for row in ALLOWED if row.explains(difference)), None)
    if row is not None:
        used[row.reason] += 1
    return row is not None


def listed(differences: list[Difference]) -> str:
    shown = "\n".join(map(str, differences[:40]))
    return f"{len(differences)} unexplained differences\n{shown}"
