"""From the tables of LangGraph's own checkpointers: with types, pending writes and everything inside of nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from assent.threads.model.imports import thread_id_for
from tests.importing.conftest import Place, connected, finished, pending_items
from tests.servers import running

_MAKE = """
import asyncio, json, sys
from contextlib import asynccontextmanager
import graphs
from langgraph.types import Command

@asynccontextmanager
async def opened(where):
    if where.startswith("postgresql"):
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver as Saver
    else:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver as Saver
    async with Saver.from_conn_string(where) as saver:
        await saver.setup()
        yield saver

async def main():
    async with opened(sys.argv[1]) as saver:
        for thread, (name, *inputs) in enumerate(json.loads(sys.argv[2])):
            graph = getattr(graphs, name)
            graph.checkpointer = saver
            config = {"configurable": {"thread_id": f"talk-{thread}"}, "metadata": METADATA}
            for given in inputs:
                answers = isinstance(given, dict) and "resume" in given
                context = {} if graph.context_schema else None
                await graph.ainvoke(Command(**given) if answers else given, config, context=context)

asyncio.run(main())
"""
UNNAMED, NAMED = _MAKE.replace("METADATA", "{}"), _MAKE.replace("METADATA", '{"graph_id": name}')


def talks(*texts: str) -> str:
    """Threads of the graph `chat`, each with one message."""
    return json.dumps([["chat", {"messages": [{"role": "user", "content": text}]}] for text in texts])


@pytest.fixture(params=["sqlite", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a checkpointer keeps its tables."""
    if request.param == "sqlite":
        return str(tmp_path / "checkpoints.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.mark.promise("DROP-08")
async def test_every_thread_is_imported_unchanged_and_continues(place: Place, source: str) -> None:
    texts = [f"tea {number}{'?' if number < 4 else ''}" for number in range(10)]
    place.python(UNNAMED, source, talks(*texts))
    report = place.imported(source, "--graph", "chat")
    assert report["threads"] == {"taken": 10, "present": 0, "refused": 0}
    assert report["waiting"] == 4
    assert place.imported(source, "--graph", "chat")["threads"] == {"taken": 0, "present": 10, "refused": 0}
    ids = [thread_id_for(f"talk-{number}") for number in range(10)]
    with running(place.dev()) as server:
        assert len(pending_items(server.url)) == 4
        [item] = pending_items(server.url, ids[0])
        place.decided(server, "respond", item["id"], "--message", "surely")
        assert finished(server.url, ids[0])["answer"] == "tea 0? 6 human,ai surely small"
        async with connected(server.url) as ours:
            for number, text in list(enumerate(texts))[1:]:
                state: Any = await ours.threads.get_state(ids[number])
                assert state["values"]["order"] == {"item": text, "count": len(text)}
                assert [message["type"] for message in state["values"]["messages"]] == ["human", "ai"]
                assert len(await ours.threads.get_history(ids[number])) == (3 if number < 4 else 4)
            command: Any = {"resume": "yes"}
            for number in range(1, 4):
                done: Any = await ours.runs.wait(ids[number], "chat", command=command)
                assert done["answer"] == f"{texts[number]} {len(texts[number])} human,ai yes small"
            said: Any = {"messages": [{"role": "user", "content": "more"}]}
            more: Any = await ours.runs.wait(ids[9], "chat", input=said)
            assert len(more["messages"]) == 4


async def test_finished_work_inside_a_node_is_not_repeated(place: Place, source: str) -> None:
    given = {"text": "x"}
    made = [["twice", given, {"resume": "one"}], ["nested", given], ["sent", given], ["joined", given]]
    place.python(NAMED, source, json.dumps(made))
    report = place.imported(source)
    assert (report["waiting"], [note for note in report["notes"] if "again" in note["text"]]) == (4, [])
    with running(place.dev()) as server:
        async with connected(server.url) as ours:
            ends = [await _ended(ours, number, str(graph)) for number, (graph, *_) in enumerate(made)]
    assert ends[:3] == [["one", "yes"], ["yes", "after"], ["plan", "yes", "yes"]]
    assert ends[3][-2:] == ["yes", "last"]


async def _ended(ours: LangGraphClient, number: int, graph: str) -> list[str]:
    """What a thread lists after everything it asks is answered."""
    thread: Any = await ours.threads.get(thread_id_for(f"talk-{number}"))
    command: Any = {"resume": {interrupt["id"]: "yes" for task in thread["interrupts"].values() for interrupt in task}}
    done: Any = await ours.runs.wait(thread["thread_id"], graph, command=command)
    return list(done["listed"])


WAITING = [
    ["chat", {"messages": [{"role": "user", "content": "tea?"}]}],
    ["twice", {"text": "x"}, {"resume": "one"}],
    ["nested", {"text": "x"}],
    ["sent", {"text": "x"}],
    ["joined", {"text": "x"}],
    ["stopping", {"text": "x"}],
    ["function", "tea?"],
]


def test_a_thread_that_waits_in_another_graph_than_the_named_one_is_refused(place: Place, source: str) -> None:
    place.python(UNNAMED, source, json.dumps(WAITING))
    result = place.run("import", source, "--graph", "chat", "--json")
    assert (result.json["threads"], result.json["waiting"]) == ({"taken": 1, "present": 0, "refused": 6}, 1)
    refused = {problem["id"]: (problem["text"], problem["hint"]) for problem in result.json["problems"]}
    assert refused.keys() == {f"talk-{number}" for number in range(1, 7)}
    assert all("the graph here does not have" in text and "--graph" in hint for text, hint in refused.values())
    others = [place.run("import", source, "--graph", name, "--json").json["threads"] for name in ("sent", "function")]
    assert [(other_item["taken"], other_item["present"]) for other_item in others] == [(1, 1), (1, 2)]


def test_thread_that_waits_at_a_renamed_node_is_refused(place: Place, tmp_path: Path) -> None:
    source = str(tmp_path / "checkpoints.db")
    place.python(NAMED, source, json.dumps(WAITING))
    graphs = place.folder / "graphs.py"
    renamed = graphs.read_text()
    for there, here in (
        ('("ask", _asks_twice)', '("asks", _asks_twice)'),
        ('("ask", _ask)).compile()', '("asks", _ask)).compile()'),
        ('("act", _named("act"))).compile(interrupt_before=["act"])', '("acts", _named("act"))).compile()'),
        ("def function(", "def functions("),
    ):
        renamed = renamed.replace(there, here)
    graphs.write_text(renamed + "\n\nfunction = functions\n")
    result = place.run("import", source, "--json")
    assert [problem["id"] for problem in result.json["problems"]] == ["talk-1", "talk-2", "talk-5", "talk-6"]
    assert result.json["waiting"] == 3


def test_state_keys_missing_in_the_local_graph_are_reported(place: Place, tmp_path: Path) -> None:
    source = str(tmp_path / "checkpoints.db")
    place.python(UNNAMED, source, talks("tea"))
    notes = [note["text"] for note in place.imported(source, "--graph", "twice")["notes"]]
    assert "the state of the graph here has no answer, messages, order: it is omitted" in notes


def test_unlisted_type_is_refused_by_name_and_the_rest_imported(place: Place, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secretly.py").write_text(
        "from dataclasses import dataclass\n\n@dataclass\nclass Hidden:\n    text: str\n"
    )
    source = str(tmp_path / "checkpoints.db")
    hide = "import asyncio, json, sys; sys.path.insert(0, 'elsewhere'); from secretly import Hidden"
    program = UNNAMED.replace("import asyncio, json, sys", hide).replace(
        "for given in inputs:",
        "for given in ({**one, 'answer': Hidden('x') if thread == 0 else 'y'} for one in inputs):",
    )
    place.python(program, source, talks("hides?", "plain"))
    result = place.run("import", source, "--graph", "chat", "--json")
    assert result.code == 1
    assert result.json["threads"] == {"taken": 1, "present": 0, "refused": 1}
    [problem] = result.json["problems"]
    assert problem["id"] == "talk-0"
    assert "secretly:Hidden" in problem["text"]
    assert "checkpoint_types" in problem["hint"]
