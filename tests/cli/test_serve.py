"""The commands that stay, as real processes: what they print, when they refuse, how they end."""

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.cli.command import EVERYWHERE, execute, serving
from tests.cli.conftest import Assent

PRODUCTION = {"ASSENT_SECRET_KEY": "a key of this test, long enough to be one"}


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which someone else listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        yield other.getsockname()[1]


def test_first_start_prints_url_and_keys_and_logs_no_secret(folder: Path) -> None:
    with serving(folder, changes={"ASSENT_LOG_LEVEL": "debug"}) as server:
        assert server.said.keys() == {"listening", "serving", "data", "sign in", "agent key", "reviewer key"}
        assert server.said["data"] == "sqlite:///.assent/assent.db"
        assert server.said["sign in"].startswith(f"{server.url}/login#login_")
        agent, reviewer = server.said["agent key"], server.said["reviewer key"].split()[0]
        token = server.said["sign in"].partition("#")[2]
        assert server.get("/api/me", **{"x-api-key": agent}).json()["kind"] == "agent"
        assert server.get("/api/me", **{"x-api-key": reviewer}).json()["name"] == "local"
        forwarded = {"x-forwarded-proto": "https"}
        answer = httpx.post(f"{server.url}/api/session", json={"credential": token}, headers=forwarded)
        assert answer.json()["name"] == "local"
        assert "secure" not in answer.headers["set-cookie"].lower(), "nobody named a proxy to believe"
        server.stop()
        log = "".join(server.log)
    assert "/api/session" in log
    assert not [secret for secret in (token, agent, reviewer) if secret in log]


def test_server_refuses_bad_requests_and_ends_cleanly_on_sigterm(folder: Path) -> None:
    with serving(folder) as server:
        assert server.get("/ok").json() == {"ok": True, "services": {}}
        assert server.get("/ok", host="evil.example").status_code == 421
        assert server.get("/x%0A2026-01-01 forged").status_code == 404
        too_large = httpx.post(f"{server.url}/api/session", content=(b"x" * 1024 for _ in range(17)))
        assert too_large.status_code == 413
        assert server.stop(signal.SIGTERM) == 0
        log = "".join(server.log)
    (forged,) = [line for line in log.splitlines() if "forged" in line]
    assert 'path="/x\\n2026-01-01 forged"' in forged
    assert "Traceback" not in log
    assert not (folder / ".assent" / "assent.db-wal").exists(), "the store was closed"
    with pytest.raises(httpx.ConnectError):
        server.get("/ok")


def test_stop_does_not_wait_for_open_streams(folder: Path) -> None:
    with serving(folder) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        key = {"x-api-key": server.said["reviewer key"].split()[0]}
        with client.stream("GET", "/api/inbox/events", headers=key) as watching:
            asked = time.monotonic()
            assert server.stop(signal.SIGTERM) == 0
            assert time.monotonic() - asked < 15, "requests under way are given 20 seconds"
            assert watching.read() == b": here\n\n", "its stream came to an end, and was not broken off"


def test_a_later_start_prints_a_link_and_commands_beside_it_take_effect(folder: Path, assent: Assent) -> None:
    assent("users", "create", "local", "--role", "admin")
    with serving(folder) as server:
        assert server.said.keys() == {"listening", "serving", "data", "sign in"}
        assert server.said["sign in"].startswith(f"{server.url}/login#login_")
        new = assent("keys", "create", "bot", "--json").json
        assert server.get("/api/me", **{"x-api-key": new["secret"]}).status_code == 200
        assert assent("keys", "revoke", new["id"]).code == 0
        revoked = asked = time.monotonic()
        while server.get("/api/me", **{"x-api-key": new["secret"]}).status_code == 200:
            assert asked - revoked < 1
            asked = time.monotonic()
        assert server.stop(signal.SIGINT) == 0
        assert "Traceback" not in "".join(server.log)


def test_disabled_local_user_does_not_prevent_the_start(folder: Path, assent: Assent) -> None:
    assent("users", "create", "local", "--role", "admin")
    assent("users", "disable", "local")
    with serving(folder) as server:
        assert server.said["sign in"] == "assent users login-link NAME"


def test_installed_command_starts_the_server(folder: Path) -> None:
    assert execute(folder, "version", "--json").json.keys() >= {"assent", "langgraph", "python"}


def test_failed_start_creates_no_keys(assent: Assent, taken: int) -> None:
    result = assent("dev", "--port", str(taken))
    assert (result.code, result.out) == (3, "")
    first, hint = result.err.splitlines()
    assert first == f"assent: cannot listen on 127.0.0.1:{taken}: Address already in use"
    assert hint == "  choose another --port"
    assert assent("keys", "list", "--json").json == []


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.1"])
def test_unavailable_host_is_reported_in_one_line(assent: Assent, host: str) -> None:
    assent("users", "create", "ana", "--role", "admin")
    result = assent("dev", "--host", host)
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith(f"assent: cannot listen on {host}:2024: ")


@pytest.mark.promise("P10")
@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--host", EVERYWHERE),
        ("serve",),
        ("dev", "--host", EVERYWHERE),
        ("demo", "--host", "::"),
        ("dev", "--host", "10.0.0.7"),
    ],
)
def test_unsafe_start_is_refused_with_the_settings_to_change(assent: Assent, arguments: tuple[str, ...]) -> None:
    result = assent(*arguments)
    assert (result.code, result.out) == (3, "")
    first, hint = result.err.splitlines()[-2:]
    assert first.startswith("assent: refused to start on ")
    assert "assent users create NAME --role admin" in hint


def test_settings_named_by_the_refusals_are_sufficient(assent: Assent, folder: Path) -> None:
    """Then it serves: on every address, behind a TLS proxy that is named, to whoever has a credential."""
    assert assent("users", "create", "ana", "--role", "admin").code == 0
    missing = assent("serve", "--host", EVERYWHERE)
    assert (missing.code, missing.err.splitlines()[0][:36]) == (3, "assent: refused to start: secret_key")
    behind_proxy = {**PRODUCTION, "ASSENT_TRUSTED_PROXIES": "127.0.0.1"}
    with serving(folder, "serve", "--host", EVERYWHERE, "--port", "0", changes=behind_proxy) as server:
        assert server.said["listening"].endswith(f" on {EVERYWHERE}")
        assert server.said["sign in"] == "assent users login-link NAME"
        assert server.get("/ok").status_code == 200
        assert server.get("/api/me").status_code == 401
        token = assent("users", "login-link", "ana").out.strip().partition("#")[2]
        forwarded = {"x-forwarded-proto": "https", "x-forwarded-for": "203.0.113.9"}
        answer = httpx.post(f"{server.url}/api/session", json={"credential": token}, headers=forwarded)
        assert answer.json()["name"] == "ana"
        assert "secure" in answer.headers["set-cookie"].lower()


def test_server_listens_on_ipv6(folder: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serving(folder, "dev", "--host", "::1", "--port", "0") as server:
        assert server.url.startswith("http://[::1]:")
        assert server.get("/api/me").json()["id"] == "local-agent"


def test_worker_without_postgres_is_refused_with_the_reason(assent: Assent) -> None:
    result = assent("worker")
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("assent: a worker needs Postgres")
