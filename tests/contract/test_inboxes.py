"""Saved views: each person's own, in their order, at most so many, and counted as the inbox counts."""

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import select

from assent.errors import AssentError, Conflict, Invalid, NotFound
from assent.identity.model.access import Kind, Principal, Scope, operator
from assent.kernel.store.tables import TENANT, items
from assent.kernel.store.transaction import Tx
from assent.review.deployments import Deployments
from assent.review.inbox import Inbox
from assent.review.inboxes import MOST, Inboxes, Wanted
from assent.review.requests import Request
from assent.review.rows import item_search
from assent.threads.model.assistants import graphs_own
from assent.threads.rows import assistants
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


async def test_inboxes_are_private_and_keep_their_order(inboxes: Inboxes) -> None:
    ana, ben, other = person("ana"), person("ben"), person("ana", "elsewhere")
    first = await inboxes.create(ana, Wanted("email", HERE))
    second = await inboxes.create(ana, Wanted(name="Mine", filter="is:pending risk:high"))
    assert [inbox["name"] for inbox in await inboxes.list(ana)] == ["email", "Mine"]
    assert await inboxes.list(ben) == await inboxes.list(other) == []
    for stranger in (ben, other):
        for refused in (inboxes.get(stranger, first["id"]), inboxes.remove(stranger, first["id"])):
            with pytest.raises(NotFound):
                await refused
    changed = await inboxes.update(ana, first["id"], Wanted(name="Email", filter="graph:email is:resolved"))
    assert (changed["name"], changed["graph_id"], changed["url"]) == ("Email", None, None)
    assert [inbox["id"] for inbox in await inboxes.list(ana)] == [first["id"], second["id"]], "changing moves nothing"
    await inboxes.remove(ana, first["id"])
    assert [inbox["name"] for inbox in await inboxes.list(ana)] == ["Mine"]


async def test_pending_items_of_an_inbox_are_counted(store: AnyStore, inboxes: Inboxes) -> None:
    inbox, ana = Inbox(store), person("ana")
    items = [(await inbox.create(ana, Request("tool", f"Refund {number}")))[0] for number in range(3)]
    await inbox.cancel(ana, items[0]["id"])
    for filter, count in (("refund", 2), ("is:resolved refund", 0), ("graph:email", 0), ("is:pending type:tool", 2)):
        view = await inboxes.create(ana, Wanted(name=filter, filter=filter))
        assert view["count"] == count, filter
    assert [inbox["count"] for inbox in await inboxes.list(ana)] == [2, 0, 0, 2]


async def test_inbox_with_an_outdated_filter_matches_nothing(store: AnyStore, inboxes: Inboxes) -> None:
    ana = person("ana")
    await inboxes.create(ana, Wanted(name="old", filter="refund"))
    await store.write(None, lambda tx: tx.sql("UPDATE inboxes SET filter = 'colour:blue'"))
    await Inbox(store).create(ana, Request("tool", "Refund"))
    assert [inbox["count"] for inbox in await inboxes.list(ana)] == [0]


async def test_inboxes_over_the_limit_are_refused(inboxes: Inboxes) -> None:
    ana = person("ana")
    await asyncio.gather(*(inboxes.create(ana, Wanted(name=f"n{number}", filter="refund")) for number in range(10)))
    for number in range(10, MOST):
        await inboxes.create(ana, Wanted(name=f"n{number}", filter="refund"))
    with pytest.raises(Conflict, match=f"you have {MOST} inboxes"):
        await inboxes.create(ana, Wanted(name="one more", filter="refund"))
    assert {inbox["name"] for inbox in await inboxes.list(ana)} == {f"n{number}" for number in range(MOST)}


async def test_repeated_request_makes_one_inbox(inboxes: Inboxes) -> None:
    ana, wanted = person("ana"), Wanted("email")
    views = [await inboxes.create(ana, wanted, key="once") for _ in range(2)]
    assert views[0] == views[1]
    assert len(await inboxes.list(ana)) == 1


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (Wanted(), "either a graph or a search"),
        (Wanted("email", filter="refund"), "either a graph or a search"),
        (Wanted("nothing"), "graph or assistant 'nothing' not found"),
        (Wanted("strange, name"), "graph or assistant|cannot be used in a filter"),
        (Wanted("email", "https://elsewhere.example"), "is not this server"),
        (Wanted("email", "ftp://x"), "not a valid server address"),
        (Wanted("email", "http://a:b@127.0.0.1:2024"), "must not contain credentials"),
        (Wanted("email", name="n" * 101), "at most 100"),
        (Wanted("email", name="a\u202eb"), "printable"),
        (Wanted(filter="refund"), "needs a name"),
        (Wanted(filter="colour:blue", name="x"), "unknown field 'colour'"),
        (Wanted(filter="a\0b", name="x"), "printable"),
        (Wanted(filter="a\u202eb", name="x"), "printable"),
        (Wanted(filter="refund", name="x", url=HERE), "leave|all items of this server"),
    ],
)
async def test_invalid_inbox_is_refused_with_a_reason(inboxes: Inboxes, wanted: Wanted, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        await inboxes.create(person("ana"), wanted)
    assert await inboxes.list(person("ana")) == []


async def test_names_that_need_quotes_are_quoted(inboxes: Inboxes) -> None:
    view = await inboxes.create(person("ana"), Wanted('with "quotes" inside'))
    assert view["filter"] == "graph:'with \"quotes\" inside'"


async def test_caller_without_the_read_scope_gets_no_inboxes(inboxes: Inboxes) -> None:
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
def test_any_spelling_of_the_own_url_is_accepted(url: str) -> None:
    assert Deployments([HERE]).is_own(url)


@pytest.mark.parametrize(
    "url", ["http://localhost:2025", "http://127.0.0.1", "https://10.0.0.1:2024", "http://localhost.evil.example:2024"]
)
def test_url_of_another_server_is_not_ours(url: str) -> None:
    assert not Deployments([HERE]).is_own(url)
    assert Deployments([HERE]).is_own(url, url), "but who came by that address knows better"


async def test_rare_search_does_not_scan_all_items(
    store: AnyStore, inboxes: Inboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its count is of the newest that wait; where an index leads to them, all are counted."""
    inbox, ana = Inbox(store), person("ana")
    for title in ("rare", "new 1", "new 2"):
        await inbox.create(ana, Request("tool", title))
    edge = select(items.c.created_at).where(items.c.tenant_id == TENANT, items.c.open.is_(True))
    monkeypatch.setattr(item_search, "_EDGE", edge.order_by(items.c.created_at.desc()).offset(1).limit(1))
    views = [await inboxes.create(ana, Wanted(name=word, filter=word)) for word in ("rare", "new", "type:tool")]
    assert [(view["count"], view["at_least"]) for view in views] == [(0, True), (2, True), (3, False)]
