"""Full-text search over items on both databases: what is found, what never is, and in which order."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assent.identity.model.access import Kind, Role
from assent.identity.model.users import User
from assent.identity.rows import users
from assent.kernel.ids import new_id
from assent.kernel.store.transaction import Tx
from assent.review import requests
from assent.review.decisions import decide
from assent.review.inbox import Inbox
from assent.review.model.items import Item
from assent.review.model.questions import Verb
from assent.review.model.search.filters import parse
from assent.review.requests import Request
from assent.review.rows import item_removal, item_search, items
from assent.review.search import item_index
from tests.contract.asks import agent, confirmation, person, proposal, wait_for
from tests.contract.stores import AnyStore

ACME, OTHER = "acme", "other"
ANA = person("ana", ACME)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
REFUND = confirmation("c", "refund_payment", {"order": "4711", "amount": 249.9, "currency": "EUR", "note": "Café Noir"})
MAIL = confirmation(
    "m", "send_email", {"to": "kim@example.org", "subject": "Hello", "body": "Your refund is on its way"}
)


async def ask(store: AnyStore, question: Any, thread: str = "t", tenant: str = ACME) -> Item:
    [item] = await store.write(tenant, wait_for, thread, i=question)
    return item


async def found(store: AnyStore, filter: str, tenant: str = ACME, **order: Any) -> list[str]:
    wanted = {"sort": "created_at", **order}
    page = await store.read(tenant, item_search.page, parse(filter), "nobody", None, **wanted, limit=50, cursor=None)
    return [item.id for item in page.items]


@pytest.mark.parametrize(
    "filter",
    [
        "refund",
        "refun",
        "REFUND_payment",
        "4711",
        "47",
        "refund 4711",
        '"refund payment"',
        "cafe noir",
        "CAFÉ",
        "249.9",
        "refund 4711 type:payment",
        "refund & 4711",
    ],
)
async def test_words_of_title_and_arguments_find_the_item(store: AnyStore, filter: str) -> None:
    item = await ask(store, REFUND)
    assert await found(store, filter) == [item.id]


@pytest.mark.parametrize(
    "filter", ["invoice", "refund 4712", '"payment refund"', "efund", "!!!", "type:email_draft", "type:nothing"]
)
async def test_other_words_do_not_find_the_item(store: AnyStore, filter: str) -> None:
    await ask(store, REFUND)
    assert await found(store, filter) == []


@pytest.mark.parametrize("filter", ["退款", "款", "单", "订单", "退款订单", "请退", "第4711号"])
async def test_chinese_words_are_found(store: AnyStore, filter: str) -> None:
    item = await ask(store, confirmation("c", "tool", {"说明": "请退款订单 第4711号"}))
    await ask(store, confirmation("c", "tool", {"说明": "发送邮件"}), "another")
    assert await found(store, filter) == [item.id]


async def test_chinese_characters_in_another_order_are_not_found(store: AnyStore) -> None:
    await ask(store, confirmation("c", "tool", {"说明": "请退款订单"}))
    assert await found(store, "单订") == []
    assert await found(store, "款退") == []


HOSTILE = [
    "'\"'",
    '"a" OR "b"',
    "'AND'",
    "NEAR(refund, 2)",
    "'refund*'",
    "'^refund'",
    "'{lexemes}'",
    "'refund <-> x'",
    "'!refund'",
    "'a & | !'",
    "'x'';DROP'",
    "\\\\",
    "'%_'",
    "\u202e\u200b",
    "🎉",
    "'\u00a7tpayment'",
    "ﷺ",
    "İ",
    "a" * 400,
]


@pytest.mark.parametrize("filter", HOSTILE)
async def test_operators_and_odd_characters_are_plain_text(store: AnyStore, filter: str) -> None:
    await ask(store, REFUND)
    assert await found(store, filter) in ([], [(await ask(store, REFUND)).id])
    assert await found(store, "refund"), "nothing was dropped"


async def test_signs_of_types_cannot_be_typed(store: AnyStore) -> None:
    await ask(store, REFUND)
    assert await found(store, "§tpayment") == []


async def test_type_finds_calls_that_are_shown_so(store: AnyStore) -> None:
    refund, mail = await ask(store, REFUND), await ask(store, MAIL, "m")
    both = {"kind": "confirmation", "tool_calls": [*REFUND["tool_calls"], *MAIL["tool_calls"]]}
    mixed = await ask(store, both, "both")
    assert await found(store, "type:payment") == [refund.id, mixed.id]
    assert await found(store, "type:email_draft") == [mail.id, mixed.id]
    assert await found(store, "type:payment,email_draft") == [refund.id, mail.id, mixed.id]
    assert await found(store, "type:tool,payment") == [refund.id, mail.id, mixed.id]
    assert [(item.type, item.kind) for item in (refund, mail)] == [("tool", "payment"), ("tool", "email_draft")]


async def known(store: AnyStore, name: str) -> User:
    user = User(new_id(), name, None, Role.REVIEWER, datetime.now(UTC), None)
    await store.write(ACME, users.insert, user)
    return user


async def test_comments_and_people_are_found(store: AnyStore) -> None:
    item = await ask(store, REFUND)
    user = await known(store, "Wilhelmina Vogel")
    writer = person(user.id, ACME)
    await Inbox(store).comment(writer, item.id, "Checked with the warehouse")
    assert await found(store, "warehouse") == [item.id]
    assert await found(store, "wilhelmina") == [item.id]
    assert await found(store, '"Wilhelmina Vogel" refund') == [item.id]
    assert await found(store, "wilhelmina mail") == []
    await store.write(ACME, decide.decide, writer, item.id, proposal(item, Verb.REJECT, message="no"))
    assert await found(store, '"by:wilhelmina vogel"') == [item.id]


async def test_erased_name_is_not_found(store: AnyStore) -> None:
    item = await ask(store, REFUND)
    user = await known(store, "Wilhelmina")
    await Inbox(store).comment(person(user.id, ACME), item.id, "Fine")
    assert await found(store, "wilhelmina") == [item.id]
    await store.write(ACME, users.anonymise, user.id)
    assert await found(store, "wilhelmina") == []


async def test_other_tenants_find_nothing(store: AnyStore) -> None:
    item = await ask(store, REFUND)
    await ask(store, MAIL, tenant=OTHER)
    assert await found(store, "refund") == [item.id]
    assert item.id not in await found(store, "refund", OTHER)
    assert await found(store, "type:payment", OTHER) == []


async def test_new_revision_replaces_the_words(store: AnyStore) -> None:
    item = await ask(store, REFUND)
    await ask(store, confirmation("c", "cancel_order", {"order": "9000"}))
    assert await found(store, "refund") == []
    assert await found(store, "cancel 9000") == [item.id]
    assert await found(store, "type:payment") == []


# Secrets


async def test_masked_secret_is_not_found(store: AnyStore) -> None:
    await ask(store, confirmation("c", "login", {"password": "hunter2tiger", "user": "kim"}))
    assert await found(store, "kim")
    assert await found(store, "hunter2tiger") == []
    assert "hunter2tiger" not in await indexed(store)


async def test_secret_learned_later_leaves_the_index(store: AnyStore) -> None:
    """The first question says the word openly; a later one of the same thread marks it as a secret."""
    open_text = confirmation("a", "note", {"text": "use xx-hunter2tiger-yy today"})
    await store.write(ACME, wait_for, "t", a=open_text)
    assert await found(store, "hunter2tiger")
    await store.write(ACME, wait_for, "t", a=open_text, b=confirmation("b", "login", {"password": "hunter2tiger"}))
    assert await found(store, "hunter2tiger") == []
    assert await found(store, "today"), "only the secret is gone"
    assert "hunter2tiger" not in await indexed(store)


async def test_comment_with_a_secret_is_indexed_without_it(store: AnyStore) -> None:
    item = await ask(store, confirmation("c", "login", {"password": "hunter2tiger"}))
    await Inbox(store).comment(ANA, item.id, "the password is hunter2tiger indeed")
    assert await found(store, "indeed") == [item.id]
    assert await found(store, "hunter2tiger") == []


async def indexed(store: AnyStore) -> str:
    return await store.read(
        None, lambda tx: str([tuple(row) for row in tx.sql("SELECT lexemes FROM item_texts").all()])
    )


# Items of earlier versions, and removed ones


async def test_items_of_earlier_versions_are_filled_in(store: AnyStore) -> None:
    item = await ask(store, REFUND)
    await ask(store, MAIL, tenant=OTHER)
    await store.write(None, lambda tx: tx.sql("DELETE FROM item_texts"))
    assert await found(store, "4711") == []
    assert await item_index.Backfill(store).fill() == 2
    assert await found(store, "4711") == [item.id]
    assert await found(store, "kim", OTHER)
    assert await item_index.Backfill(store).fill() == 0


async def test_many_matches_give_the_same_list_as_few(store: AnyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite searches in two ways, by the number of matches."""
    from assent.review.rows import item_texts

    asked = [await ask(store, REFUND, f"t{number}") for number in range(4)]
    monkeypatch.setattr(item_texts, "_RARE", 2)
    assert await found(store, "refund 4711") == [item.id for item in asked]
    assert await found(store, "refund", OTHER) == []


# Order, groups, facets and counts


def create(tx: Tx, /, title: str, risk: str = "low", hours: float | None = None, who: str = "bot") -> str:
    expires = tx.now() + timedelta(hours=hours) if hours else None
    request = Request(type="note", title=title, expires_at=expires)
    item, _ = requests.create(tx, agent(ACME, who), request)
    items.change(tx, item, risk=risk)
    return item.id


async def filled(store: AnyStore) -> dict[str, str]:
    facts = [
        ("a", "low", 5, "bot"),
        ("b", "critical", None, "bot"),
        ("c", "high", 1, "other"),
        ("d", "critical", 3, "other"),
        ("e", "medium", 2, "bot"),
    ]
    return {name: await store.write(ACME, create, name, risk, hours, who) for name, risk, hours, who in facts}


async def walked(store: AnyStore, limit: int, **order: Any) -> str:
    """The titles in the order of the list, read in pages."""
    said, cursor = "", None
    while True:
        page = await store.read(
            ACME,
            item_search.page,
            parse("is:pending"),
            "x",
            None,
            **{"group": None, **order},
            limit=limit,
            cursor=cursor,
        )
        said += "".join(item.title for item in page.items)
        if (cursor := page.next) is None:
            return said


ORDERS = {
    "-created_at": "edcba",
    "created_at": "abcde",
    "risk": "dbcea",
}


@pytest.mark.parametrize("limit", [1, 2, 50])
@pytest.mark.parametrize("sort", ORDERS)
async def test_pages_follow_each_order(store: AnyStore, sort: str, limit: int) -> None:
    await filled(store)
    assert await walked(store, limit, sort=sort) == ORDERS[sort]


@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_pages_follow_the_deadline(store: AnyStore, limit: int) -> None:
    await filled(store)
    said = await walked(store, limit, sort="deadline")
    assert [name for name in said if name != "b"] == list("ceda")


@pytest.mark.parametrize("limit", [1, 2, 50])
@pytest.mark.parametrize("sort", ["-created_at", "risk", "created_at"])
@pytest.mark.parametrize("group", item_search.GROUPS)
async def test_items_of_a_group_follow_each_other(store: AnyStore, group: str, sort: str, limit: int) -> None:
    await filled(store)
    said = await walked(store, limit, sort=sort, group=group)
    within = ORDERS[sort]
    if group == "agent":
        by_bot, by_other = ([name for name in within if name in names] for names in ("abe", "cd"))
        assert said in ("".join([*by_bot, *by_other]), "".join([*by_other, *by_bot]))
    else:
        assert said == within


async def test_next_item_follows_the_order_of_the_list(store: AnyStore) -> None:
    ids = await filled(store)
    inbox = Inbox(store)
    for sort, column in (("risk", "risk"), ("newest", "-created_at"), ("oldest", "created_at")):
        order = ORDERS[column]
        for name, following in zip(order, order[1:] + order[0], strict=True):
            assert await inbox.following(ANA, ids[name], filter=f"is:pending sort:{sort}") == ids[following]
    assert await inbox.following(ANA, ids["e"], filter="is:pending group:agent") == ids["b"]


async def test_facets_count_and_ignore_their_own_selection(store: AnyStore) -> None:
    await filled(store)
    read = Inbox(store).list
    facets = (await read(ANA, filter="is:pending", facets=True)).facets
    assert facets["risk"] == {"low": 1, "critical": 2, "high": 1, "medium": 1}
    assert facets["agent"] == {f"{Kind.AGENT}:bot": 3, f"{Kind.AGENT}:other": 2}
    narrowed = (await read(ANA, filter="is:pending risk:critical", facets=True)).facets
    assert narrowed["risk"] == facets["risk"]
    assert narrowed["agent"] == {f"{Kind.AGENT}:bot": 1, f"{Kind.AGENT}:other": 1}
    assert (await read(ANA, filter="is:pending")).facets == {}


async def test_snoozed_items_are_not_counted_as_pending(store: AnyStore) -> None:
    ids = await filled(store)
    inbox = Inbox(store)
    until = await store.read(ACME, lambda tx: tx.now() + timedelta(hours=1))
    await inbox.snooze(ANA, ids["a"], until)
    assert (await inbox.list(ANA, filter="")).counts == {"pending": 4, "resolved": 0}
    assert (await inbox.list(ANA, filter="is:resolved")).counts["pending"] == 4
    assert (await inbox.list(ANA, filter="is:snoozed")).counts["pending"] == 1
    assert (await inbox.list(person("ben", ACME), filter="")).counts["pending"] == 5


async def test_ended_claim_is_not_shown(store: AnyStore) -> None:
    item = await ask(store, REFUND)
    inbox = Inbox(store)
    assert (await inbox.claim(ANA, item.id))["claim"]["by"] == ANA.actor

    def end(tx: Tx) -> None:
        items.change(tx, item, claimed_until=tx.now() - timedelta(seconds=1))

    await store.write(ACME, end)
    [listed] = (await inbox.list(ANA)).items
    assert listed["claim"] is None
    assert (await inbox.get(ANA, item.id))["claim"] is None


async def test_owner_and_mentions_find_items(store: AnyStore) -> None:
    """Counted as well, and only of the own tenant."""
    for tenant in (ACME, OTHER):
        await store.write(tenant, users.insert, User(ANA.id, "ana", None, Role.REVIEWER, NOW, None))
    mine, mentioned, plain = [await ask(store, MAIL, thread) for thread in ("a", "b", "c")]
    await ask(store, MAIL, "other", OTHER)
    inbox = Inbox(store)
    await inbox.assign(ANA, mine.id, "me")
    await inbox.comment(ANA, mentioned.id, "for @ana")
    assert await found(store, "owner:ana") == [mine.id]
    assert await found(store, "owner:none") == [mentioned.id, plain.id]
    assert await found(store, "mentions:ana") == [mentioned.id]
    assert await found(store, "mentions:ana", OTHER) == []
    counts = await inbox.pending(ANA, [parse("owner:me"), parse("mentions:me"), parse("owner:me mentions:me")])
    assert [(count.number, count.at_least) for count in counts] == [(1, False), (1, False), (0, False)]
    await store.write(ACME, item_removal.remove, mentioned.id)
    assert await found(store, "mentions:ana") == []
