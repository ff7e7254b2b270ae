"""`assent policy` against a real server, and on the database itself."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from assent.review.model import policies
from assent.review.model.policy_text import to_toml
from tests.api.reviewing import seen
from tests.cli.conftest import Assent
from tests.cli.house import House, lines
from tests.docs.documents import read
from tests.servers import ServerProcess, dev_server, running

POLICY = """
default = "ask"

[[rules]]
name = "small changes"
tool = "config_change"
when = "args.limit < 10"
then = "allow"

[[rules]]
name = "finance"
tool = "config_change"
then = "ask"
by = { groups = ["finance"] }
risk = "high"
"""
HERE = ("--database", "sqlite:///.assent/assent.db")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running(dev_server(f"sqlite:///{tmp_path}/policy.db")) as started:
        yield started


def written(folder: Path, text: str = POLICY, name: str = "policy.toml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def test_policy_is_set_shown_tested_and_needs_its_scope(server: ServerProcess, assent: Assent, folder: Path) -> None:
    house = House(server, assent)
    small, large = house.request(payload={"limit": 5}), house.request(payload={"limit": 50})
    file = written(folder)

    tried = list(lines(house("policy", "test", file)))
    assert tried[0] == "2 calls checked, 1 would be treated differently"
    assert small in tried[2]
    assert large not in "".join(tried)
    assert tried[2].split()[1:4] == ["config_change", "ask", "allow"]
    assert house("policy", "test", file, "--json").json["differences"][0]["rule"] == "small changes"
    assert house("policy", "show").out.startswith('default = "advise"'), "trying out changes nothing"

    done = house("policy", "set", file)
    assert done.out.startswith("in force: version 2 (api), by reviewer:")
    assert tomllib.loads(house("policy", "show").out) == tomllib.loads(POLICY)
    assert house("policy", "show", "--version", "1").out.startswith('default = "advise"')
    assert [row["version"] for row in house("policy", "versions", "--json").json] == [2, 1]
    assert house("policy", "show", "--version", "9").code == 5
    refused = house("policy", "set", file, key=house.agent_key)
    assert (refused.code, refused.out) == (4, "")
    assert "policy:write" in refused.err

    asked = house.request(payload={"limit": 60})
    assert "risk high" in house.inbox("get", asked).out
    not_yet = house.inbox("approve", asked)
    assert not_yet.code == 4, not_yet.out
    with house.http(house.key) as admin:
        assert admin.patch("/api/users/local", json={"groups": ["finance"]}).json()["groups"] == ["finance"]
    assert house.inbox("approve", asked).code == 0


def test_item_shows_its_deciders(server: ServerProcess, assent: Assent, folder: Path) -> None:
    house = House(server, assent)
    house("policy", "set", written(folder))
    shown = list(lines(house.inbox("get", house.request(payload={"limit": 50}))))
    assert "  decided by group finance (rule finance)" in shown
    assert "you may not decide it: the rule 'finance' does not list you as a decider" in shown
    assert "decide" not in shown[-1]
    broken = list(lines(house.inbox("get", house.request(payload={"other": 1}))))
    assert "policy errors:" in broken


def test_policy_test_judges_a_hypothetical_call(assent: Assent, folder: Path) -> None:
    file = written(folder)
    small = assent("policy", "test", file, "--tool", "config_change", "--args", '{"limit": 5}')
    assert small.out.splitlines() == ["allow: runs without approval", "  rule      small changes"]
    large = list(lines(assent("policy", "test", file, "--tool", "config_change", "--args", '{"limit": 50}')))
    assert large[0] == "ask: a person decides"
    asked = "ask: a person decides"
    for more, told in (((), asked), (("--question",), "advise: listed; any caller who may run the thread may answer")):
        assert next(lines(assent("policy", "test", file, "--tool", "answer", *more))) == told
    failed = assent("policy", "test", file, "--tool", "config_change", "--json").json
    assert (failed["effect"], bool(failed["problems"])) == ("ask", True), "a condition that fails never lets it run"
    assert assent("policy", "test", file, "--tool", "x", "--args", "{").code == 2
    assert "nothing to test" in assent("policy", "test").err


def test_policy_test_without_a_file_uses_the_policy_in_force(assent: Assent, folder: Path) -> None:
    assert assent("policy", "set", written(folder), *HERE).code == 0
    tried = assent("policy", "test", "--tool", "refund_order", *HERE)
    assert tried.out.startswith("ask: "), tried.err


def test_standing_approval_is_given_listed_and_revoked(server: ServerProcess, assent: Assent) -> None:
    house = House(server, assent)
    item_id, _ = house.paused(text="x")
    with house.http(house.key) as admin:
        item = admin.get(f"/api/inbox/items/{item_id}").json()
        body = {**seen(item), "lifetime_seconds": 3600, "uses": 3}
        (made,) = admin.post("/api/standing-approvals", json=body).json()
    (row,) = (line for line in lines(house("policy", "standing")) if made["id"] in line)
    proposed = house("policy", "allow", item["id"], "--where", "to", "--for", "1d")
    assert "+ when = " in proposed.out
    assert "1 would have run without a person (1 pending)" in proposed.out
    assert "Nothing is given yet" in proposed.err
    given = house("policy", "allow", item["id"], "--any-arguments", "--uses", "2", "--yes", "--json").json["given"]
    assert (given[0]["uses_left"], given[0]["same_args"]) == (2, False)
    assert house("policy", "allow", item["id"], "--where", "<=5").code == 2
    assert row.split()[1:3] == ["send_email", "hitl"]
    revoked = house("policy", "revoke", made["id"])
    assert revoked.out == f"revoked: send_email needs approval again ({made['id']})\n"
    assert "revoked" in house("policy", "standing").out
    assert house("policy", "revoke", "nothing").code == 5


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("default = ", "policy.toml", ["not TOML"]),
        ('[[rules]]\nname = "x"\nthen = "maybe"', "policy.toml", ["rules[0].then"]),
        ("{", "policy.json", ["policy.json is not JSON"]),
        ('{"rules": [{"name": "x"}]}', "policy.json", ["rules[0].then", "is missing"]),
    ],
)
def test_invalid_policy_exits_with_its_problems(
    assent: Assent, folder: Path, text: str, name: str, words: list[str]
) -> None:
    for command in ("set", "test"):
        result = assent("policy", command, written(folder, text, name), *HERE)
        assert (result.code, result.out) == (2, "")
        assert all(word in result.err for word in words), result.err
    assert assent("policy", "set", "missing.toml", *HERE).code == 5


def test_policy_is_managed_on_the_database(assent: Assent, folder: Path) -> None:
    assert "no policy is set" in assent("policy", "show", *HERE).err
    assert assent("policy", "versions", *HERE).out.startswith("No policy yet")
    assert "version 1 (api), by service:operator" in assent("policy", "set", written(folder), *HERE).out
    assert assent("policy", "test", "policy.toml", *HERE).out == "0 calls checked, 0 would be treated differently\n"
    as_json = assent("policy", "show", "--json", *HERE).json["policy"]
    again = written(folder, json.dumps(as_json), "policy.json")
    assert assent("policy", "set", again, *HERE).code == 0
    refused = assent("policy", "set", again, "--as", "ana", *HERE)
    assert (refused.code, refused.out) == (4, "")
    assert "policy:write" in refused.err


def test_shown_policy_can_be_set_again() -> None:
    """Also with everything that a rule can say, and with characters that TOML writes in its own way."""
    examples = re.findall(r"```toml\n(.*?)```", read("docs/policies.md"), re.DOTALL)
    odd = r"\U000e0100\u202e\"\\\u007f👍"
    strange = f'default = {{ name = "d", then = "ask", approvals = 2 }}\n[[rules]]\nname = "{odd}"\nthen = "never"'
    for text in (*examples, strange, POLICY, ""):
        policy = policies.parse(text)
        assert policies.parse(to_toml(policies.to_json(policy))) == policy


def test_policy_that_nobody_can_approve_under_is_reported(assent: Assent, folder: Path) -> None:
    text = '[[rules]]\nname = "transfers"\ntool = "transfer"\nthen = "ask"\nconfirm = "passkey"'
    (folder / "policy.toml").write_text(text)
    done = assent("policy", "set", "policy.toml", *HERE)
    assert "warning: the rule 'transfers' requires a passkey, and nobody who may decide has" in done.err
    shown = assent("policy", "show", *HERE)
    assert "nobody who may decide has" in shown.err
    assert 'confirm = "passkey"' in shown.out
