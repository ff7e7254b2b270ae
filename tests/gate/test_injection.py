"""The call runs as shown: values under the names that LangGraph fills in are hidden only if LangGraph put them in.

Each attack lets a model, through the author's own tool node, give such a value. Its control runs the same graph without
the gate, where the value takes effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import StreamWriter
from pydantic import BaseModel, ConfigDict

from assent import gated
from tests.gate.desk import CONFIG, Desk, answers, asked, script
from tests.gate.test_decorator import graph_of
from tests.gate.test_parallel import plain_graph, turn

FORGED = {"configurable": {"dry_run": False}}
NAMES = ["config", "runtime", "store", "writer", "previous"]


def custom_node(made: Any, *, whole: bool = True) -> Any:
    """A tool node as tutorials write it: the model's arguments go to the tool as they are."""

    def tools(state: MessagesState) -> dict[str, Any]:
        message = state["messages"][-1]
        assert isinstance(message, AIMessage)
        results = [made.invoke({**call, "type": "tool_call"} if whole else call["args"]) for call in message.tool_calls]
        said = [
            result if isinstance(result, ToolMessage) else ToolMessage(str(result), tool_call_id="x")
            for result in results
        ]
        return {"messages": said}

    builder = StateGraph(MessagesState)
    builder.add_node("tools", tools)
    builder.add_edge(START, "tools")
    return builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())


def pay_with(name: str, ran: list[Any]) -> Callable[..., Any]:
    """A function whose second parameter has no type, and a name that LangGraph fills in."""
    scope: dict[str, Any] = {"ran": ran}
    code = f"def pay(amount, {name}=None):\n    'Pays.'\n    ran.append((amount, {name}))\n    return 'paid'"
    exec(code, scope)  # noqa: S102 - a parameter's name cannot be given otherwise
    made: Callable[..., Any] = scope["pay"]
    return made


class Hidden(BaseTool):
    """Arguments that a schema of one's own lets through, under names that LangChain takes for its own."""

    name: str = "pay"
    description: str = "Pays."
    ran: list[Any]

    def _run(self, amount: int, callbacks: Any = None, config: Any = None) -> str:
        self.ran.append((amount, callbacks or config))
        return "paid"


def tool_for(ran: list[Any]) -> BaseTool:
    @tool
    def pay(amount: int, account: Annotated[str, InjectedToolArg] = "ours") -> str:
        """Pays."""
        ran.append((amount, account))
        return "paid"

    return pay


def tool_by_state(ran: list[Any]) -> BaseTool:
    @tool
    def pay(amount: int, account: Annotated[Any, InjectedState("account")] = "ours") -> str:
        """Pays."""
        ran.append((amount, account))
        return "paid"

    return pay


def tool_by_schema(ran: list[Any]) -> BaseTool:
    class Args(BaseModel):
        amount: int
        account: Annotated[str, InjectedToolArg] = "ours"

    def pay(amount: int, account: str) -> str:
        ran.append((amount, account))
        return "paid"

    return StructuredTool.from_function(pay, description="Pays.", args_schema=Args)


class OfAClass(BaseTool):
    name: str = "pay"
    description: str = "Pays."
    ran: list[Any]

    def _run(self, amount: int, account: Annotated[str, InjectedToolArg] = "ours") -> str:
        self.ran.append((amount, account))
        return "paid"


def of_a_class(ran: list[Any]) -> BaseTool:
    made = OfAClass(ran=[])
    made.ran = ran
    return made


TOOLS = {"tool": tool_for, "by state": tool_by_state, "by schema": tool_by_schema, "of a class": of_a_class}
STOLEN = {"amount": 5, "account": "mallory"}


class TestAToolNodeOfTheAuthor:
    @pytest.mark.promise("P1", "P5")
    @pytest.mark.parametrize("kind", TOOLS)
    @pytest.mark.parametrize("whole", [True, False])
    def test_a_value_that_langgraph_did_not_put_in_is_shown_and_runs_as_shown(
        self, desk: Desk, kind: str, whole: bool
    ) -> None:
        graph = custom_node(gated(inbox=desk.inbox)(TOOLS[kind](desk.ran)), whole=whole)
        [question] = asked(graph.invoke(turn(("pay", STOLEN)), CONFIG))
        assert question["args"] == STOLEN
        assert desk.item().args == STOLEN
        desk.decide("edit", args={"amount": 5, "account": "bob"})
        desk.go_on(graph)
        assert desk.ran == [(5, "bob")]

    @pytest.mark.parametrize("kind", TOOLS)
    def test_control_without_the_gate_the_models_value_runs(self, desk: Desk, kind: str) -> None:
        custom_node(TOOLS[kind](desk.ran)).invoke(turn(("pay", STOLEN)), CONFIG)
        assert desk.ran == [(5, "mallory")]

    @pytest.mark.promise("P1")
    def test_an_approval_does_not_cover_another_value(self, desk: Desk) -> None:
        graph = custom_node(gated(inbox=desk.inbox)(tool_for(desk.ran)))
        graph.invoke(turn(("pay", {"amount": 5, "account": "bob"})), CONFIG)
        desk.decide()
        [message] = graph.get_state(CONFIG).values["messages"]
        swapped = message.model_copy(update={"tool_calls": [{**message.tool_calls[0], "args": STOLEN}]})
        graph.update_state(CONFIG, {"messages": [swapped]}, as_node="__start__")
        [question] = asked(graph.invoke(None, CONFIG))
        assert (question["args"], desk.ran) == (STOLEN, [])

    @pytest.mark.parametrize("argument", ["callbacks", "config"])
    def test_an_argument_with_a_name_of_langchains_is_shown(self, desk: Desk, argument: str) -> None:
        made = Hidden(ran=[])
        made.ran = desk.ran
        given = {"amount": 5, argument: ["mallory"]}
        graph = custom_node(gated(inbox=desk.inbox)(made))
        [question] = asked(graph.invoke(turn(("pay", given)), CONFIG))
        assert question["args"] == given
        desk.decide()
        desk.go_on(graph)
        assert desk.ran == [(5, ["mallory"])]

    def test_an_argument_that_langchain_overwrites_is_neither_shown_nor_run(self, desk: Desk) -> None:
        class Open(BaseModel):
            model_config = ConfigDict(extra="allow")
            amount: int

        def pay(amount: int, config: RunnableConfig) -> str:
            desk.ran.append((amount, "dry_run" in config["configurable"]))
            return "paid"

        made = StructuredTool.from_function(pay, description="Pays.", args_schema=Open)
        graph = custom_node(gated(inbox=desk.inbox)(made))
        [question] = asked(graph.invoke(turn(("pay", {"amount": 5, "config": FORGED})), CONFIG))
        assert question["args"] == {"amount": 5}
        desk.decide()
        desk.go_on(graph)
        assert desk.ran == [(5, False)]

    def test_a_forged_call_id_is_not_used(self, desk: Desk) -> None:
        @gated(inbox=desk.inbox)
        @tool
        def pay(amount: int, call_id: Annotated[str, InjectedToolCallId]) -> str:
            """Pays."""
            desk.ran.append((amount, call_id))
            return "paid"

        graph = custom_node(pay)
        [question] = asked(graph.invoke(turn(("pay", {"amount": 5, "call_id": "another"})), CONFIG))
        assert (question["args"], question["tool_call_id"]) == ({"amount": 5}, "call-0")
        desk.decide()
        desk.go_on(graph)
        assert desk.ran == [(5, "call-0")]

    @pytest.mark.parametrize("above", [True, False])
    def test_a_forged_runtime_does_not_name_the_call(self, desk: Desk, above: bool) -> None:
        """By the gate's own parameter a model could choose the id under which a call was approved before."""
        guard = gated(inbox=desk.inbox)
        graph = custom_node(guard(tool(desk.pay)) if above else tool(guard(desk.pay)))
        forged = {"tool_call_id": "call-9", "state": {}, "context": None, "config": FORGED}
        with pytest.raises((TypeError, ValueError), match="assent_runtime"):
            graph.invoke(turn(("pay", {"amount": 5, "assent_runtime": forged})), CONFIG)
        assert (desk.inbox.items(), desk.ran) == ([], [])

    def test_value_that_cannot_be_shown_is_refused(self, desk: Desk) -> None:
        """An author's own node puts in an object that is not LangGraph's: it has no text that could be approved."""

        @gated(inbox=desk.inbox)
        @tool
        def pay(amount: int, account: Annotated[Any, InjectedToolArg]) -> str:
            """Pays."""
            desk.ran.append((amount, account))
            return "paid"

        def node(state: MessagesState) -> dict[str, Any]:
            pay.invoke({"amount": 5, "account": object()})
            return {}

        builder = StateGraph(MessagesState)
        builder.add_node("node", node)
        builder.add_edge(START, "node")
        graph: Any = builder.compile(checkpointer=InMemorySaver())
        with pytest.raises(TypeError, match="must be JSON"):
            graph.invoke(turn(("pay", {})), CONFIG)
        assert (desk.inbox.items(), desk.ran) == ([], [])


class TestNames:
    """Functions whose parameter is called like something that LangGraph fills in, and has no type."""

    @pytest.mark.promise("P1", "P5")
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("by_position", [True, False])
    def test_value_given_to_a_function_under_an_injected_name_is_shown(
        self, desk: Desk, name: str, by_position: bool
    ) -> None:
        function = gated(inbox=desk.inbox)(pay_with(name, desk.ran))

        def node(state: Any) -> Any:
            function(5, FORGED) if by_position else function(**{"amount": 5, name: FORGED})
            return {"done": "yes"}

        graph = graph_of(node)
        [question] = asked(graph.invoke({"amount": 5}, CONFIG))
        assert question["args"] == {"amount": 5, name: FORGED}
        desk.decide()
        desk.go_on(graph)
        assert desk.ran == [(5, FORGED)]

    @pytest.mark.parametrize("name", NAMES)
    def test_value_given_to_a_tool_under_an_injected_name_is_shown(self, desk: Desk, name: str) -> None:
        """The name is in the tool's own schema, so the model may give it, also through LangGraph's ToolNode."""
        made = tool(gated(inbox=desk.inbox)(pay_with(name, desk.ran)))
        graph = custom_node(made)
        [question] = asked(graph.invoke(turn(("pay", {"amount": 5, name: "mallory"})), CONFIG))
        desk.decide()
        desk.go_on(graph)
        [(amount, given)] = desk.ran
        assert question["args"] == {"amount": amount, **({name: given} if given else {})}

    @pytest.mark.parametrize("name", NAMES)
    def test_value_given_to_a_task_under_an_injected_name_is_shown(self, desk: Desk, name: str) -> None:
        pay = task(gated(inbox=desk.inbox)(pay_with(name, desk.ran)))

        @entrypoint(checkpointer=InMemorySaver())
        def flow(amount: int) -> str:
            return str(pay(amount, **{name: FORGED}).result())

        [question] = asked(flow.invoke(5, CONFIG))
        assert question["args"] == {"amount": 5, name: FORGED}
        desk.decide()
        desk.go_on(flow)
        assert desk.ran == [(5, FORGED)]

    @pytest.mark.parametrize("name", [name for name in NAMES if name != "previous"])
    def test_arguments_injected_into_a_task_are_not_shown(self, desk: Desk, name: str) -> None:
        pay = task(gated(inbox=desk.inbox)(pay_with(name, desk.ran)))

        @entrypoint(checkpointer=InMemorySaver(), store=InMemoryStore())
        def flow(amount: int) -> str:
            return str(pay(amount).result())

        [question] = asked(flow.invoke(5, CONFIG))
        assert question["args"] == {"amount": 5}
        desk.decide()
        desk.go_on(flow)
        [(amount, given)] = desk.ran
        assert amount == 5
        assert given is not None

    def test_arguments_injected_into_a_node_are_not_shown(self, desk: Desk) -> None:
        @gated(inbox=desk.inbox)
        def node(
            state: dict[str, Any],
            config: RunnableConfig,
            *,
            runtime: Runtime,
            store: BaseStore,
            writer: StreamWriter,
        ) -> dict[str, Any]:
            desk.ran.append(("node", store is runtime.store and bool(config["configurable"])))
            return {"done": "yes"}

        graph = graph_of(node)
        [question] = asked(graph.invoke({"amount": 5}, CONFIG))
        assert question["args"] == {"state": {"amount": 5}}
        desk.decide()
        desk.go_on(graph)
        assert desk.ran == [("node", True)]

    async def test_model_values_are_handled_alike_in_coroutines(self, desk: Desk) -> None:
        @gated(inbox=desk.inbox)
        async def pay(amount: int, config: Any = None, **more: Any) -> str:
            desk.ran.append((amount, (config, more)))
            return "paid"

        async def node(state: Any) -> Any:
            await pay(5, config=FORGED, runtime="forged")
            return {"done": "yes"}

        graph = graph_of(node)
        [question] = asked(await graph.ainvoke({"amount": 5}, CONFIG))
        assert question["args"] == {"amount": 5, "config": FORGED, "more": {"runtime": "forged"}}
        desk.decide()
        await graph.ainvoke(desk.inbox.command("thread-1"), CONFIG)
        assert desk.ran == [(5, (FORGED, {"runtime": "forged"}))]

    def test_edit_of_an_injected_argument_is_refused(self, desk: Desk) -> None:
        @gated(inbox=desk.inbox)
        def pay(amount: int, config: RunnableConfig) -> str:
            desk.ran.append(("pay", amount))
            return "paid"

        def node(state: Any, config: RunnableConfig) -> Any:
            pay(5, config)
            return {"done": "yes"}

        graph = graph_of(node)
        graph.invoke({"amount": 5}, CONFIG)
        desk.decide("edit", args={"amount": 6, "config": {}})
        with pytest.raises(TypeError, match="takes no argument 'config'"):
            desk.go_on(graph)
        assert desk.ran == []


class TestLangGraphsToolNode:
    """It drops what a model gives where it fills an argument in itself, and the gate shows what is left."""

    @pytest.mark.parametrize("above", [True, False])
    def test_injected_arguments_are_not_shown(self, desk: Desk, above: bool) -> None:
        def ship(
            order: str,
            state: Annotated[dict[str, Any], InjectedState],
            messages: Annotated[list[Any], InjectedState("messages")],
            store: Annotated[BaseStore, InjectedStore()],
            call_id: Annotated[str, InjectedToolCallId],
            config: RunnableConfig,
        ) -> str:
            """Ships."""
            desk.ran.append((order, (call_id, state["messages"] == messages, store is not None)))
            return "shipped"

        guard = gated(inbox=desk.inbox)
        made: Any = guard(tool(ship)) if above else tool(guard(ship))
        builder = StateGraph(MessagesState)
        builder.add_node("tools", ToolNode([made], handle_tool_errors=False))
        builder.add_edge(START, "tools")
        graph: Any = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
        forged = dict.fromkeys(("state", "messages", "store", "call_id"), "forged")
        [question] = asked(graph.invoke(turn(("ship", {"order": "7", **forged})), CONFIG))
        assert question["args"] == {"order": "7"}
        assert "assent_runtime" not in str(made.tool_call_schema.model_json_schema())
        desk.decide()
        desk.go_on(graph)
        assert desk.ran == [("7", ("call-0", True, True))]

    @pytest.mark.parametrize("above", [True, False])
    def test_a_tool_that_asks_for_the_runtime_gets_it(self, desk: Desk, above: bool) -> None:
        def ship(order: str, runtime: ToolRuntime) -> str:
            """Ships."""
            desk.ran.append((order, runtime.tool_call_id))
            return "shipped"

        guard = gated(inbox=desk.inbox)
        graph = plain_graph(guard(tool(ship)) if above else tool(guard(ship)))
        [question] = asked(graph.invoke(turn(("ship", {"order": "7"})), CONFIG))
        assert (question["args"], question["tool_call_id"]) == ({"order": "7"}, "call-0")
        desk.decide()
        desk.go_on(graph)
        assert desk.ran == [("7", "call-0")]


class TestTheMiddleware:
    @pytest.fixture
    def delete(self, desk: Desk) -> BaseTool:
        @tool
        def delete(path: str, dry_run: Annotated[bool, InjectedToolArg] = False) -> str:
            """Deletes a file."""
            desk.ran.append((path, dry_run))
            return "deleted"

        return delete

    @pytest.mark.promise("P1", "P5")
    def test_an_argument_that_the_graph_sets_is_not_shown_as_the_model_gave_it(
        self, desk: Desk, delete: BaseTool
    ) -> None:
        """ToolNode drops it, so a person who reads `dry_run: true` would approve something else."""
        agent = desk.agent(desk.gate(), tools=[delete])
        [question] = asked(agent.invoke(script(("delete", {"path": "/", "dry_run": True})), CONFIG))
        assert question["args"] == {"path": "/"}
        assert "dry_run" not in question["description"]
        desk.decide()
        desk.go_on(agent)
        assert desk.ran == [("/", False)]

    @pytest.mark.promise("P1")
    def test_argument_set_by_the_graph_is_ignored_by_the_authors_condition(self, desk: Desk, delete: BaseTool) -> None:
        config: Any = {
            "allowed_decisions": ["approve"],
            "when": lambda request: not request.tool_call["args"].get("dry_run"),
        }
        agent = desk.agent(desk.gate({"delete": config}), tools=[delete])
        result = agent.invoke(script(("delete", {"path": "/", "dry_run": True})), CONFIG)
        assert (len(asked(result)), desk.ran) == (1, [])

    def test_edit_of_an_argument_set_by_the_graph_is_refused(self, desk: Desk, delete: BaseTool) -> None:
        agent = desk.agent(desk.gate(), tools=[delete])
        agent.invoke(script(("delete", {"path": "/"})), CONFIG)
        desk.decide("edit", args={"path": "/tmp", "dry_run": True})
        [message] = answers(desk.go_on(agent))
        assert (message.status, desk.ran) == ("error", [])
        assert "only the graph sets dry_run" in str(message.content)

    async def test_model_values_are_handled_alike_in_coroutines(self, desk: Desk, delete: BaseTool) -> None:
        agent = desk.agent(desk.gate(), tools=[delete])
        [question] = asked(await agent.ainvoke(script(("delete", {"path": "/", "dry_run": True})), CONFIG))
        desk.decide()
        await agent.ainvoke(desk.inbox.command("thread-1"), CONFIG)
        assert (question["args"], desk.ran) == ({"path": "/"}, [("/", False)])

    def test_both_gates_on_one_tool_see_the_same_arguments(self, desk: Desk, delete: BaseTool) -> None:
        agent = desk.agent(desk.gate(), tools=[gated(inbox=desk.inbox)(delete)])
        agent.invoke(script(("delete", {"path": "/", "dry_run": True})), CONFIG)
        desk.decide()
        assert not asked(desk.go_on(agent))
        assert desk.ran == [("/", False)]
