"""The private parts of LangGraph and FastMCP that Assent uses, name by name: an upgrade that moves one fails here, and
the message says which adapter to change."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "assent"
CONSTANTS = "langgraph._internal._constants"
GATE, RUNS, CHECKPOINTS = "gate/upstream.py", "runs/upstream.py", "runs/checkpoints/upstream.py"
IDENTITY, ASSISTANT = "identity/upstream.py", "assistant/mcp/upstream.py"

NAMES = {
    GATE: [
        f"{CONSTANTS}:CONF",
        f"{CONSTANTS}:CONFIG_KEY_CHECKPOINT_NS",
        f"{CONSTANTS}:CONFIG_KEY_CHECKPOINTER",
        f"{CONSTANTS}:CONFIG_KEY_NODE_ERROR",
        f"{CONSTANTS}:CONFIG_KEY_RUNTIME",
        f"{CONSTANTS}:CONFIG_KEY_SCRATCHPAD",
        f"{CONSTANTS}:CONFIG_KEY_SEND",
        f"{CONSTANTS}:CONFIG_KEY_THREAD_ID",
        f"{CONSTANTS}:NS_SEP",
        f"{CONSTANTS}:RESUME",
        "langgraph.prebuilt.tool_node:_get_all_injected_args",
        "langgraph.types:_interrupt_id",
    ],
    RUNS: ["langgraph.checkpoint.serde._msgpack:STRICT_MSGPACK_ENABLED"],
    CHECKPOINTS: [
        "langgraph._internal._constants:INPUT",
        "langgraph._internal._constants:NULL_TASK_ID",
        "langgraph.checkpoint.serde._msgpack:SAFE_MSGPACK_METHODS",
        "langgraph.checkpoint.serde._msgpack:SAFE_MSGPACK_TYPES",
        "langgraph.pregel._algo:PregelTaskWrites",
        "langgraph.pregel._algo:apply_writes",
        "langgraph.pregel._checkpoint:channels_from_checkpoint",
        "langgraph.checkpoint.serde.types:_DeltaSnapshot",
    ],
    ASSISTANT: ["fastmcp:Client._await_with_session_monitoring"],
}
PARAMETERS = {
    (GATE, "langgraph.types:_interrupt_id"): ["ns", "answered"],
    (GATE, "langgraph.prebuilt.tool_node:_get_all_injected_args"): ["tool"],
    (ASSISTANT, "fastmcp:Client._await_with_session_monitoring"): ["self", "coro"],
}
VALUES = {
    "STRICT_RESUME": f"{CONSTANTS}:CONFIG_KEY_STRICT_RESUME",
    "RESUMING": f"{CONSTANTS}:CONFIG_KEY_RESUMING",
    "RESUME_MAP": f"{CONSTANTS}:CONFIG_KEY_RESUME_MAP",
    "PUSH": f"{CONSTANTS}:PUSH",
    "TASKS": f"{CONSTANTS}:TASKS",
    "INTERRUPT": f"{CONSTANTS}:INTERRUPT",
}
ROWS = {"_NO_TASK": f"{CONSTANTS}:NULL_TASK_ID", "_RESUMED": f"{CONSTANTS}:RESUME", "_ASKED": f"{CONSTANTS}:INTERRUPT"}
"""Texts of LangGraph in the rows of checkpoints."""
_PRIVATE = re.compile(r"(^|\.)_[a-z]")
_UPSTREAM = ("langgraph", "langgraph_sdk", "langchain", "langchain_core", "fastmcp", "mcp", "mcp_types")
_PRIVATE_TEXT = re.compile(r"__pregel_|langgraph\..*\._")
_PRIVATE_ATTRIBUTES = ("_await_with_session_monitoring", "_authenticate_handler", "_global_handlers")


def look_up(adapter: str, place: str) -> Any:
    module, _, path = place.partition(":")
    upstream = "FastMCP" if module.startswith("fastmcp") else "LangGraph"
    moved = f"{upstream} moved {place}: adapt {adapter}"
    try:
        imported_module: Any = importlib.import_module(module)
    except ImportError:
        pytest.fail(moved)
    for name in path.split("."):
        assert hasattr(imported_module, name), moved
        imported_module = getattr(imported_module, name)
    return imported_module


@pytest.mark.parametrize(("adapter", "place"), [(adapter, place) for adapter, all in NAMES.items() for place in all])
def test_private_name_is_where_its_adapter_looks(adapter: str, place: str) -> None:
    look_up(adapter, place)


@pytest.mark.parametrize("place", ["langgraph._gone:X", "langgraph.types:_gone", "fastmcp:Client._gone"])
def test_control_a_name_that_moved_is_reported_with_its_adapter(place: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception), match=f"moved {place}: adapt gate/upstream.py"):
        look_up(GATE, place)


@pytest.mark.parametrize(("adapter", "place"), PARAMETERS)
def test_private_function_takes_the_parameters_that_it_is_given(adapter: str, place: str) -> None:
    parameters = list(inspect.signature(look_up(adapter, place)).parameters)
    assert parameters == PARAMETERS[adapter, place], f"LangGraph or FastMCP changed {place}: adapt {adapter}"


@pytest.mark.parametrize("name", VALUES)
def test_name_that_is_written_as_text_is_the_one_of_langgraph(name: str) -> None:
    ours = getattr(importlib.import_module("assent.runs.upstream"), name)
    assert ours == look_up(RUNS, VALUES[name]), f"LangGraph changed {VALUES[name]}: adapt {RUNS}"


@pytest.mark.parametrize("name", ROWS)
def test_text_in_the_rows_of_checkpoints_is_the_one_of_langgraph(name: str) -> None:
    ours = getattr(importlib.import_module("assent.threads.rows.state.checkpoints"), name)
    assert ours == look_up(CHECKPOINTS, ROWS[name]), f"LangGraph changed {ROWS[name]}: adapt the rows of checkpoints"


def test_scratchpad_has_what_the_gate_uses() -> None:
    scratchpad = look_up(GATE, "langgraph._internal._scratchpad:PregelScratchpad")
    missing = {"resume", "get_null_resume", "interrupt_counter"} - inspect.get_annotations(scratchpad).keys()
    assert not missing, f"LangGraph moved {missing} of the scratchpad: adapt {GATE}"


def test_injected_arguments_have_what_the_gate_uses() -> None:
    from langchain_core.tools import tool
    from langgraph.prebuilt import InjectedState, ToolRuntime

    @tool
    def send(to: str, state: Annotated[dict[str, Any], InjectedState], runtime: ToolRuntime) -> str:
        """Sends."""
        return to

    known = look_up(GATE, "langgraph.prebuilt.tool_node:_get_all_injected_args")(send)
    for name in ("all_injected_keys", "state", "store", "runtime"):
        assert hasattr(known, name), f"LangGraph moved {name} of the injected arguments: adapt {GATE}"
    upstream = importlib.import_module("assent.gate.upstream")
    assert upstream.injected_arguments(send) == {"state", "runtime"}


def test_channels_beside_the_state_begin_as_expected() -> None:
    from langgraph.graph import START, StateGraph

    class State(TypedDict):
        text: str

    builder = StateGraph(State)
    for name in "abc":
        builder.add_node(name, lambda state: state)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge(["a", "b"], "c")
    prefixes = importlib.import_module("assent.runs.upstream").CHANNELS
    own = {name for name in builder.compile().channels if name != "text"}
    assert {prefix for prefix in prefixes for name in own if name.startswith(prefix)} == set(prefixes)
    strange = {name for name in own if not name.startswith(prefixes)}
    assert not strange, f"LangGraph names channels {strange}: adapt {RUNS}"


def test_auth_object_holds_its_handlers_as_expected() -> None:
    from langgraph_sdk import Auth

    auth = Auth()
    for name in ("_authenticate_handler", "_handlers", "_global_handlers"):
        assert hasattr(auth, name), f"the LangGraph SDK moved Auth.{name}: adapt {IDENTITY}"

    @auth.authenticate
    async def authenticate() -> str:
        return "ana"

    @auth.on.threads.create
    async def create(ctx: Any, value: Any) -> None:
        return

    @auth.on
    async def everything(ctx: Any, value: Any) -> None:
        return

    handlers = importlib.import_module("assent.identity.upstream").handlers_of(auth)
    assert handlers.authenticate is authenticate
    assert handlers.on == {("threads", "create"): [create]}
    assert handlers.on_everything == [everything]


def test_session_of_a_client_takes_what_a_round_of_a_call_needs() -> None:
    parameters = inspect.signature(look_up(ASSISTANT, "mcp:ClientSession.call_tool")).parameters
    needed = {"input_responses", "request_state", "allow_input_required"}
    assert needed <= parameters.keys(), f"MCP changed ClientSession.call_tool: adapt {ASSISTANT}"


def private_uses(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        names = list[str]()
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _UPSTREAM:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.partition(".")[0] in _UPSTREAM]
        elif isinstance(node, ast.Attribute) and node.attr in _PRIVATE_ATTRIBUTES:
            names = [f"{ast.unparse(node.value)}.{node.attr}"]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _PRIVATE_TEXT.match(node.value):
            yield node.value
        yield from (name for name in names if _PRIVATE.search(name))


def test_private_parts_are_used_in_adapters_only() -> None:
    files = [file for file in SOURCE.rglob("*.py") if file.name != "upstream.py"]
    uses_by_file = {str(file.relative_to(SOURCE)): list(private_uses(file.read_text("utf-8"))) for file in files}
    assert {file: uses for file, uses in uses_by_file.items() if uses} == {}


@pytest.mark.parametrize("adapter", [*NAMES, IDENTITY])
def test_control_private_parts_of_the_adapters_are_found(adapter: str) -> None:
    assert list(private_uses((SOURCE / adapter).read_text("utf-8")))
