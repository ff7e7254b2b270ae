"""`assent policy` against a real server, and on the database itself."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from assent.domain import policies
from assent.domain.policy_text import to_toml
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


def test_show_set_test_versions_and_who_may(server: ServerProcess, assent: Assent, folder: Path) -> None:
    house = House(server, assent)
    small, large = house.request(payload={"limit": 5}), house.request(payload={"limit": 50})
    file = written(folder)

    tried = list(lines(house("policy", "test", file)))
    assert tried[0] == "2 calls looked at, 1 would be treated differently"
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


def test_standing_approvals(server: ServerProcess, assent: Assent) -> None:
    house = House(server, assent)
    item_id, _ = house.paused(text="x")
    with house.http(house.key) as admin:
        body = {"item_id": item_id, "lifetime_seconds": 3600, "uses": 3}
        (made,) = admin.post("/api/standing-approvals", json=body).json()
    (row,) = (line for line in lines(house("policy", "standing")) if made["id"] in line)
    assert row.split()[1:3] == ["send_email", "hitl"]
    revoked = house("policy", "revoke", made["id"])
    assert revoked.out == f"revoked: send_email is asked for again ({made['id']})\n"
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
def test_what_is_no_policy(assent: Assent, folder: Path, text: str, name: str, words: list[str]) -> None:
    for command in ("set", "test"):
        result = assent("policy", command, written(folder, text, name), *HERE)
        assert (result.code, result.out) == (2, "")
        assert all(word in result.err for word in words), result.err
    assert assent("policy", "set", "missing.toml", *HERE).code == 5


def test_on_the_database_itself(assent: Assent, folder: Path) -> None:
    assert "nobody has written a policy" in assent("policy", "show", *HERE).err
    assert assent("policy", "versions", *HERE).out.startswith("Nobody has written one")
    assert "version 1 (api), by service:operator" in assent("policy", "set", written(folder), *HERE).out
    assert assent("policy", "test", "policy.toml", *HERE).out == "0 calls looked at, 0 would be treated differently\n"
    as_json = assent("policy", "show", "--json", *HERE).json["policy"]
    again = written(folder, json.dumps(as_json), "policy.json")
    assert assent("policy", "set", again, *HERE).code == 0
    refused = assent("policy", "set", again, "--as", "ana", *HERE)
    assert (refused.code, refused.out) == (4, "")
    assert "policy:write" in refused.err


def test_what_is_shown_can_be_set_again() -> None:
    """Also with everything that a rule can say, and with characters that TOML writes in its own way."""
    (example,) = re.findall(r"```toml\n(.*?)```", read("docs/policies.md"), re.DOTALL)
    odd = r"\U000e0100\u202e\"\\\u007f👍"
    strange = f'default = {{ name = "d", then = "ask", approvals = 2 }}\n[[rules]]\nname = "{odd}"\nthen = "never"'
    for text in (example, strange, POLICY, ""):
        policy = policies.parse(text)
        assert policies.parse(to_toml(policies.to_json(policy))) == policy
