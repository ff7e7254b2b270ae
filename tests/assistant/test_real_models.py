"""One conversation with a real model of each provider: a request, its proposal, the approval, the event.

Each needs a key of yours (for Ollama an address) and is skipped without one. The same conversation with a scripted
provider runs always, so that the test itself is known to work.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from assent import LocalInbox
from assent.assistant.mcp.client import MODERN, McpClient
from assent.assistant.mcp.servers import McpServers
from assent.assistant.mcp.targets import calendar
from assent.assistant.models import executor_model, require_models, router_model
from assent.assistant.nodes import Nodes
from assent.errors import ConfigError
from assent.settings import AssistantSettings, read_assistant_settings
from tests.assistant.calendars import served
from tests.assistant.desk import Desk
from tests.assistant.test_models import Provider, provider, settings_for, uses
from tests.missing import missing

__all__ = ["provider"]

REQUEST = "Create a calendar event called Dentist on 7 January 2030 from 09:00 to 09:30 UTC."
START = "2030-01-07T09:00:00+00:00"


@dataclass(frozen=True)
class Real:
    """A provider. `variable` has its key, or its address; TEST_OPENAI_MODEL, … names another model."""

    provider: str
    variable: str
    model: str

    def settings(self) -> AssistantSettings:
        given = os.environ.get(self.variable, "").strip()
        if not given:
            pytest.skip(f"no real model: {self.variable} is not set")
        model = os.environ.get(f"TEST_{self.provider.upper()}_MODEL") or self.model
        variables = {**os.environ, "ASSISTANT_MODEL": f"{self.provider}:{model}"}
        if self.provider == "ollama":
            variables["ASSISTANT_MODEL_URL"] = given if "://" in given else f"http://{given}"
        settings = read_assistant_settings(variables)
        try:
            require_models(settings)
        except ConfigError as error:
            missing(f"{error}: {error.hint}")
        return settings


REAL = [
    Real("openai", "OPENAI_API_KEY", "gpt-5-mini"),
    Real("anthropic", "ANTHROPIC_API_KEY", "claude-sonnet-4-5"),
    Real("google_genai", "GOOGLE_API_KEY", "gemini-2.5-flash"),
    Real("ollama", "OLLAMA_HOST", "qwen3"),
]


async def asks_and_does(settings: AssistantSettings, inbox: LocalInbox, folder: Path) -> None:
    client = McpServers({"calendar": McpClient(calendar(folder / "calendar.db"), name="here", mode=MODERN)})
    there = Desk(folder / "gate.db", Nodes(router_model(settings), executor_model(settings), client, inbox=inbox))
    asked = await there.say(REQUEST)
    if asked and asked["kind"] == "clarification":
        asked = await there.respond(*["Exactly as I said, in the primary calendar."] * len(asked["clarifications"]))
    assert asked, there.messages[-1].text
    [made] = asked["tool_calls"]
    assert (made["tool_name"], made["arguments"]["name"]) == ("create_event", "Dentist")
    listing = {"start_time": "2030-01-07"}
    assert (await client.call("list_events", listing)).structured["events"] == []
    assert await there.approve() is None
    [event] = (await client.call("list_events", listing)).structured["events"]
    assert (event["name"], event["start"]) == ("Dentist", START)
    assert there.messages[-1].text
    await client.close()


@pytest.mark.parametrize("real", REAL, ids=lambda real: real.provider)
async def test_request_is_proposed_approved_and_done(real: Real, inbox: LocalInbox, folder: Path) -> None:
    await asks_and_does(real.settings(), inbox, folder)


async def test_the_same_with_a_scripted_provider(provider: Provider, inbox: LocalInbox, folder: Path) -> None:
    provider.script = [
        uses("AllowedTools", types=["calendar"]),
        uses("create_event", name="Dentist", start=START, duration_minutes=30),
    ]
    with served(provider.app, lifespan=False) as address:
        await asks_and_does(settings_for(address), inbox, folder)


def test_provider_without_a_key_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(pytest.skip.Exception, match="OPENAI_API_KEY is not set"):
        REAL[0].settings()
