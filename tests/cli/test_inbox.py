"""`assent inbox` against a real server: seeing, deciding, and what is refused."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict
from uuid import uuid4

import pytest

from assent.review.model.routing import ADVICE, Reason
from tests.cli.command import Result
from tests.cli.conftest import Assent
from tests.cli.house import House, lines, unreliable
from tests.servers import ServerProcess, dev_server, running
from tests.waiting import wait_until

HOSTILE = "safe\u202egnp.exe\x1b[31m\u200b\x9b2J\nassent: approved\U000e0100"
HARMLESS = r"safe\u202egnp.exe\u001b[31m\u200b\u009b2J"


class Bill(TypedDict):
    amount: int


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(dev_server(f"sqlite:///{tmp_path_factory.mktemp('inbox')}/inbox.db")) as started:
        yield started


@pytest.fixture
def house(server: ServerProcess, assent: Assent) -> House:
    return House(server, assent)


def refused(result: Result, code: int, *words: str) -> None:
    """One line that says what is wrong, perhaps a hint, and nothing of a traceback."""
    assert result.code == code, (result.out, result.err)
    assert result.err.startswith("assent: ")
    for word in words:
        assert word in result.err, result.err


class TestLooking:
    @pytest.mark.promise("REVIEW-44")
    def test_approved_item_continues_the_run(self, house: House) -> None:
        item_id, thread_id = house.paused(text="hello")
        (row,) = (line for line in lines(house.inbox("list")) if item_id in line)
        assert row.split()[1:4] == ["pending", "tool", "send_email"]
        shown = list(lines(house.inbox("get", item_id)))
        assert '  body  "hello"' in shown
        assert "  allowed: approve, edit, respond, ignore" in shown
        assert shown[shown.index("from the agent:") + 1] == "  | Please review"
        approved = house.inbox("approve", item_id)
        assert '    body  "hello"' in lines(approved)
        assert f"approved (accepted): item {item_id}, revision 1" in approved.out
        assert house.finished(thread_id)["answer"]["type"] == "accept"

    def test_list_filters_pages_and_counts(self, house: House) -> None:
        word = uuid4().hex
        ids = [house.request(f"{word} {number}") for number in range(3)]
        house.inbox("approve", ids[0])
        *rows, last = lines(house.inbox("list", "--filter", f"is:pending {word}"))
        assert [row.split()[0] for row in rows[1:]] == [ids[2], ids[1]]
        assert last == "2 pending, 1 resolved"
        *rows, last = lines(house.inbox("list", "--filter", word, "--limit", "2"))
        assert len(rows) == 1 + 2
        assert last == "2 shown, more with --limit; 2 pending, 1 resolved"
        everything = house.inbox("list", "--all", "--json").json
        assert set(ids) <= {item["id"] for item in everything["items"]}
        assert list(lines(house.inbox("list", "--filter", f"type:none {word}"))) == ["No items. 0 pending, 0 resolved"]
        oldest = house.inbox("list", "--filter", word, "--sort", "oldest", "--group", "type", "--json").json
        assert [item["id"] for item in oldest["items"]] == ids
        refused(house.inbox("list", "--filter", "is:purple"), 2, "unknown value is:purple")

    def test_list_longer_than_a_page_is_complete(self, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("assent.client.connection.LARGEST_PAGE", 2)
        word = uuid4().hex
        ids = [house.request(f"{word} {number}") for number in range(5)]
        assert {item["id"] for item in house.inbox("list", "--filter", word, "--json").json["items"]} == set(ids)
        assert len(house.inbox("list", "--filter", word, "--limit", "3", "--json").json["items"]) == 3

    def test_an_id_is_whole_at_any_width(self, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        item_id = house.request("a title that is far too long for a terminal of forty columns")
        assert item_id in house.inbox("list").out

    def test_the_list_shows_graph_and_arguments(self, house: House) -> None:
        item_id, _ = house.paused(text="hello")
        (row,) = (line for line in lines(house.inbox("list")) if item_id in line)
        assert row.split("  ")[-2].strip() == "hitl"
        assert '"body":"hello"' in row
        secret = house.request(actions=[{"name": "sign_in", "args": {"password": "hunter2"}}])
        (row,) = (line for line in lines(house.inbox("list")) if secret in line)
        assert "password" in row
        assert "hunter2" not in row

    def test_comment_is_added_and_shown_in_the_timeline(self, house: House) -> None:
        item_id = house.request()
        assert house.inbox("comment", item_id, "two\nlines").out.startswith("commented: ")
        shown = list(lines(house.inbox("get", item_id, "--timeline")))
        assert shown[shown.index("  | two") + 1] == "  | lines"
        kinds = [line.split()[1] for line in shown[shown.index("timeline:") + 1 :]]
        assert kinds == ["item.created", "item.commented"]
        item_shown = house.inbox("get", item_id, "--timeline", "--json").json
        assert (item_shown["id"], [event["kind"] for event in item_shown["timeline"]]) == (item_id, kinds)

    @pytest.mark.promise("P11")
    def test_control_characters_of_an_agent_are_escaped(self, house: House) -> None:
        word = uuid4().hex
        action = {"name": HOSTILE, "args": {HOSTILE: HOSTILE}, "description": HOSTILE}
        item_id = house.request(f"{word} {HOSTILE}", description=HOSTILE, actions=[action])
        house.inbox("comment", item_id, HOSTILE)
        said = [
            house.inbox("list", "--filter", word),
            house.inbox("list", "--filter", word, "--json"),
            house.inbox("get", item_id, "--timeline"),
            house.inbox("get", item_id, "--json"),
            house.inbox("reject", item_id, "--message", HOSTILE, "--notes", HOSTILE),
            house.inbox("approve", item_id),
        ]
        for result in said:
            assert not [one for one in result.out + result.err if one != "\n" and not one.isprintable()]
            assert "\U000e0100" not in result.out + result.err
            assert "\nassent: approved" not in result.out
        assert HARMLESS in said[0].out
        assert HARMLESS in said[2].out
        assert said[3].json["actions"][0]["args"] == {HOSTILE: HOSTILE}


class TestDeciding:
    @pytest.mark.promise("HITL-24")
    def test_edit_shows_old_and_new(self, house: House) -> None:
        item_id, thread_id = house.paused(text="hello")
        edited = house.inbox("edit", item_id, "--set", "to=new@b.c", "--set", 'body="hi"')
        assert '    body: "hello" → "hi"' in lines(edited)
        assert '    to: "a@b.c" → "new@b.c"' in lines(edited)
        assert "plan again" in edited.out, "the hint says why an edit stays small"
        answer = house.finished(thread_id)["answer"]
        assert answer["args"]["args"] == {"to": "new@b.c", "body": "hi"}

    def test_edit_by_path_whole_or_file_changes_the_arguments(self, house: House, folder: Path) -> None:
        payload = {"limit": 598, "nested": {"list": [1, {"a": 1}]}, "big": 2**60 + 1}
        first, second, third = (house.request(payload=payload) for _ in range(3))
        assert "    limit: 598 → 598.0" in lines(house.inbox("edit", first, "--set", "limit=598.0"))
        house.inbox("edit", second, "--set", "nested.list.1.a=true", "--set", "new.one=x")
        changed = house.item(second)["actions"][0]["args"]
        assert changed == payload | {"nested": {"list": [1, {"a": True}]}, "new": {"one": "x"}}
        (folder / "args.json").write_text('{"limit": 1}')
        assert house.inbox("edit", third, "--args-file", "args.json").code == 0
        assert house.item(third)["actions"][0]["args"] == {"limit": 1}

    @pytest.mark.parametrize(
        ("arguments", "code", "word"),
        [
            ((), 2, "nothing would be changed"),
            (("--set", "limit=5"), 2, "nothing would be changed"),
            (("--set", "limit"), 2, "name=value"),
            (("--set", "limit.deeper=5"), 2, "no field"),
            (("--args", "{"), 2, "--args is not JSON"),
            (("--args", "{}", "--args-file", "x"), 2, "not both"),
            (("--args-file", "missing.json"), 5, "file not found: missing.json"),
            (("--args", "[1]"), 2, "must be an object"),
            (("--action", "7", "--set", "limit=6"), 2, "there is no action '7'"),
            (("--grace", "1000", "--set", "limit=6"), 2, "grace_seconds"),
        ],
    )
    def test_invalid_edit_exits_with_error(
        self, house: House, arguments: tuple[str, ...], code: int, word: str
    ) -> None:
        item_id = house.request()
        refused(house.inbox("edit", item_id, *arguments), code, word)
        assert house.item(item_id)["status"] == "PENDING"

    def test_an_edit_beside_a_secret_leaves_the_secret_as_it_is(self, house: House) -> None:
        schema = {"type": "object", "properties": {"token": {"type": "string", "writeOnly": True}}}
        action = {"name": "connect", "args": {"token": "hush", "host": "a"}, "schema": schema}
        item_id = house.request(actions=[action])
        refused(house.inbox("edit", item_id, "--set", "host=••••••"), 2, "mask")
        done = house.inbox("edit", item_id, "--set", "host=b")
        assert '    host: "a" → "b"' in lines(done)
        assert "hush" not in done.out
        assert "hush" not in house.inbox("show", item_id).out
        assert '"token": "hush"' in house.inbox("reveal", item_id, "--json").out

    def test_reject_tells_the_agent_why(self, house: House) -> None:
        item_id, thread_id = house.calls({"name": "send_email", "args": {"to": "a@b.c", "body": "x"}})
        rejected = house.inbox("reject", item_id, "--message", "not today", "--notes", "for the record")
        assert f"rejected (rejected): item {item_id}" in rejected.out
        assert "not today" in str(house.finished(thread_id)["messages"])
        assert house.item(item_id)["decisions"][0]["notes"] == "for the record"

    def test_respond_and_ignore_decide_the_item(self, house: House) -> None:
        answered, first = house.paused(text="a")
        ignored, second = house.paused(text="b")
        assert "(responded)" in house.inbox("respond", answered, "--message", "say more").out
        assert "rejected (ignored)" in house.inbox("ignore", ignored).out
        assert house.finished(first)["answer"] == {"type": "response", "args": "say more"}
        assert house.finished(second)["answer"]["type"] == "ignore"

    def test_respond_with_json_passes_the_value(self, house: House) -> None:
        item_id, thread_id = house.paused("fragile")
        assert house.inbox("respond", item_id, "--args", '{"choice": [1, 2]}').code == 0
        assert house.finished(thread_id)["answer"] == {"choice": [1, 2]}
        refused(house.inbox("respond", item_id), 2, "an answer is required")

    def test_edit_of_one_of_several_actions_needs_action_and_others(self, house: House) -> None:
        calls = [{"name": "send_email", "args": {"to": to, "body": "x"}} for to in ("a@b.c", "d@e.f")]
        item_id, thread_id = house.calls(*calls)
        refused(house.inbox("edit", item_id, "--set", "body=y"), 2, "several actions", "--action 0 or 1")
        refused(house.inbox("reject", item_id, "--action", "0"), 2, "--others")
        refused(house.inbox("reject", item_id, "--others", "approve"), 2, "--action")
        done = house.inbox("edit", item_id, "--action", "1", "--set", "body=y", "--others", "reject")
        assert "  reject send_email (key 0)" in lines(done)
        assert "approved (partial)" in done.out
        said = str(house.finished(thread_id)["messages"])
        assert "sent to d@e.f" in said
        assert "sent to a@b.c" not in said

    def test_verdict_for_each_action_is_applied(self, house: House, folder: Path) -> None:
        calls = [{"name": "send_email", "args": {"to": to, "body": "x"}} for to in ("a@b.c", "d@e.f", "g@h.i")]
        item_id, thread_id = house.calls(*calls)
        shown = list(lines(house.inbox("get", item_id)))
        assert {f"{place}. send_email (key {place - 1})" for place in (1, 2, 3)} <= set(shown)
        (folder / "args.json").write_text('{"to": "new@e.f", "body": "y"}')
        for words, told in (
            (["1=approve", "2=approve"], "no verdict on 3 (send_email)"),
            (["1=approve", "2=approve", "3=approve", "4=approve"], "there is no action 4"),
            (["1=approve", "1=reject", "2=approve", "3=approve"], "action 1 has two verdicts"),
            (["1=maybe"], "maybe is not a verb"),
            (["approve"], "does not name an action"),
            (["1=approve:x", "2=approve", "3=approve"], "takes no value"),
            (["1=edit", "2=approve", "3=approve"], "1=edit needs a value"),
            (["1=edit:none.json", "2=approve", "3=approve"], "none.json"),
            (["1=edit:{", "2=approve", "3=approve"], "is not JSON"),
            (['1=edit:{"to": "a@b.c", "body": "x"}', "2=approve", "3=approve"], "would change nothing"),
        ):
            result = house.inbox("decide", item_id, *words)
            assert told in result.err, result.err
            assert house.item(item_id)["status"] == "PENDING"
        done = house.inbox("decide", item_id, "1=approve", "2=edit:args.json", "3=reject:wrong: person")
        assert "approved (partial)" in done.out, done.err
        said = str(house.finished(thread_id)["messages"])
        assert ("sent to a@b.c" in said, "sent to new@e.f" in said, "sent to g@h.i" in said) == (True, True, False)
        assert "wrong: person" in said

    def test_repair_cancels_the_items_of_the_thread(self, house: House) -> None:
        item_id, thread_id = house.paused(text="x")
        refused(house("repair", str(uuid4())), 5, "")
        assert house("repair", thread_id).out.startswith(f"repaired: thread {thread_id}.")
        assert house.item(item_id)["status"] == "CANCELLED"
        refused(house.assent("repair", thread_id, "--database", "sqlite:///x.db"), 2, "--url")

    def test_single_verb_decides_all_actions(self, house: House) -> None:
        calls = [{"name": "send_email", "args": {"to": to, "body": "x"}} for to in ("a@b.c", "d@e.f")]
        item_id, thread_id = house.calls(*calls)
        house.inbox("approve", item_id)
        assert "sent to a@b.c; sent to d@e.f" in str(house.finished(thread_id)["messages"])

    @pytest.mark.promise("REVIEW-44")
    def test_requested_revision_is_resubmitted(self, house: House) -> None:
        item_id = house.request()
        asked = house.inbox("request-revision", item_id, "--notes", "too low")
        assert f"revision requested: item {item_id}" in asked.out
        assert item_id in house.inbox("list", key=house.agent_key).out
        assert "too low" in house.inbox("get", item_id, key=house.agent_key).out
        refused(house.inbox("resubmit", item_id, key=house.agent_key), 2, "nothing would be changed")
        again = house.inbox("resubmit", item_id, "--payload", '{"limit": 9}', key=house.agent_key)
        assert again.out == f"pending: item {item_id}, revision 2\n"
        assert house.item(item_id)["actions"][0]["args"] == {"limit": 9}
        early = house.inbox("resubmit", item_id, "--title", "x", key=house.agent_key)
        refused(early, 6, "only a request that was sent back")
        assert "possible from PENDING: APPROVED, REJECTED" in early.err
        shown = house.inbox("get", item_id, "--timeline").out
        assert "revision 1 (no longer in force): too low" in shown
        assert '"via":"cli"' in shown
        assert house.inbox("approve", item_id, "--revision", "2").code == 0

    @pytest.mark.promise("REVIEW-34")
    def test_route_of_a_review_is_shown_with_the_part_of_the_registry_to_check(self, house: House) -> None:
        with house.http() as agent:
            body = {"run_id": uuid4().hex, "body": "Look"}
            item = agent.post("/api/workspace-reviews", json=body).json()
        shown = house.inbox("get", item["id"]).out
        assert "route     local agent" in shown
        assert f"unrouted: {ADVICE[Reason.ORPHAN]}" in shown
        assert "Workspace review (unrouted): " in house.inbox("list", "--filter", f"id:{item['id']}").out

    def test_decision_is_undone_within_the_grace_period(self, house: House) -> None:
        item_id = house.request()
        assert f"assent inbox undo {item_id}" in house.inbox("approve", item_id, "--grace", "60").out
        assert house.inbox("undo", item_id).out.startswith(f"pending: item {item_id}, revision 1")
        refused(house.inbox("undo", item_id), 6, "no decision of yours to undo")
        house.inbox("approve", item_id)
        refused(house.inbox("undo", item_id), 6, "too late")

    def test_item_is_claimed_snoozed_and_cancelled(self, house: House) -> None:
        item_id = house.request()
        assert house.inbox("claim", item_id).out.startswith("claimed: ")
        assert "claimed   by reviewer:" in house.inbox("get", item_id).out
        refused(house.inbox("claim", item_id, key=house.agent_key), 6, "claimed by reviewer:")
        assert house.inbox("claim", item_id, "--release").out.startswith("released: ")
        assert house.inbox("snooze", item_id, "2h").code == 0
        assert item_id not in house.inbox("list").out
        assert house.inbox("get", item_id[:30]).code == 0, "what is snoozed is found all the same"
        assert house.inbox("snooze", item_id, "--wake").code == 0
        assert item_id in house.inbox("list").out
        refused(house.inbox("snooze", item_id), 2, "set a duration")
        refused(house.inbox("settle", item_id, "done"), 6, "no call of this item is in doubt")
        cancelled = house.inbox("cancel", item_id, "--notes", "no longer needed", key=house.agent_key)
        assert cancelled.out == f"cancelled: item {item_id}, revision 1\n"

    def test_json_option_prints_only_json(self, house: House) -> None:
        item_id = house.request()
        done = house.inbox("edit", item_id, "--set", "limit=6", "--json")
        assert (done.json["id"], done.json["status"]) == (item_id, "APPROVED")
        assert "limit: 5 → 6" in done.err


class TestRefusals:
    @pytest.mark.promise("P6")
    def test_agent_key_cannot_decide(self, house: House) -> None:
        item_id = house.request()
        for word in (("approve",), ("reject",), ("edit", "--set", "limit=6"), ("request-revision", "--notes", "x")):
            refused(house.inbox(word[0], item_id, *word[1:], key=house.agent_key), 4, "may not decide", "reviewer key")
        assert house.item(item_id)["status"] == "PENDING"

    def test_wrong_key_exits_with_error(self, house: House) -> None:
        refused(house.inbox("list", key="asnt_wrong"), 4, "--key or ASSENT_API_KEY")
        refused(house.inbox("list", key="schlüssel"), 2, "the API key has invalid characters")

    def test_unreachable_server_exits_with_error(self, assent: Assent) -> None:
        refused(
            assent("inbox", "list", "--url", "http://127.0.0.1:9"), 7, "http://127.0.0.1:9 does not answer", "--url"
        )

    def test_address_of_another_service_exits_with_error(self, house: House, assent: Assent) -> None:
        refused(assent("inbox", "list", "--url", f"{house.server.url}/docs"), 1, "is not an Assent server")
        refused(assent("inbox", "list", "--url", "localhost:2024"), 3, "url (from command line)")

    @pytest.mark.parametrize(("named", "code"), [("0" * 36, 5), ("12345678", 5), ("1234", 2), ("a/../../b", 5)])
    def test_unknown_item_id_exits_with_error(self, house: House, named: str, code: int) -> None:
        refused(house.inbox("get", named), code, named[:4])
        refused(house.inbox("approve", named), code)

    def test_unique_id_prefix_is_accepted_and_ambiguous_prefix_refused(self, house: House) -> None:
        shared, ids = "", list[str]()
        while len(shared) < 8:  # unless the two happened to be made on either side of a minute
            ids = [house.request(), house.request()]
            shared = ids[0][: next(at for at in range(37) if ids[0][at] != ids[1][at])]
        refused(house.inbox("approve", shared), 6, *ids)
        assert house.inbox("approve", ids[0][:30]).code == 0
        assert house.inbox("get", ids[0][:30].upper()).code == 0, "found although it is decided"
        assert house.item(ids[1])["status"] == "PENDING"

    def test_id_prefix_is_resolved_by_the_server_with_at_most_two_rows(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("assent.client.connection.LARGEST_PAGE", 2)
        ids = [house.request() for _ in range(6)]
        with unreliable(house.server.url, loses=False) as way:
            there = ("--url", way.url, "--key", house.key)
            assert house.assent("inbox", "get", ids[0][:30], *there).code == 0
            searched, *others = way.read
            assert "limit=2" in searched
            assert others == [f"/api/inbox/items/{ids[0]}"]
            way.read.clear()
            refused(house.assent("inbox", "get", f"{ids[0][:8]}-0000-7000", *there), 5)
            assert len(way.read) == 2, "among what is pending, then among all"

    @pytest.mark.promise("P5")
    def test_decision_about_an_old_revision_exits_with_error(self, house: House) -> None:
        item_id = house.request()
        seen = house.item(item_id)["hash"]
        house.inbox("request-revision", item_id, "--notes", "x")
        house.inbox("resubmit", item_id, "--payload", "{}", key=house.agent_key)
        now = house.item(item_id)["hash"]
        refused(house.inbox("approve", item_id, "--revision", "1"), 6, "current revision is 2", now)
        refused(house.inbox("approve", item_id, "--hash", seen), 6, "current revision is 2", now)
        refused(house.inbox("approve", item_id, "--hash", seen[:4]), 2, "at least 8")
        assert house.inbox("approve", item_id, "--revision", "2", "--hash", now[:12]).code == 0

    def test_second_decision_exits_with_error_and_shows_the_first(self, house: House) -> None:
        item_id = house.request()
        house.inbox("approve", item_id, "--notes", "fine by me")
        late = house.inbox("reject", item_id, "--revision", "1")
        refused(late, 6, "the item is APPROVED", "approve by reviewer:", "fine by me")
        assert late.out == ""

    def test_verb_that_is_not_allowed_exits_with_error(self, house: House) -> None:
        item_id = house.request(actions=[{"name": "x", "args": {}, "allowed": ["approve"]}])
        refused(house.inbox("reject", item_id), 2, "reject is not allowed here, only approve")

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--as", "ana"),
            ("--tenant", "other"),
            ("--database", "sqlite:///x.db", "--key", "k"),
            ("--database", "sqlite:///x.db", "--url", "http://x"),
        ],
    )
    def test_contradicting_options_exit_with_error(self, assent: Assent, arguments: tuple[str, ...]) -> None:
        assert assent("inbox", "list", *arguments).code == 2


class TestSurroundings:
    def test_url_and_key_come_from_the_environment(self, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
        item_id = house.request()
        monkeypatch.setenv("ASSENT_URL", house.server.url)
        monkeypatch.setenv("ASSENT_API_KEY", house.key)
        approved = house.assent("inbox", "approve", item_id)
        assert (approved.code, approved.err) == (0, "")
        assert house.key not in house.assent("config").out

    @pytest.mark.promise("P3")
    @pytest.mark.parametrize("loses", [True, False])
    def test_connection_error_is_retried_and_acts_once(self, house: House, loses: bool) -> None:
        """The second try carries the key of the first, so it finds what that one has done, if anything."""
        item_id = house.request()
        with unreliable(house.server.url, loses=loses) as way:
            done = house.assent("inbox", "comment", item_id, "once", "--url", way.url, "--key", house.key)
        assert done.code == 0, done.err
        assert len(way.keys) == 2
        assert len(set(way.keys)) == 1
        assert house.item(item_id)["comments"] == 1
        with house.http() as careless:  # the control: without a key it does happen twice
            for _ in range(2):
                careless.post(f"/api/inbox/items/{item_id}/comments", json={"text": "again"})
        assert house.item(item_id)["comments"] == 3


class TestWithoutServer:
    @pytest.mark.promise("REVIEW-44")
    def test_decision_beside_a_stopped_server_takes_effect_after_its_start(
        self, assent: Assent, tmp_path: Path
    ) -> None:
        database = f"sqlite:///{tmp_path}/stopped.db"
        server = dev_server(database)
        with running(server):
            item_id, thread_id = House(server, assent).paused(text="hello")
            keys = House(server, assent)
            server.stop()
        here = ("--database", database)
        assert item_id in assent("inbox", "list", *here).out
        assert "hello" in assent("inbox", "get", item_id[:30], *here).out
        assert "ana" not in assent("users", "list", *here).out, "looking makes nobody"
        done = assent("inbox", "approve", item_id, "--as", "ana", *here)
        assert f"approved (accepted): item {item_id}" in done.out
        refused(assent("inbox", "reject", item_id, "--as", "ben", *here), 6, "approve by reviewer:")
        (ana,) = (user for user in assent("users", "list", "--json", *here).json if user["name"] == "ana")
        assert ana["role"] == "reviewer"
        assert "user.created" in assent("audit", "list", "--subject", f"reviewer:{ana['id']}", *here).out
        with running(server):
            assert keys.finished(thread_id)["answer"]["type"] == "accept"
            assert keys.item(item_id)["decided_by"] == f"reviewer:{ana['id']}"

    def test_disabled_person_and_missing_database_exit_with_error(self, assent: Assent) -> None:
        here = ("--database", "sqlite:///.assent/assent.db")
        assent("users", "create", "ana")
        assent("users", "disable", "ana")
        refused(assent("inbox", "comment", str(uuid4()), "x", "--as", "ana", *here), 4, "disabled")
        refused(assent("inbox", "list", "--database", "sqlite:///typo.db"), 5, "database not found: typo.db")
        assert assent("inbox", "list", *here).out == "No items. 0 pending, 0 resolved\n"
        refused(assent("inbox", "get", str(uuid4()), *here), 5, "not found")

    def test_gated_call_without_a_server_is_decided_by_the_command(self, assent: Assent, tmp_path: Path) -> None:
        """Library mode: the command decides, and the graph goes on in its own process."""
        from langchain_core.runnables import RunnableConfig
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import START, StateGraph

        from assent import LocalInbox, gated

        inbox = LocalInbox(tmp_path / "gate.db")
        paid = list[int]()

        @gated(inbox=inbox)
        def pay(amount: int) -> int:
            paid.append(amount)
            return amount

        def node(state: Bill) -> Bill:
            return {"amount": pay(state["amount"])}

        builder = StateGraph(Bill)
        builder.add_node("pay", node)
        builder.add_edge(START, "pay")
        graph = builder.compile(checkpointer=InMemorySaver())
        thread_id = str(uuid4())
        config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        graph.invoke({"amount": 5}, config)
        here = ("--database", f"sqlite:///{tmp_path}/gate.db")
        (item,) = assent("inbox", "list", "--json", *here).json["items"]
        assert (item["gated"], paid) == (True, [])
        assert "amount: 5 → 3" in assent("inbox", "edit", item["id"], "--set", "amount=3", "--as", "ana", *here).out
        graph.invoke(inbox.command(thread_id), config)
        assert paid == [3]


class TestTerminal:
    """On a terminal a decision is asked for once more."""

    @pytest.mark.parametrize(("answer", "status"), [("n", "PENDING"), ("y", "APPROVED")])
    def test_decision_at_a_terminal_is_confirmed(self, house: House, answer: str, status: str) -> None:
        item_id = house.request()
        said = on_a_terminal(house, "approve", item_id, answer=answer)
        assert "approve?" in said
        assert "limit  5" in said
        assert house.item(item_id)["status"] == status

    def test_yes_option_skips_the_confirmation(self, house: House) -> None:
        item_id = house.request()
        assert "approve?" not in on_a_terminal(house, "approve", item_id, "--yes")
        assert house.item(item_id)["status"] == "APPROVED"


def on_a_terminal(house: House, *arguments: str, answer: str | None = None) -> str:
    """What a person sees who runs the command, and answers its question."""
    import pty
    import subprocess
    import sys
    import threading

    from tests.cli.command import PATIENCE, environment

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "assent", "inbox", *arguments, "--url", house.server.url]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(ASSENT_API_KEY=house.key)
    )
    os.close(theirs)
    said = bytearray()

    def listen() -> None:
        try:
            while data := os.read(ours, 4096):
                said.extend(data)
        except OSError:  # how Linux says that nobody holds the other end any more
            return

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    if answer is not None:
        wait_until(lambda: b"?" in said, "nothing was asked")
        os.write(ours, f"{answer}\n".encode())
    process.wait(PATIENCE)
    listener.join(PATIENCE)
    os.close(ours)
    return said.decode(errors="replace")


def test_json_escapes_read_as_the_same_value(capsys: pytest.CaptureFixture[str]) -> None:
    from assent.surfaces.cli.output import emit

    value = {"text": HOSTILE, "list": ["ä", "日本", "\u2028", "\x7f", "👍🏽", "é"]}
    emit(value)
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert not [one for one in out if one != "\n" and not one.isprintable()]
    assert "日本" in out


@pytest.mark.promise("INBOX-10")
def test_the_types_are_published_for_other_languages(assent: Assent) -> None:
    schema = assent("inbox", "types").json
    assert set(schema["$defs"]) == {"HumanInterruptConfig", "ActionRequest", "HumanInterrupt", "HumanResponse"}
    assert "export interface HumanInterrupt {" in assent("inbox", "types", "--typescript").out
