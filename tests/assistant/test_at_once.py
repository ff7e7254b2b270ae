"""The calls of one message are made at the same time, and the failure of one of them does not touch the others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from langchain_core.messages import ToolMessage
from langgraph.types import Command
from mcp_types import ToolAnnotations

from assent import LocalInbox
from assent.assistant.failures import McpFailed
from assent.assistant.mcp.client import McpClient, TimeLimits
from assent.assistant.mcp.servers import McpServers
from tests.assistant.conftest import Opener
from tests.assistant.desk import CONFIG, THREAD, Aviary, Desk, every_call_is_answered_once, nodes_of
from tests.assistant.models import call, calls

PATIENCE = 30
READS = ToolAnnotations(read_only_hint=True)


class Pair:
    """Two servers with a tool each, of which each waits for the other one."""

    def __init__(self) -> None:
        self.both = asyncio.Barrier(2)
        self.done: list[str] = []

    def clients(self, *, reads: bool = True, limits: TimeLimits | None = None) -> McpServers:
        return McpServers({name: self._client(name, reads, limits) for name in ("left", "right")})

    def _client(self, name: str, reads: bool, limits: TimeLimits | None) -> McpClient:
        server = FastMCP(name)

        @server.tool(name=name, tags={"birds"}, annotations=READS if reads else None)
        async def meet() -> str:
            async with asyncio.timeout(PATIENCE):
                await self.both.wait()
            self.done.append(name)
            return f"{name} met the other"

        return McpClient(lambda: server, name=name, limits=limits)


def desk_of(folder: Path, inbox: LocalInbox, client: McpServers, *script: Any) -> Desk:
    return Desk(folder / "gate.db", replace(nodes_of(FastMCP("none"), inbox, *script), client=client))


def results(there: Desk) -> list[str]:
    return [str(message.content) for message in there.messages if isinstance(message, ToolMessage)]


@pytest.mark.parametrize("reads", [True, False])
async def test_calls_of_one_message_run_at_once(inbox: LocalInbox, folder: Path, reads: bool) -> None:
    pair = Pair()
    client = pair.clients(reads=reads)
    there = desk_of(folder, inbox, client, calls(call("left"), call("right")))
    asked = await there.say("meet")
    if not reads:
        assert len(asked["tool_calls"]) == 2
        await there.approve()
    assert results(there) == ["left met the other", "right met the other"]
    assert sorted(pair.done) == ["left", "right"]
    assert every_call_is_answered_once(there.messages)
    await client.close()


async def test_control_calls_one_after_the_other_never_meet(inbox: LocalInbox, folder: Path) -> None:
    pair = Pair()
    client = pair.clients(limits=TimeLimits(0.2))
    there = desk_of(folder, inbox, client, calls(call("left")), calls(call("right")))
    await there.say("meet")
    assert pair.done == []
    await client.close()


async def test_calls_of_one_server_run_at_once_as_far_as_it_allows(inbox: LocalInbox, folder: Path) -> None:
    both, server = asyncio.Barrier(2), FastMCP("one")

    @server.tool(tags={"birds"}, annotations=READS)
    async def meet() -> str:
        async with asyncio.timeout(PATIENCE):
            await both.wait()
        return "met"

    client = McpServers({"one": McpClient(lambda: server, name="one", parallel=2)})
    there = desk_of(folder, inbox, client, calls(call("meet"), call("meet")))
    await there.say("meet")
    assert results(there) == ["met", "met"]
    await client.close()


async def test_slow_call_reaches_its_own_time_limit_only(inbox: LocalInbox, folder: Path, aviary: Aviary) -> None:
    pair = Pair()
    servers = {
        "aviary": McpClient(lambda: aviary.server, name="aviary"),
        "left": pair.clients(limits=TimeLimits(0.2))._clients["left"],
    }
    client = McpServers(servers)
    there = desk_of(folder, inbox, client, calls(call("left"), call("watch", bird="tit")))
    await there.say("go")
    slow, quick = results(there)
    assert "did not finish left in time" in slow
    assert quick == "tit sings"
    await client.close()


async def go_on(there: Desk, given: Any) -> None:
    there.result = await there.graph.ainvoke(given, CONFIG, durability="sync")


async def forged(there: Desk) -> list[Any]:
    """An approval from someone who does not decide: the gate asks by itself."""
    [pause] = there.result["__interrupt__"]
    approvals = [{"call_id": made["call_id"], "approved": True} for made in pause.value["tool_calls"]]
    await go_on(there, Command(resume={pause.id: {"approvals": approvals}}))
    return list(there.result["__interrupt__"])


async def decide_all(there: Desk, inbox: LocalInbox) -> None:
    for item in inbox.items():
        inbox.decide(item.id, "approve", revision=item.revision, hash=item.hash, by="ana")
    await go_on(there, inbox.command(THREAD))


@pytest.mark.promise("P1")
async def test_gate_asks_about_all_calls_together(desk: Opener, aviary: Aviary, inbox: LocalInbox) -> None:
    there = desk(calls(call("feed", "a", bird="tit"), call("watch", bird="wren"), call("feed", "b", bird="owl")))
    await there.say("feed them")
    assert len(await forged(there)) == 2
    assert aviary.done == []  # no call that runs freely, which would be made again after the answer
    await decide_all(there, inbox)
    assert sorted(aviary.done) == [("feed", "owl"), ("feed", "tit"), ("watch", "wren")]
    assert results(there) == ["tit eats", "wren sings", "owl eats"]
    assert [grant.status for grant in there.grants()] == ["done", "done"]


@pytest.mark.promise("P2")
async def test_answer_to_one_of_two_questions_makes_that_call_once(
    desk: Opener, aviary: Aviary, inbox: LocalInbox
) -> None:
    there = desk(calls(call("feed", "a", bird="tit"), call("feed", "b", bird="owl")))
    await there.say("feed them")
    await forged(there)
    first, _ = inbox.items()
    inbox.decide(first.id, "approve", revision=first.revision, hash=first.hash, by="ana")
    await go_on(there, inbox.command(THREAD))
    assert len(aviary.done) == 1
    assert len(there.result["__interrupt__"]) == 1
    await decide_all(there, inbox)
    assert sorted(aviary.done) == [("feed", "owl"), ("feed", "tit")]


@pytest.mark.promise("P2")
async def test_result_is_kept_while_another_call_is_tried_again(
    desk: Opener, aviary: Aviary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read would be repeated with the node, and so would any call that the operator lets run freely."""
    original, tries = McpClient.call, 0

    async def down_once(client: McpClient, name: str, *given: Any) -> Any:
        nonlocal tries
        if name == "lift":
            tries += 1
            if tries == 1:
                raise McpFailed("down")
        return await original(client, name, *given)

    monkeypatch.setattr(McpClient, "call", down_once)
    there = desk(calls(call("watch", bird="tit"), call("lift", stone="flint")))
    await there.say("go")
    assert results(there) == ["tit sings", "flint is heavy"]
    assert sorted(aviary.done) == [("lift", "flint"), ("watch", "tit")]


async def test_call_that_fails_again_fails_the_run_and_keeps_the_other_result(
    desk: Opener, aviary: Aviary, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = McpClient.call

    async def down(client: McpClient, name: str, *given: Any) -> Any:
        if name == "lift":
            raise McpFailed("down")
        return await original(client, name, *given)

    there = desk(calls(call("watch", bird="tit"), call("lift", stone="flint")))
    with monkeypatch.context() as patch:
        patch.setattr(McpClient, "call", down)
        with pytest.raises(McpFailed):
            await there.say("go")
    await there.run_again()
    assert results(there) == ["tit sings", "flint is heavy"]
    assert sorted(aviary.done) == [("lift", "flint"), ("watch", "tit")]
