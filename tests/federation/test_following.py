"""An inbox over other deployments: questions appear, are decided, and their runs go on."""

from __future__ import annotations

from typing import Any

import pytest

from assent.identity.model.access import DEFAULT_TENANT
from assent.settings import Mode
from assent.threads.rows.remote import remote_threads
from tests.api.house import Builder
from tests.federation.conftest import KINDS
from tests.federation.desk import Desk, answered, ask
from tests.federation.peer import THREAD, asking_at_once
from tests.waiting import until

Json = dict[str, Any]

PLACES = [*((kind, "sqlite") for kind in KINDS), ("assent", "postgres")]
everywhere = pytest.mark.parametrize(("server_url", "build_on_both"), PLACES, indirect=True)
"""Each kind of server, and the other database of the inbox."""


@everywhere
async def test_question_of_another_server_is_decided_here(build_on_both: Builder, server_url: str) -> None:
    desk = await Desk.at(await build_on_both(Mode.DEV))
    before = await ask(server_url, "earlier?")
    added = await desk.add(server_url, name="far")
    assert added["problem"] is None, added
    item = await desk.item_of(added, before)
    assert item["summary"] == "earlier?"
    assert item["source"]["remote"]["name"] == "far"
    await desk.decide(item, verb="respond", message="yes")
    assert await answered(server_url, before) == ["yes"]
    later = await ask(server_url, "first?", "second?")
    for question, answer in (("first?", "one"), ("second?", "two")):

        async def shown(question: str = question) -> bool:
            return any(item["summary"] == question for item in await desk.items())

        await until(shown, f"{question} does not appear")
        await desk.decide(await desk.item_of(added, later), verb="respond", message=answer)
    assert await answered(server_url, later) == ["one", "two"]


@everywhere
async def test_answer_given_elsewhere_closes_the_item(build_on_both: Builder, server_url: str) -> None:
    from langgraph_sdk import get_client

    desk = await Desk.at(await build_on_both(Mode.DEV))
    thread_id = await ask(server_url, "who answers?")
    item = await desk.item_of(await desk.add(server_url), thread_id)
    async with get_client(url=server_url, api_key=None) as client:
        await client.runs.wait(thread_id, "asking", command={"resume": "somebody else"})

    async def closed() -> bool:
        return bool((await desk.item(item["id"]))["status"] == "CANCELLED")

    await until(closed, "the item stays open")
    assert (await desk.item(item["id"]))["resolution"] == "answered_elsewhere"


async def test_thread_that_cannot_be_read_holds_up_no_other(build: Builder) -> None:
    """The other one is in a list that is read later."""
    desk = await Desk.at(await build(Mode.DEV))
    async with asking_at_once("shall I") as peer:
        peer.has_broken, peer.waits_as = True, "error"
        added = await desk.add(peer.url)
        await desk.item_of(added, THREAD)

        async def told() -> bool:
            return bool((await desk.deployment(added["id"]))["problem"] == "failing")

        await until(told, "nobody is told about the thread")


async def test_unknown_graph_stays_a_problem_while_others_are_followed(build: Builder) -> None:
    desk = await Desk.at(await build(Mode.DEV))
    async with asking_at_once("shall I") as peer:
        added = await desk.add(peer.url, graphs=["missing"])
        await desk.item_of(added, THREAD)

        async def read() -> Json | None:
            shown = await desk.deployment(added["id"])
            return shown if shown["synced_at"] else None

        shown = await until(read, "it is not noted that the questions were read")
        assert (added["problem"], shown["problem"]) == ("unknown_graph", "unknown_graph")
        assert shown["failing_since"] == added["failing_since"]
        peer.has_graph = True

        async def is_well() -> bool:
            return (await desk.deployment(added["id"]))["problem"] is None

        await until(is_well, "the problem stays although the graph exists")


@pytest.mark.promise("P12")
async def test_list_without_end_is_a_problem_and_fills_no_table(
    build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assent.federation.following._MOST_LISTED", 300)
    house = await build(Mode.DEV)
    desk = await Desk.at(house)
    async with asking_at_once("shall I") as peer:
        peer.lists_without_end = True
        added = await desk.add(peer.url)

        async def told() -> bool:
            return bool((await desk.deployment(added["id"]))["problem"] == "failing")

        await until(told, "nobody is told about the list")
    stored = await house.services.store.read(DEFAULT_TENANT, remote_threads.of_deployment, added["id"])
    assert list(stored) == []
