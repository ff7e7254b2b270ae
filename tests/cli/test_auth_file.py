"""A server whose auth file does not load does not start, and says which file it is."""

import json
from pathlib import Path

import pytest

from tests.cli.command import execute, serving

PRODUCTION = {"ASSENT_SECRET_KEY": "a key of this test, long enough to be one"}


@pytest.mark.promise("P7")
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError"),
        ("auth = None", "is a NoneType"),
        ("from langgraph_sdk import Auth\nauth = Auth()", "no @auth.authenticate handler"),
        (None, "there is no such file"),
    ],
)
@pytest.mark.parametrize("command", ["dev", "serve"])
def test_auth_file_that_does_not_load_stops_the_start(
    tmp_path: Path, command: str, code: str | None, told: str
) -> None:
    manifest = {"graphs": {}, "auth": {"path": "./my_guard.py:auth"}}
    (tmp_path / "langgraph.json").write_text(json.dumps(manifest))
    if code is not None:
        (tmp_path / "my_guard.py").write_text(code)
    refused = execute(tmp_path, command, "--port", "0", "--database", f"sqlite:///{tmp_path}/assent.db")
    assert refused.code == 3
    assert "my_guard.py:auth" in refused.err
    assert told in refused.err
    assert "listening" not in refused.out


def test_control_with_a_valid_auth_file_the_handler_authenticates(tmp_path: Path) -> None:
    """No user has to be created first: every user that the handler knows can call."""
    code = "from langgraph_sdk import Auth\nauth = Auth()\n\n@auth.authenticate\nasync def who(authorization):\n"
    (tmp_path / "my_guard.py").write_text(f"{code}    return authorization.split()[1]\n")
    manifest = {"graphs": {}, "auth": {"path": "./my_guard.py:auth"}}
    (tmp_path / "langgraph.json").write_text(json.dumps(manifest))
    database = f"sqlite:///{tmp_path}/assent.db"
    arguments = ("serve", "--port", "0", "--database", database)
    with serving(tmp_path, *arguments, changes=PRODUCTION) as server:
        assert server.get("/api/me").status_code == 401
        assert server.get("/api/me", authorization="Bearer ada").json()["id"] == "ada"
