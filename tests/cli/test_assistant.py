"""`assent assistant`, and what its start says about models and the calendar."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import httpx
import pytest

from assent.settings import suggested_models
from tests.assistant.events import events_in
from tests.cli.command import PATIENCE, Server, execute, serving


def create_event(server: Server) -> None:
    key = {"x-api-key": server.said["reviewer key"].split()[0]}
    request = {"thread_id": "t", "user_request": "create a meeting called Standup tomorrow at 9am"}
    with httpx.Client(base_url=server.url, headers=key, trust_env=False, timeout=PATIENCE) as http:
        asked = http.post("/run", json=request).json()
        [call] = asked["pending_action"]["tool_calls"]
        answer = {"thread_id": "t", "approvals": [{"call_id": call["call_id"], "approved": True}]}
        assert http.post("/resume", json=answer).status_code == 200


def test_assistant_is_served_without_examples_and_a_key_only_suggests_a_model(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=sk-do-not-tell\n")
    with serving(tmp_path, "assistant", "--port", "0", changes={"ASSENT_LOG_LEVEL": "info"}) as server:
        assert server.get("/api/inbox/items?filter=is:pending").json()["items"] == []
        create_event(server)  # by the offline planner: the key has chosen no model
        log = "".join(server.log)
    assert events_in(tmp_path / ".assent" / "calendar.db") == [("Standup", "09:00")]
    assert "ASSISTANT_MODEL=anthropic:" in log
    assert "sk-do-not-tell" not in log


def test_production_refuses_an_unsafe_start(tmp_path: Path) -> None:
    result = execute(tmp_path, "assistant", "--port", "0", "--production")
    assert (result.code, "refused to start" in result.err) == (3, True)


def test_model_without_a_key_stops_the_start_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ASSISTANT_MODEL=openai:gpt-5\nOPENAI_API_KEY=\n")
    result = execute(tmp_path, "assistant", "--port", "0")
    assert (result.code, "OPENAI_API_KEY" in result.err) == (3, True)
    assert "Traceback" not in result.err
    assert "reviewer key" not in result.out
    assert not (tmp_path / ".assent" / "assistant.db").exists()


def test_calendar_is_beside_its_database_and_private(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    database = tmp_path / "there" / "mine.db"
    database.parent.mkdir()
    with serving(tmp_path / "here", "demo", "--port", "0", "--database", f"sqlite:///{database}") as server:
        create_event(server)
    file = database.with_name("mine.calendar.db")
    assert events_in(file) == [("Standup", "09:00")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not (tmp_path / "here" / ".assent" / "calendar.db").exists()


@pytest.mark.parametrize(
    ("environment", "suggested"),
    [
        ({}, {}),
        ({"OPENAI_API_KEY": " "}, {}),
        ({"OPENAI_API_KEY": "k"}, {"OPENAI_API_KEY": "openai:gpt-5"}),
        ({"GEMINI_API_KEY": "k"}, {"GEMINI_API_KEY": "google_genai:gemini-2.5-flash"}),
    ],
)
def test_model_is_suggested_for_each_key(environment: dict[str, str], suggested: dict[str, str]) -> None:
    assert suggested_models(environment) == suggested


def test_example_of_an_env_file_names_only_settings() -> None:
    lines = (Path(__file__).parents[2] / "examples" / "assistant.env").read_text(encoding="utf-8").splitlines()
    named = {line.lstrip("# ").partition("=")[0] for line in lines if "=" in line.partition(" (")[0] and line.isascii()}
    known = {row["setting"] for row in json.loads(execute(Path.cwd(), "config", "--json").out)}
    assert {name for name in named if name.isupper()} <= known
