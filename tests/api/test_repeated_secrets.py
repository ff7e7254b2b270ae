"""A secret is masked in every text about an item that repeats it, also where another item of the thread, another
revision or a later answer made it known. Who looks: every agent, service and person without the right to reveal."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import httpx
import pytest

from assent.audit.service import verify_export
from assent.identity.model.access import Kind, Role
from assent.review.decisions.consequences import Case
from assent.review.model.secrets import MASK
from assent.review.rows import secrets
from assent.review.search import item_words
from tests.api.house import Builder
from tests.api.reviewing import Item, Office, open_office
from tests.receiver import receiving

pytestmark = pytest.mark.promise("P10")

OLD, NEW = "0ld-c4nary-77", "N3w-c4nary-88"
HUMAN = {"allow_accept": True, "allow_edit": False, "allow_respond": True, "allow_ignore": True}


@pytest.fixture
async def office(build_on_both: Builder) -> Office:
    return await open_office(build_on_both, outbound_allow=("127.0.0.1",))


def question(args: Mapping[str, Any], said: str) -> list[dict[str, Any]]:
    return [{"action_request": {"action": "log_in", "args": args}, "config": HUMAN, "description": said}]


Others = dict[str, httpx.AsyncClient]
"""Whoever must not see a secret without revealing it."""


@pytest.fixture
async def others(office: Office) -> Others:
    house = office.house
    keys = [await house.key(), await house.key(Kind.SERVICE), await house.person("vera", Role.VIEWER)]
    named = dict(zip(("agent", "service", "viewer"), map(house.client, keys), strict=True))
    return {**named, "reviewer": office.ben, "admin": await house.admin()}


async def read(client: httpx.AsyncClient, items: Iterable[str], *, audit: bool = False) -> str:
    """Everything that tells of these items."""
    paths = ["/api/inbox/items?arguments=true", "/inbox"]
    for item in items:
        paths += [f"/api/inbox/items/{item}{part}" for part in ("", "/revisions", "/comments", "/timeline")]
        paths.append(f"/inbox/{item}")
    paths += ["/api/audit/events?limit=200", "/api/audit/export", "/inbox/audit"] if audit else []
    responses = [await client.get(path) for path in paths]
    assert not [response for response in responses if response.status_code >= 500]
    return "".join(one.text for one in responses)


async def hidden(others: Others, *items: str) -> bool:
    texts = [await read(client, items, audit=who == "admin") for who, client in others.items()]
    return not any(OLD in text for text in texts)


async def two_items(office: Office) -> tuple[Item, Item]:
    """The second question of a private thread repeats the secret of the first."""
    asked = [
        question({"user": "ada", "password": OLD}, f"log in with {OLD}"),
        question({"user": "bob"}, f"ada's {OLD} was refused. Try bob?"),
    ]
    first = await office.asked("asking", {"questions": asked})
    await office.decided(first, "approve")
    thread = first["source"]["thread_id"]
    await office.rests(thread, status="interrupted")
    [second] = await office.items(f"is:pending thread:{thread}")
    return first, second


async def resubmitted(office: Office, **said: Any) -> Item:
    item = await office.request(type="tool", actions=[{"name": "log_in", "args": {"password": OLD}}], **said)
    await office.ask_revision(item)
    changes: dict[str, Any] = {
        "title": f"Log in (was {OLD})",
        "description": f"I replaced {OLD} by {NEW}",
        "actions": [{"name": "log_in", "args": {"password": NEW}, "description": f"not {OLD} any more"}],
    }
    again = await office.post(item, "resubmission", office.agent, **changes)
    assert again.status_code == 200, again.text
    body: Item = again.json()
    return body


async def edited(office: Office) -> Item:
    """A reviewer's edit makes a secret of what title, description and a comment have said before."""
    args = {"password": "first", "x": 1}
    item = await office.request(
        type="tool", title=f"Use {OLD}?", description=f"It is {OLD}", actions=[{"name": "log_in", "args": args}]
    )
    await office.post(item, "comments", text=f"why {OLD}?")
    edit = [{"key": "0", "verb": "edit", "args": {"password": OLD, "x": 1}}]
    return await office.decided(item, actions=edit, notes=f"now {OLD}")


# Other items of the thread


async def test_a_second_item_that_repeats_the_secret_of_the_first_shows_a_mask(office: Office, others: Others) -> None:
    first, second = await two_items(office)
    assert await hidden(others, first["id"], second["id"])
    shown = await office.get(second["id"])
    assert shown["summary"] == shown["description"] == f"ada's {MASK} was refused. Try bob?"
    assert shown["asked"] is None, "the value as it was raised would tell it"
    assert shown["actions"][0]["args"] == {"user": "bob"}


async def too_early(office: Office) -> Item:
    """The first question of a thread repeats what the second one makes a secret."""
    asked = [question({"user": "ada"}, f"is {OLD} right?"), question({"password": OLD}, "log in")]
    first = await office.asked("asking", {"questions": asked})
    assert OLD in first["summary"], "it is no secret yet"
    await office.decided(first, "approve")
    await office.rests(first["source"]["thread_id"], status="interrupted")
    return first


async def test_an_earlier_item_that_repeats_the_secret_of_a_later_one_shows_a_mask(
    office: Office, others: Others
) -> None:
    assert await hidden(others, (await too_early(office))["id"])


async def test_control_without_learning_the_list_shows_the_secret(
    office: Office, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_words, "_mask", lambda *_: None)
    assert not await hidden(others, (await too_early(office))["id"])


async def test_control_a_secret_of_another_thread_is_not_masked(office: Office) -> None:
    """Control: texts are covered by what was asked on their own thread, and nothing else."""
    await two_items(office)
    other = await office.asked("asking", {"questions": [question({"user": "ada"}, f"is {OLD} right?")]})
    assert other["description"] == f"is {OLD} right?"


async def test_control_masking_each_item_alone_shows_the_secret_in_the_second(
    office: Office, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_known", lambda *_: set())
    first, second = await two_items(office)
    assert not await hidden(others, first["id"], second["id"])


# Other revisions


async def test_a_revision_that_repeats_the_secret_of_another_one_shows_a_mask(office: Office, others: Others) -> None:
    async with receiving() as receiver:
        item = await resubmitted(office, callback=receiver.url)
        commented = await office.post(item, "comments", text=f"so {OLD} is over")
        assert commented.json()["text"] == f"so {MASK} is over"
        assert await hidden(others, item["id"])
        assert (await office.get(item["id"]))["title"] == f"Log in (was {MASK})"
        await office.decided(item, "approve", notes=f"not {OLD}")
        assert not [message for message in await receiver.has(2) if OLD.encode() in message.content]
    assert await hidden(others, item["id"])


async def test_a_decision_about_an_action_that_is_gone_shows_no_argument_of_it(office: Office, others: Others) -> None:
    actions = [{"key": "a", "name": "log_in", "args": {"password": "first", "memo": "m"}}]
    item = await office.request(type="tool", actions=actions)
    await office.policy({"default": {"name": "all", "then": "ask", "approvals": 2}})
    two = await office.request(type="tool", actions=actions)
    edit = [{"key": "a", "verb": "edit", "args": {"password": OLD, "memo": "m"}}]
    await office.decided(two, actions=edit)
    back = await office.get(two["id"])
    await office.ask_revision(back)
    changed = [{"key": "b", "name": "log_in", "args": {"user": "bob"}}]
    again = await office.post(two, "resubmission", office.agent, actions=changed)
    assert again.status_code == 200, again.text
    assert await hidden(others, two["id"], item["id"])


# What is learned later


async def test_a_secret_that_an_edit_sets_is_masked_in_all_that_was_said_before(office: Office, others: Others) -> None:
    item = await edited(office)
    assert await hidden(others, item["id"])
    assert (await office.page("Use"))["items"][0]["title"] == f"Use {MASK}?"


async def test_export_omits_payloads_that_quote_a_later_secret_and_verifies(office: Office, others: Others) -> None:
    await edited(office)
    lines = (await others["admin"].get("/api/audit/export")).text.splitlines()
    told = [json.loads(line) for line in lines]
    assert {event["kind"] for event in told if event.get("withheld")} == {"item.created", "item.commented"}
    assert all(one["payload"] is None for one in told if one.get("withheld"))
    verdict = verify_export(lines)
    assert (verdict.breaks, verdict.withheld) == ([], 2)
    await office.verified()


async def test_an_export_whose_payloads_somebody_removed_does_not_verify(office: Office, others: Others) -> None:
    """Control: only what the export itself has left out is forgiven."""
    await edited(office)
    lines = (await others["admin"].get("/api/audit/export")).text.splitlines()
    told = [json.loads(line) for line in lines]
    for one in told:
        one.pop("withheld", None)
    assert len(verify_export(map(json.dumps, told)).breaks) == 2


async def test_a_search_of_the_timeline_does_not_find_a_later_secret(office: Office, others: Others) -> None:
    await edited(office)
    admin = others["admin"]
    for text, number in ((OLD, 0), ("Use ", 1)):
        listed_items = (await admin.get("/api/audit/events", params={"text": text})).json()["items"]
        assert len(listed_items) == number, text


async def test_notes_that_repeat_the_secret_of_the_same_answer_show_a_mask(office: Office, others: Others) -> None:
    schema = {"type": "object", "properties": {"password": {"type": "string"}}}
    form = {"key": "k", "message": "Which one?", "mode": "form", "requested_schema": schema}
    asked = {"type": "mcp_elicitation", "tool_name": "log_in", "requests": [form]}
    item = await office.asked("asking", {"questions": [asked]})
    said = [{"key": "0", "verb": "accept", "args": {"password": OLD}}]
    await office.decided(item, actions=said, notes=f"it is {OLD}")
    assert await hidden(others, item["id"])


@pytest.mark.parametrize("args", [{"token": {"c4nary-0ld-77": 1}}, {"credentials": [{"user": {"c4nary-0ld-77": []}}]}])
async def test_a_secret_that_is_a_key_of_a_masked_object_is_masked_in_texts(office: Office, args: Any) -> None:
    item = await office.request(
        type="tool", description="hold c4nary-0ld-77 for the user", actions=[{"name": "x", "args": args}]
    )
    assert item["description"] == f"hold {MASK} for the user", "and the name of a field is no secret"


async def test_lists_read_no_secrets_of_any_thread(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = await two_items(office)

    def refuse(*_: Any) -> Any:
        raise AssertionError("a list looks at its rows only")

    monkeypatch.setattr(Case, "words", property(refuse))
    monkeypatch.setattr(secrets, "known", refuse)
    for arguments in ("true", "false"):
        page = await office.page(arguments=arguments)
        assert {item["id"] for item in page["items"]} >= {first["id"], second["id"]}
