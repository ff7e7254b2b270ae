"""Loading: every way to make a graph, one bad graph among good ones, auth that fails closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from assent.errors import LoadError
from assent.runs.project.graphs import Access, GraphSpec
from assent.runs.project.loader import load_app, load_auth, load_graphs
from assent.runs.project.manifest import Manifest, read_manifest
from tests.unit.engine.conftest import EXAMPLES, Project

BUILDER = """
    from typing import TypedDict
    from langgraph.graph import START, StateGraph

    class State(TypedDict, total=False):
        text: str
        reply: str

    def builder(greeting="hello"):
        made = StateGraph(State)
        made.add_node("greet", lambda state: {"reply": f"{greeting}, {state['text']}"})
        made.add_edge(START, "greet")
        return made
"""


async def reply(spec: GraphSpec, config: dict[str, Any] | None = None, access: Access = "threads.create_run") -> str:
    """What the graph answers, on a saver and a store that were put in."""
    saver, store = InMemorySaver(), InMemoryStore()
    thread: Any = {"configurable": {"thread_id": "1"}}
    async with spec.open(config, checkpointer=saver, store=store, access=access) as graph:
        answer = await graph.ainvoke({"text": "you"}, thread)
        assert graph.store is store
        assert saver.get_tuple(thread) is not None
    return str(answer["reply"])


def load_one(project: Project, code: str, attribute: str = "graph") -> GraphSpec:
    manifest = project({"agent.py": BUILDER + code}, graphs={"agent": f"./agent.py:{attribute}"})
    loaded = load_graphs(manifest)
    if loaded.failures:
        raise loaded.failures["agent"]
    return loaded.graphs["agent"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("graph = builder().compile()", "hello, you"),
        ("graph = builder()", "hello, you"),
        ("graph = builder().compile().with_config(tags=['a'])", "hello, you"),
        ("def graph(): return builder()", "hello, you"),
        ("def graph(): return builder().compile()", "hello, you"),
        ("async def graph(): return builder()", "hello, you"),
        ("def graph(config): return builder(config['configurable']['name'])", "Ada, you"),
        ("def graph(config=None): return builder(config['configurable']['name'])", "Ada, you"),
        ("def graph(options, loud=False): return builder(options['configurable']['name'])", "Ada, you"),
        ("async def graph(config): return builder(config['configurable']['name'])", "Ada, you"),
        ("def graph(runtime: 'ServerRuntime'): return builder(runtime.access_context)", "threads.create_run, you"),
        ("def graph(runtime: 'Unknown[ServerRuntime]', c=1): return builder('config')", "config, you"),
        ("class Maker:\n        def __call__(self): return builder()\n\n    graph = Maker()", "hello, you"),
    ],
)
async def test_every_form_of_a_graph_is_loaded(project: Project, code: str, expected: str) -> None:
    spec = load_one(project, f"\n    {code}\n")
    assert await reply(spec, {"configurable": {"name": "Ada"}}) == expected


async def test_factories_may_take_both_arguments_in_any_order(project: Project) -> None:
    spec = load_one(
        project,
        """
    from langchain_core.runnables import RunnableConfig
    from langgraph_sdk.runtime import ServerRuntime

    def graph(runtime: ServerRuntime[dict], config: RunnableConfig):
        who = runtime.execution_runtime.context["name"] if runtime.execution_runtime else "nobody"
        return builder(f"{config['configurable']['greeting']} from {who}")
        """,
    )
    config = {"configurable": {"greeting": "hi"}}
    async with spec.open(config, checkpointer=None, store=InMemoryStore(), context={"name": "Ada"}) as graph:
        assert (await graph.ainvoke({"text": "you"}))["reply"] == "hi from Ada, you"
    assert await reply(spec, config, access="threads.read") == "hi from nobody, you"


@pytest.mark.parametrize("kind", ["contextmanager", "asynccontextmanager"])
async def test_context_managers_are_entered_and_left(project: Project, kind: str) -> None:
    spec = load_one(
        project,
        f"""
    from contextlib import asynccontextmanager, contextmanager
    trace = []

    @{kind}
    {"async " if kind.startswith("async") else ""}def graph(config):
        trace.append("in")
        try:
            yield builder()
        finally:
            trace.append("out")
        """,
    )
    trace = sys.modules["agent"].trace
    async with spec.open({}, checkpointer=None, store=None):
        assert trace == ["in"]
    assert trace == ["in", "out"]
    with pytest.raises(RuntimeError, match="stop"):
        async with spec.open({}, checkpointer=None, store=None):
            raise RuntimeError("stop")
    assert trace == ["in", "out"] * 2


async def test_factory_gets_its_own_copy_of_the_config(project: Project) -> None:
    spec = load_one(
        project, "\n    def graph(config):\n        config['configurable'].clear()\n        return builder()\n"
    )
    config = {"configurable": {"thread_id": "1"}}
    async with spec.open(config, checkpointer=None, store=None):
        assert config == {"configurable": {"thread_id": "1"}}


async def test_factory_that_returns_no_graph_fails(project: Project) -> None:
    spec = load_one(project, "\n    def graph(): return 'soon'\n")
    with pytest.raises(LoadError, match="agent: a str is not a graph"):
        async with spec.open({}, checkpointer=None, store=None):
            pass


async def test_a_static_graph_is_prepared_once_and_never_changed(project: Project) -> None:
    spec = load_one(
        project,
        """
    from langgraph.checkpoint.memory import InMemorySaver
    graph = builder().compile(checkpointer=InMemorySaver())
        """,
    )
    authors = sys.modules["agent"].graph
    own, saver = authors.checkpointer, InMemorySaver()
    async with (
        spec.open({}, checkpointer=saver, store=None) as first,
        spec.open({}, checkpointer=saver, store=None) as again,
        spec.open({}, checkpointer=InMemorySaver(), store=None) as other,
    ):
        assert first.checkpointer is again.checkpointer
        assert first.checkpointer is not other.checkpointer
    assert (authors.checkpointer, authors.name) == (own, "LangGraph")
    assert (first.name, spec.title) == ("agent", "agent")


async def test_a_graphs_own_name_is_kept(project: Project) -> None:
    spec = load_one(project, "\n    graph = builder().compile(name='Greeter')\n")
    async with spec.open({}, checkpointer=None, store=None) as graph:
        assert (spec.name, spec.title, graph.name) == ("agent", "Greeter", "Greeter")


@pytest.mark.parametrize(
    ("code", "message", "hint"),
    [
        ("graph = 'text'", "a str is not a graph", "name a StateGraph"),
        ("def graph(a, b): ...", r"graph\(a, b\) takes too many arguments", "a RunnableConfig and a ServerRuntime"),
        ("graph = builder(); graph.add_edge('greet', 'nowhere')", "ValueError: .*nowhere", None),
        ("other = builder()", "there is no 'graph'", "other"),
        ("import no_such_package", "ModuleNotFoundError", "install no_such_package"),
        ("raise SystemExit(3)", "SystemExit: 3", None),
        ("graph = = 1", "SyntaxError", None),
        (
            "import contextlib\n    graph = contextlib.asynccontextmanager(builder)()",
            "_AsyncGeneratorContextManager is not a graph",
            "name the function itself",
        ),
    ],
)
def test_broken_graph_reports_its_error(project: Project, code: str, message: str, hint: str | None) -> None:
    with pytest.raises(LoadError, match=message) as caught:
        load_one(project, f"\n    {code}\n")
    assert (hint or "") in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("./gone.py:graph", "there is no such file"),
        ("./agent.ts:graph", "only Python graphs can be loaded"),
        ("no_such_package.graphs:graph", "No module named 'no_such_package'"),
    ],
)
def test_missing_source_is_reported(project: Project, source: str, message: str) -> None:
    loaded = load_graphs(project({"agent.ts": ""}, graphs={"agent": source}))
    assert message in str(loaded.failures["agent"])


def test_broken_graph_leaves_the_others_loaded(forgetful: None, caplog: pytest.LogCaptureFixture) -> None:
    loaded = load_graphs(read_manifest(EXAMPLES / "broken" / "langgraph.json"))
    assert set(loaded.graphs) == {"good"}
    assert set(loaded.failures) == {"broken", "nowhere"}
    error = loaded.failures["broken"]
    assert str(error) == "./unloadable.py:graph: RuntimeError: MODEL_KEY is not set"
    frames = [line for line in error.details.splitlines() if line.lstrip().startswith("File ")]
    assert len(frames) == 2
    assert all("unloadable.py" in frame for frame in frames)
    assert "load graph 'broken' failed" in caplog.text


def test_environment_of_the_operator_wins_over_the_env_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_SHELL", "shell")
    env = {"FROM_SHELL": "file", "FROM_FILE": "file", "LANGGRAPH_STRICT_MSGPACK": "false"}
    code = {"agent.py": "import os\nraise ValueError(os.environ['FROM_SHELL'] + ' ' + os.environ['FROM_FILE'])"}
    loaded = load_graphs(project(code, graphs={"agent": "./agent.py:graph"}, env=env))
    assert "ValueError: shell file" in str(loaded.failures["agent"])
    assert os.environ.get("LANGGRAPH_STRICT_MSGPACK") != "false"


AUTH = """
from langgraph_sdk import Auth
auth = Auth()

@auth.authenticate
async def authenticate({parameters}):
    return "someone"
"""


def test_auth_object_of_the_manifest_is_loaded(project: Project) -> None:
    manifest = project({"auth.py": AUTH.format(parameters="authorization, *, more=1")}, auth={"path": "./auth.py:auth"})
    assert type(load_auth(manifest)).__name__ == "Auth"
    assert load_auth(project()) is None


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise OSError('no keys')", "OSError: no keys"),
        ("auth = 1", "is a int"),
        ("", "there is no 'auth'"),
        ("from langgraph_sdk import Auth\nauth = Auth()", "has no @auth.authenticate handler"),
        (AUTH.format(parameters="request, database"), "asks for 'database', which no request has"),
    ],
)
def test_auth_that_does_not_load_stops_the_start(project: Project, code: str, message: str) -> None:
    with pytest.raises(LoadError, match=rf"\./guard\.py:auth.*{message}"):
        load_auth(project({"guard.py": code}, auth={"path": "./guard.py:auth"}))


def test_the_app_with_custom_routes_is_loaded(project: Project) -> None:
    code = """
        from starlette.applications import Starlette

        app = Starlette()
        no = 1

        async def asgi(scope, receive, send): ...
    """
    assert callable(load_app(project({"app.py": code}, http={"app": "./app.py:app"})))
    assert callable(load_app(project(http={"app": "./app.py:asgi"})))
    assert load_app(project()) is None
    with pytest.raises(LoadError, match="is not an ASGI app"):
        load_app(project(http={"app": "./app.py:no"}))


def test_unknown_extra_type_fails_at_the_start(examples: Manifest) -> None:
    from assent.errors import ConfigError

    with pytest.raises(ConfigError, match="checkpoint_types: class 'typed:Gone' not found"):
        load_graphs(examples, checkpoint_types=["typed:Gone"])


def run_python(code: str, **environment: str) -> Any:
    """What a fresh process prints, as JSON."""
    clean = {name: value for name, value in os.environ.items() if name != "LANGGRAPH_STRICT_MSGPACK"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**clean, **environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_importing_the_loader_imports_nothing_heavy() -> None:
    code = (
        "import json, sys, assent.runs.project.loader, assent.runs.project.manifest;"
        "import assent.runs.project.schemas, assent.runs.checkpoints.serde;"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    heavy = {"langgraph", "langchain", "langchain_core", "langgraph_sdk", "langsmith", "pydantic", "numpy", "dotenv"}
    assert heavy.isdisjoint(run_python(code))


def test_a_project_without_graphs_loads_no_langgraph(project: Project, tmp_path: Any) -> None:
    project()
    code = (
        "import json, sys, pathlib; from assent.runs.project.loader import load_graphs, load_auth, load_app;"
        "from assent.runs.project.manifest import read_manifest;"
        f"m = read_manifest(pathlib.Path({str(tmp_path / 'langgraph.json')!r}));"
        "load_graphs(m), load_auth(m), load_app(m);"
        "print(json.dumps('langgraph' in sys.modules))"
    )
    assert run_python(code) is False
