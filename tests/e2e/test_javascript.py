"""The stock JavaScript SDK in two versions against a real server: each file in `js/` is a run of Node's own tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.cutting import cutting
from tests.e2e.holding import Gates
from tests.javascript import INSTALLED, VERSIONS, printed, sdk
from tests.servers import ServerProcess

TESTS = Path(__file__).parent / "js"

Run = Callable[[str, str], None]


@pytest.fixture
def javascript(node: Path, server: ServerProcess, tmp_path: Path) -> Run:
    return partial(run, node, server.url, tmp_path)


def run(node: Path, url: str, folder: Path, version: str, name: str, **more: str) -> None:
    environment = {
        "TMPDIR": str(folder),
        "ASSENT_URL": url,
        "INSTALLED": str(INSTALLED),
        "LANGGRAPH_SDK": sdk(version),
        **more,
    }
    printed(node, "--test-reporter=spec", TESTS / f"{name}.mjs", **environment)


@pytest.mark.promise("SERVE-01")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["assistants", "threads", "runs", "store_crons"])
def test_javascript_sdk_works_on_every_route(javascript: Run, version: str, name: str) -> None:
    javascript(version, name)


@pytest.mark.promise("SERVE-01")
@pytest.mark.parametrize("name", ["events", "react", "assistant_ui"])
def test_javascript_chat_clients_stream_ask_and_answer(javascript: Run, name: str) -> None:
    javascript("sdk-1.12", name)


@pytest.mark.promise("INBOX-11", "INBOX-12", "INBOX-13", "INBOX-14", "INBOX-16", "INBOX-23")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_inbox_example_is_answered_from_typescript(javascript: Run, version: str) -> None:
    javascript(version, "inbox")


@pytest.mark.parametrize("version", VERSIONS)
async def test_javascript_sdk_resumes_a_broken_connection(
    node: Path, server: ServerProcess, tmp_path: Path, version: str
) -> None:
    gates = Gates(tmp_path)
    with cutting(server.url) as proxy:
        running = asyncio.to_thread(run, node, proxy.url, tmp_path, version, "broken_connection", GATES=str(tmp_path))
        going = asyncio.ensure_future(running)
        gates.open("a")
        await gates.reached("first part")
        proxy.cut()
        gates.open()
        await going
