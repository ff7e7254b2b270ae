"""Pages of other origins at `assent dev`: allowed by name, with a key and never without."""

from pathlib import Path

import httpx
import pytest

from assent.surfaces.cli.server.origins import HOSTED, origin_of
from tests.cli.command import Server, serving
from tests.cli.conftest import Assent

STUDIO, CHAT, OTHER = HOSTED["studio"], "https://chat.example.com:8443", "https://other.example.com"
ALLOWED = "access-control-allow-origin"


def preflight(server: Server, origin: str) -> httpx.Response:
    asked = {"method": "POST", "headers": "content-type,x-api-key", "private-network": "true"}
    headers = {"origin": origin} | {f"access-control-request-{name}": value for name, value in asked.items()}
    return httpx.options(f"{server.url}/threads", headers=headers, trust_env=False)


def test_page_of_an_allowed_origin_needs_a_key(folder: Path) -> None:
    with serving(folder, "dev", "--port", "0", "--allow-origin", "studio", "--allow-origin", CHAT) as server:
        assert server.said["may call"].startswith(f"{STUDIO}, {CHAT}, with the agent key;")
        for origin in (STUDIO, CHAT):
            allowed = preflight(server, origin)
            assert (allowed.status_code, allowed.headers[ALLOWED]) == (200, origin)
            assert allowed.headers["access-control-allow-private-network"] == "true"
            assert "access-control-allow-credentials" not in allowed.headers
        assert ALLOWED not in preflight(server, OTHER).headers

        key = server.said["agent key"]
        with_key = server.get("/api/me", origin=STUDIO, **{"x-api-key": key})
        assert (with_key.json()["kind"], with_key.headers[ALLOWED]) == ("agent", STUDIO)
        assert server.get("/api/me", origin=STUDIO).status_code == 401
        assert server.get("/api/me", origin=STUDIO, **{"x-auth-scheme": "langsmith"}).status_code == 401
        assert server.get("/api/me", origin="http://localhost:3000").json()["id"] == "local-agent"

        token = server.said["sign in"].partition("#")[2]
        cookie = httpx.post(f"{server.url}/api/session", json={"credential": token}).headers["set-cookie"].split(";")[0]
        assert server.get("/api/me", cookie=cookie).json()["name"] == "local"
        assert server.get("/api/me", cookie=cookie, origin=STUDIO).status_code == 403


def test_control_without_the_option_no_hosted_page_may_call(folder: Path) -> None:
    with serving(folder, "dev", "--port", "0") as server:
        assert "may call" not in server.said
        assert [origin for origin in HOSTED.values() if ALLOWED in preflight(server, origin).headers] == []


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("agent-inbox", "https://dev.agentinbox.ai"),
        ("https://Chat.Example.com:443", "https://chat.example.com"),
        ("http://[::1]:3000", "http://[::1]:3000"),
    ],
)
def test_an_origin_is_compared_as_browsers_write_it(name: str, origin: str) -> None:
    assert origin_of(name) == origin


@pytest.mark.parametrize(
    "name",
    [
        *("*", "", "null", "Studio", "chat.example.com", "https://", "ftp://chat.example.com", "https://*.example.com"),
        *("https://chat.example.com/", "https://chat.example.com/path", "https://chat.example.com?x", "https://a@b"),
        *("https://chat.example.com:x", "https://chät.example.com", "https://a,https://b", "https://a b"),
    ],
)
def test_invalid_origin_is_refused_with_the_expected_format(assent: Assent, name: str) -> None:
    refused = assent("dev", "--port", "0", "--allow-origin", name)
    first, hint = refused.err.splitlines()
    assert (refused.code, first) == (2, f"assent: --allow-origin: {name!r} is not an origin")
    assert hint == "  use studio, agent-inbox, or scheme://host[:port] without a path, such as https://chat.example.com"
