"""Saved views: each person's own, in their order, at most so many, and counted as the inbox counts."""

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import select

from assent.domain.access import Kind, Principal, Scope, operator
from assent.domain.assistants import graphs_own
from assent.errors import AssentError, Conflict, Invalid, NotFound
from assent.services.deployments import Deployments
from assent.services.inbox import Inbox
from assent.services.inboxes import MOST, Inboxes, Wanted
from assent.services.requesting import Request
from assent.store import assistants, item_search
from assent.store.tables import TENANT, items
from assent.store.transaction import Tx
from tests.contract.stores import AnyStore

HERE = "http://127.0.0.1:2024"
READ = frozenset({Scope.ITEMS_READ, Scope.ITEMS_CREATE, Scope.COMMENTS_WRITE})


def person(name: str, tenant: str = "default") -> Principal:
    return Principal(Kind.REVIEWER, name, name, tenant, READ)


def made(graph: str) -> Callable[[Tx], bool]:
    return lambda tx: assistants.insert(tx, graphs_own(graph, graph, None, tx.now()))


@pytest.fixture
async def inboxes(store: AnyStore) -> Inboxes:
    for graph in ("email", "strange, name", 'with "quotes" inside'):
        await store.write("default", made(graph))
    return Inboxes(store, Inbox(store), Deployments([HERE]))


async def test_they_are_ones_own_and_stay_in_order(inboxes: Inboxes) -> None:
    ana, ben, other = person("ana"), person("ben"), person("ana", "elsewhere")
    first = await inboxes.create(ana, Wanted("email", HERE))
    second = await inboxes.create(ana, Wanted(name="Mine", filter="is:pending risk:high"))
    assert [one["name"] for one in await inboxes.list(ana)] == ["email", "Mine"]
    assert await inboxes.list(ben) == await inboxes.list(other) == []
    for stranger in (ben, other):
        for refused in (inboxes.get(stranger, first["id"]), inboxes.remove(stranger, first["id"])):
            with pytest.raises(NotFound):
                await refused
    changed = await inboxes.update(ana, first["id"], Wanted(name="Email", filter="graph:email is:resolved"))
    assert (changed["name"], changed["graph_id"], changed["url"]) == ("Email", None, None)
    assert [one["id"] for one in await inboxes.list(ana)] == [first["id"], second["id"]], "changing moves nothing"
    await inboxes.remove(ana, first["id"])
    assert [one["name"] for one in await inboxes.list(ana)] == ["Mine"]


async def test_what_waits_is_counted(store: AnyStore, inboxes: Inboxes) -> None:
    inbox, ana = Inbox(store), person("ana")
    items = [(await inbox.create(ana, Request("tool", f"Refund {one}")))[0] for one in range(3)]
    await inbox.cancel(ana, items[0]["id"])
    for filter, count in (("refund", 2), ("is:resolved refund", 0), ("graph:email", 0), ("is:pending type:tool", 2)):
        view = await inboxes.create(ana, Wanted(name=filter, filter=filter))
        assert view["count"] == count, filter
    assert [one["count"] for one in await inboxes.list(ana)] == [2, 0, 0, 2]


async def test_a_filter_that_is_not_understood_any_more_finds_nothing(store: AnyStore, inboxes: Inboxes) -> None:
    ana = person("ana")
    await inboxes.create(ana, Wanted(name="old", filter="refund"))
    await store.write(None, lambda tx: tx.sql("UPDATE inboxes SET filter = 'colour:blue'"))
    await Inbox(store).create(ana, Request("tool", "Refund"))
    assert [one["count"] for one in await inboxes.list(ana)] == [0]


async def test_so_many_and_no_more_each_with_a_place_of_its_own(inboxes: Inboxes) -> None:
    ana = person("ana")
    await asyncio.gather(*(inboxes.create(ana, Wanted(name=f"n{one}", filter="refund")) for one in range(10)))
    for one in range(10, MOST):
        await inboxes.create(ana, Wanted(name=f"n{one}", filter="refund"))
    with pytest.raises(Conflict, match=f"you have {MOST} inboxes"):
        await inboxes.create(ana, Wanted(name="one more", filter="refund"))
    assert {one["name"] for one in await inboxes.list(ana)} == {f"n{one}" for one in range(MOST)}


async def test_a_repeated_request_makes_one(inboxes: Inboxes) -> None:
    ana, wanted = person("ana"), Wanted("email")
    views = [await inboxes.create(ana, wanted, key="once") for _ in range(2)]
    assert views[0] == views[1]
    assert len(await inboxes.list(ana)) == 1


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (Wanted(), "either a graph or a search"),
        (Wanted("email", filter="refund"), "either a graph or a search"),
        (Wanted("nothing"), "no graph or assistant 'nothing'"),
        (Wanted("strange, name"), "no graph or assistant|cannot be looked for"),
        (Wanted("email", "https://elsewhere.example"), "another server"),
        (Wanted("email", "ftp://x"), "not an address"),
        (Wanted("email", "http://a:b@127.0.0.1:2024"), "no password"),
        (Wanted("email", name="n" * 101), "at most 100"),
        (Wanted("email", name="a\u202eb"), "printable"),
        (Wanted(filter="refund"), "needs a name"),
        (Wanted(filter="colour:blue", name="x"), "no field 'colour'"),
        (Wanted(filter="a\0b", name="x"), "printable"),
        (Wanted(filter="a\u202eb", name="x"), "printable"),
        (Wanted(filter="refund", name="x", url=HERE), "leave|everything on this server"),
    ],
)
async def test_what_cannot_be_is_refused_with_a_reason(inboxes: Inboxes, wanted: Wanted, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        await inboxes.create(person("ana"), wanted)
    assert await inboxes.list(person("ana")) == []


async def test_names_that_need_quotes_are_quoted(inboxes: Inboxes) -> None:
    view = await inboxes.create(person("ana"), Wanted('with "quotes" inside'))
    assert view["filter"] == "graph:'with \"quotes\" inside'"


async def test_without_the_right_to_read_there_are_none(inboxes: Inboxes) -> None:
    nobody = Principal(Kind.AGENT, "a", "a", "default", frozenset())
    for refused in (inboxes.list(nobody), inboxes.create(nobody, Wanted("email"))):
        with pytest.raises(AssentError, match="items:read"):
            await refused
    assert await inboxes.list(operator()) == []


@pytest.mark.parametrize(
    "url",
    ["http://localhost:2024", "HTTP://LOCALHOST:2024/", "http://127.0.0.1:2024/inbox", "http://[::1]:2024", "http://127.1:2024",
     "http://0.0.0.0:2024", "http://localhost.:2024", "http://[::ffff:127.0.0.1]:2024", "http://assent.localhost:2024"],
)  # fmt: skip
def test_this_machine_is_known_however_it_is_spelled(url: str) -> None:
    assert Deployments([HERE]).require_own(url)


@pytest.mark.parametrize(
    "url", ["http://localhost:2025", "http://127.0.0.1", "https://10.0.0.1:2024", "http://localhost.evil.example:2024"]
)
def test_and_others_are_not_taken_for_it(url: str) -> None:
    with pytest.raises(Invalid, match="another server"):
        Deployments([HERE]).require_own(url)
    assert Deployments([HERE]).require_own(url, url), "but who came by that address knows better"


async def test_a_rare_search_does_not_walk_past_everything(
    store: AnyStore, inboxes: Inboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its count is of the newest that wait; where an index leads to them, all are counted."""
    inbox, ana = Inbox(store), person("ana")
    for title in ("rare", "new 1", "new 2"):
        await inbox.create(ana, Request("tool", title))
    edge = select(items.c.created_at).where(items.c.tenant_id == TENANT, items.c.open.is_(True))
    monkeypatch.setattr(item_search, "_EDGE", edge.order_by(items.c.created_at.desc()).offset(1).limit(1))
    views = [await inboxes.create(ana, Wanted(name=one, filter=one)) for one in ("rare", "new", "type:tool")]
    assert [(one["count"], one["at_least"]) for one in views] == [(0, True), (2, True), (3, False)]
