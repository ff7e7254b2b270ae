"""The commands that stay, as real processes: what they print, when they refuse, how they end."""

import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.cli.command import execute, serving
from tests.cli.conftest import Assent


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which someone else listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        yield other.getsockname()[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_server_cleanly(folder: Path, number: signal.Signals) -> None:
    with serving(folder) as server:
        assert server.get("/ok").json() == {"ok": True, "services": {}}
        assert server.stop(number) == 0
        assert "Traceback" not in "".join(server.log)
    assert not (folder / ".assent" / "assent.db-wal").exists(), "the store was closed"
    with pytest.raises(httpx.ConnectError):
        server.get("/ok")


def test_a_first_start_prints_what_one_needs_and_each_later_one_a_fresh_link(folder: Path) -> None:
    with serving(folder) as first:
        assert first.said.keys() == {"listening", "serving", "data", "sign in", "agent key", "reviewer key"}
        assert first.said["data"] == "sqlite:///.assent/assent.db"
        assert first.said["sign in"].startswith(f"{first.url}/login#login_")
        agent, reviewer = first.said["agent key"], first.said["reviewer key"].split()[0]
        assert first.get("/api/me", **{"x-api-key": agent}).json()["kind"] == "agent"
        person = first.get("/api/me", **{"x-api-key": reviewer}).json()
        assert (person["kind"], person["name"]) == ("reviewer", "local")
        assert first.stop() == 0
    with serving(folder) as second:
        assert second.said.keys() == {"listening", "serving", "data", "sign in"}
        assert second.said["sign in"].partition("#")[2] != first.said["sign in"].partition("#")[2]
        assert second.get("/api/me", **{"x-api-key": agent}).status_code == 200


def test_the_secrets_of_a_start_are_not_in_its_log(folder: Path) -> None:
    with serving(folder, changes={"ASSENT_LOG_LEVEL": "debug"}) as server:
        token = server.said["sign in"].partition("#")[2]
        httpx.post(f"{server.url}/api/session", json={"credential": token})
        server.get("/api/me", **{"x-api-key": server.said["agent key"]})
        server.stop()
        log = "".join(server.log)
    assert "/api/session" in log
    for secret in (token, server.said["agent key"], server.said["reviewer key"].split()[0]):
        assert secret not in log


def test_a_start_that_fails_does_not_spend_what_is_shown_once(assent: Assent, folder: Path, taken: int) -> None:
    result = assent("dev", "--port", str(taken))
    assert (result.code, result.out) == (3, "")
    first, hint = result.err.splitlines()
    assert first == f"assent: cannot listen on 127.0.0.1:{taken}: Address already in use"
    assert hint == "  choose another --port"
    assert assent("keys", "list", "--json").json == []
    with serving(folder) as server:
        assert server.said["agent key"]


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.1"])
def test_a_host_that_is_not_ours_is_one_line(assent: Assent, host: str) -> None:
    assent("users", "create", "ana", "--role", "admin")
    result = assent("serve", "--host", host)
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith(f"assent: cannot listen on {host}:2024: ")


@pytest.mark.promise("P10")
@pytest.mark.parametrize(
    "arguments",
    [("serve", "--host", "0.0.0.0"), ("serve",), ("dev", "--host", "0.0.0.0"), ("demo", "--host", "::"), ("dev", "--host", "10.0.0.7")],
)
def test_an_open_door_is_refused_with_what_to_set(assent: Assent, arguments: tuple[str, ...]) -> None:
    result = assent(*arguments)
    assert (result.code, result.out) == (3, "")
    first, hint = result.err.splitlines()[-2:]
    assert first.startswith("assent: refused to start on ")
    assert "assent users create NAME --role admin" in hint


def test_what_the_refusal_says_to_set_is_enough(folder: Path) -> None:
    assert execute(folder, "serve", "--host", "0.0.0.0", "--port", "0").code == 3
    assert execute(folder, "users", "create", "ana", "--role", "admin").code == 0
    with serving(folder, "serve", "--host", "0.0.0.0", "--port", "0") as server:
        assert server.said["listening"].endswith(" on 0.0.0.0")
        assert server.get("/ok").status_code == 200
        assert server.get("/api/me").status_code == 401
        assert server.said["sign in"] == "assent users login-link NAME"
        link = execute(folder, "users", "login-link", "ana", "--url", server.url).out.strip()
        answer = httpx.post(f"{server.url}/api/session", json={"credential": link.partition("#")[2]})
        assert answer.json()["name"] == "ana"


def test_the_demo_serves_on_its_own_port_and_file(folder: Path) -> None:
    with serving(folder, "demo", "--port", "0") as server:
        assert server.said["data"] == "sqlite:///.assent/demo.db"
        assert server.get("/ok").status_code == 200


def test_a_server_on_ipv6(folder: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with serving(folder, "dev", "--host", "::1", "--port", "0") as server:
        assert server.url.startswith("http://[::1]:")
        assert server.get("/api/me").json()["id"] == "local-agent"


def test_a_local_user_who_was_disabled_does_not_keep_the_server_from_starting(folder: Path) -> None:
    with serving(folder) as server:
        server.stop()
    assert execute(folder, "users", "disable", "local").code == 0
    with serving(folder) as server:
        assert server.said["sign in"] == "assent users login-link NAME"


def test_commands_work_while_the_server_runs_and_take_effect_within_a_second(folder: Path) -> None:
    with serving(folder) as server:
        new = execute(folder, "keys", "create", "bot", "--json").json
        assert server.get("/api/me", **{"x-api-key": new["secret"]}).status_code == 200
        assert execute(folder, "keys", "revoke", new["id"]).code == 0
        assert server.get("/api/me", **{"x-api-key": new["secret"]}).status_code == 401


@pytest.mark.parametrize("arguments", [("worker",), ("worker", "--database", "postgresql://127.0.0.1:1/none")])
def test_a_worker_says_what_it_needs(assent: Assent, arguments: tuple[str, ...]) -> None:
    result = assent(*arguments)
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("assent: ")


def test_behind_a_proxy_that_is_trusted_the_cookie_is_secure_and_behind_any_other_not(folder: Path) -> None:
    execute(folder, "users", "create", "ana")
    forwarded = {"x-forwarded-proto": "https", "x-forwarded-for": "203.0.113.9"}
    for proxies, secure in (("127.0.0.1", True), ("", False)):
        with serving(folder, "serve", "--port", "0", changes={"ASSENT_TRUSTED_PROXIES": proxies}) as server:
            token = execute(folder, "users", "login-link", "ana").out.strip().partition("#")[2]
            answer = httpx.post(f"{server.url}/api/session", json={"credential": token}, headers=forwarded)
            assert answer.status_code == 200
            assert ("Secure" in answer.headers["set-cookie"]) is secure
