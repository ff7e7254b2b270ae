"""The `webhooks` block of a langgraph.json: it narrows, adds headers, and stops a start that it would make leak."""

from typing import Any

import pytest

from assent.errors import ConfigError, TargetRefused
from assent.outbox.addresses import LOOPBACK, Allowed
from assent.outbox.client import Outbound
from assent.outbox.targets import Targets
from assent.outbox.webhook_rules import WebhookRules, read
from tests.receiver import receiving

ENVIRONMENT = {"LG_WEBHOOK_TOKEN": "t0ken", "MY_TOKEN": "mine", "DATABASE_PASSWORD": "secret"}


def test_without_a_block_nothing_is_narrowed() -> None:
    assert read({}, ENVIRONMENT) == WebhookRules()
    assert Targets().check_url("http://hooks.example:8080/x").port == 8080


@pytest.mark.parametrize(
    ("policy", "url", "allowed"),
    [
        ({}, "https://hooks.example/x", True),
        ({}, "http://hooks.example/x", False),
        ({"require_https": False}, "http://hooks.example/x", True),
        ({"allowed_domains": ["hooks.example"]}, "https://hooks.example/x", True),
        ({"allowed_domains": ["Hooks.Example"]}, "https://HOOKS.example/x", True),
        ({"allowed_domains": ["hooks.example"]}, "https://evil.example/x", False),
        ({"allowed_domains": ["hooks.example"]}, "https://hooks.example.evil.example/x", False),
        ({"allowed_domains": ["*.corp.example"]}, "https://a.corp.example/x", True),
        ({"allowed_domains": ["*.corp.example"]}, "https://corp.example/x", False),
        ({"allowed_domains": ["*.corp.example"]}, "https://evilcorp.example/x", False),
        ({"allowed_ports": [443, 8443]}, "https://hooks.example/x", True),
        ({"allowed_ports": [443, 8443]}, "https://hooks.example:8443/x", True),
        ({"allowed_ports": [443]}, "https://hooks.example:22/x", False),
        ({"max_url_length": 30}, "https://hooks.example/x", True),
        ({"max_url_length": 30}, "https://hooks.example/" + "x" * 30, False),
        ({"allowed_domains": ["10.0.0.1"], "require_https": False}, "http://10.0.0.1/", False),
    ],
)
def test_the_policy_narrows_and_never_widens(policy: dict[str, Any], url: str, allowed: bool) -> None:
    targets = Targets(rules=read({"url": policy}, ENVIRONMENT))
    if allowed:
        assert targets.check_url(url).path.startswith("/x")
    else:
        with pytest.raises(TargetRefused):
            targets.check_url(url)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/x", "http://localhost/x", "http://[::1]/x", "http://[::ffff:127.0.0.1]/x"]
)
def test_disabled_loopback_is_refused_where_the_operator_allows_it(url: str) -> None:
    policy = {"require_https": False}
    allowed = Allowed.named(LOOPBACK)
    assert Targets(allowed, read({"url": policy}, ENVIRONMENT)).check_url(url).path == "/x"
    with pytest.raises(TargetRefused):
        Targets(allowed, read({"url": {**policy, "disable_loopback": True}}, ENVIRONMENT)).check_url(url)


def test_headers_are_filled_in_from_the_environment() -> None:
    headers = {"Authorization": "Bearer ${{ env.LG_WEBHOOK_TOKEN }}", "x-plain": "${{env.LG_WEBHOOK_TOKEN}}-1"}
    assert read({"headers": headers}, ENVIRONMENT).headers == {"Authorization": "Bearer t0ken", "x-plain": "t0ken-1"}
    mine = {"env_prefix": "MY_", "headers": {"x": "${{ env.MY_TOKEN }}"}}
    assert read(mine, ENVIRONMENT).headers == {"x": "mine"}


@pytest.mark.parametrize(
    "section",
    [
        {"headers": {"x": "${{ env.DATABASE_PASSWORD }}"}},
        {"headers": {"x": "${{ env.LG_WEBHOOK_MISSING }}"}},
        {"headers": {"x": 1}},
        {"headers": {"x y": "1"}},
        {"headers": {"x": "a\r\nb: c"}},
        {"headers": []},
        {"url": []},
        {"url": {"require_https": "yes"}},
        {"url": {"allowed_ports": ["443"]}},
        {"url": {"allowed_ports": [99999]}},
        {"url": {"max_url_length": True}},
        {"url": {"disable_loopback": False}},
    ],
)
def test_invalid_block_stops_the_start_and_shows_no_secret(section: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        read(section, ENVIRONMENT)
    assert not any(secret in refused.value.message for secret in ENVIRONMENT.values())


@pytest.mark.promise("P10")
async def test_project_headers_are_not_sent_to_another_host_after_a_redirect() -> None:
    async with receiving() as first, receiving() as other:
        outbound = Outbound(Targets(Allowed.named(LOOPBACK)))
        for place in (f"{first.url}/again", other.url):
            first.answers.append(f"307 Over there\r\nlocation: {place}")
            headers = {"x-plain": "1"}
            await outbound.send("POST", first.url, headers=headers, credentials={"X-Api-Key": "k3y"}, content=b"x")
        await outbound.close()
    assert [call.headers.get("x-api-key") for call in first.calls] == ["k3y", "k3y", "k3y"]
    (elsewhere,) = other.calls
    assert (elsewhere.headers.get("x-api-key"), elsewhere.headers["x-plain"]) == (None, "1")


async def test_policy_applies_to_redirects() -> None:
    async with receiving() as front:
        front.answers.append("307 Over there\r\nlocation: http://elsewhere.example/")
        rules = read({"url": {"require_https": False, "allowed_domains": ["127.0.0.1"]}}, ENVIRONMENT)
        outbound = Outbound(Targets(Allowed.named(LOOPBACK), rules))
        with pytest.raises(TargetRefused, match="allowed domains"):
            await outbound.send("POST", front.url, content=b"x")
        await outbound.close()
