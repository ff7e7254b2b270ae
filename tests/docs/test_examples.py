"""Every example of every page works: shell lines run against real servers, Python is executed, files are read by the
code that reads them. A block that cannot be executed here needs its reason in `NOT_EXECUTED`."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shutil
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.types import interrupt
from langgraph_sdk import Auth, get_client
from langgraph_sdk.errors import APIStatusError

from assent.app import open_services
from assent.errors import AssentError
from assent.identity.model.access import Principal, operator
from assent.identity.model.keys import ApiKey
from assent.kernel.store.transaction import Tx
from assent.review.model.policies import parse
from assent.runs.project.manifest import read_manifest
from assent.settings import Settings, load, read_assistant_settings
from assent.surfaces.web.renderers.registry import GROUP
from tests.docs import asking
from tests.docs.documents import FILES, ROOT, Block, blocks, fenced, read
from tests.docs.shell import Shell
from tests.docs.stage import PRELUDES, PROJECT, SWAPS, Stage
from tests.forking import forker
from tests.graphs.agents import ScriptedModel, look_up
from tests.missing import missing

SHELL = {"sh", "bash", "console"}
EXECUTED = {*SHELL, "python", "json", "toml", "yaml", "sql"}

NOT_EXECUTED = {
    ("operations.md", "server {"): "a configuration of nginx, which the tests do not install",
    ("operations.md", "$ make setup && .venv/bin/python -m hatchling build -t wheel"): "tests/install does",
    ("assistant.md", "$ make setup extras"): "tests/cli/test_assistant.py starts the server, tests/install the target",
    ("calendar.md", "ASSISTANT_CALDAV_URL=https://dav.example.com/    # the server, an account or one calendar"): (
        "tests/assistant/test_caldav.py sets them for a server of its own"
    ),
    ("CONTRIBUTING.md", "$ OPENAI_API_KEY=… ANTHROPIC_API_KEY=… GOOGLE_API_KEY=… OLLAMA_HOST=127.0.0.1:11434 \\"): (
        "it needs keys of providers"
    ),
    ("lifecycle.md", "stateDiagram-v2"): "tests/unit/test_lifecycle.py compares it with the code",
}
"""The blocks that no test executes, by page and first line, each with the reason."""

ELSEWHERE = {
    "assistant.md": ({"sh"}, "tests/docs/test_assistant.py"),
    "README.md": ({"sh"}, "tests/docs/test_assistant.py"),
    "gate.md": ({"python"}, "tests/gate/test_docs.py"),
    "renderers.md": ({"python"}, "tests/web/test_renderers.py"),
}
"""The blocks that have a test of their own, which checks more than that they work: by page, languages and the test."""

BLOCKS = [block for file in FILES for block in fenced(file)]
WRONG = [
    Block("wrong.md", line, language, f"{text}\n", section="Logins (`oauth_url`)")
    for line, (language, text) in enumerate(
        [
            ("sh", "assent inbox lits"),
            ("sh", "curl -s http://127.0.0.1:2024/api/nothing"),
            ("console", "$ assent version\nassent-two 3.0"),
            ("console", "$ make nothing"),
            ("python", "from assent import Nothing"),
            ("python", "await client.runs.create(thread_id, 'nobody')"),
            ("python", "interrupt({'kind': 'oauth_url', 'url': 'https://login.example.org/…'})"),
            ("json", '{"graphs": {"agent": 5}}'),
            ("toml", "databse = 'sqlite:///x.db'"),
            ("toml", "[[rules]]\nname = 'x'\nthen = 'perhaps'"),
        ]
    )
]
"""Examples that do not work, to show that the test notices."""

PAGES = sorted({block.page for block in BLOCKS})


def is_executed(block: Block) -> bool:
    return block.language in EXECUTED and block.name not in NOT_EXECUTED


def has_own_test(block: Block) -> bool:
    return block.page in ELSEWHERE and block.language in ELSEWHERE[block.page][0]


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory, commands: Path) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(tmp_path_factory.mktemp("stage"), commands, stack)


@pytest.fixture(scope="session")
def commands() -> Path:
    for tool in ("bash", "curl", "openssl", "make"):
        _ = shutil.which(tool) or missing(f"{tool}: apt-get install {tool}")
    return forker()


@pytest.fixture
def page(tmp_path: Path, stage: Stage, commands: Path, request: pytest.FixtureRequest) -> Page:
    shutil.copytree(PROJECT, tmp_path, dirs_exist_ok=True)
    shutil.copytree(PROJECT, tmp_path / "path" / "to")
    (tmp_path / "policy.toml").write_text(blocks(read("docs/policies.md"), "toml")[0], encoding="utf-8")
    name = request.node.callspec.params["name"]
    used = "\n".join([*(block.text for block in [*BLOCKS, *WRONG] if block.page == name), *_preludes(name)])
    swaps = {written: real(stage) for written, real in SWAPS.items() if written in used}
    if "postgresql://" in used:
        address = str(request.getfixturevalue("postgres_url"))
        swaps |= dict.fromkeys(["postgresql://assent:…@db.internal/assent", "postgresql://…"], address)
    return Page(stage, Shell(tmp_path, commands, swaps), swaps)


def _preludes(page: str) -> list[str]:
    return [prelude for (where, _), prelude in PRELUDES.items() if where == page]


class Page:
    """Checks the blocks of one page, one after the other, in one folder."""

    def __init__(self, stage: Stage, shell: Shell, swaps: dict[str, str]) -> None:
        self._stage, self._shell, self._swaps = stage, shell, swaps
        self._printed = ""

    async def check(self, block: Block) -> None:
        if block.language in SHELL:
            self._run(block)
        elif block.language == "python":
            await self._execute(block)
        elif block.language == "json":
            self._compare(block, json.loads(block.text))
        elif block.language == "toml":
            self._read(block)
        else:
            assert block.language == "sql"
            self._query(block)

    def _run(self, block: Block) -> None:
        commands = block.commands
        for (page, beginning), prelude in PRELUDES.items():
            if page == block.page and commands.startswith(beginning):
                self._shell(prelude)
        self._printed = self._shell(commands)
        if call := re.search(r'"call_id":"(\w+)"', self._printed):
            self._swaps["call_1"] = call[1]
        printed = [line.split()[0] for line in self._printed.splitlines() if line.strip()]
        assert [word for line in block.shown if (word := line.split()[0]) not in printed] == []

    async def _execute(self, block: Block) -> None:
        text = block.text.replace("http://127.0.0.1:2024", self._stage.dev.url)
        for key in ("asnt_reviewer_…", "asnt_agent_…"):
            text = text.replace(key, self._swaps.get(key, key))
        if "interrupt(" in text:
            return asking.check(block, {"interrupt": interrupt})
        async with self._names(text) as names:
            code = compile(text, block.page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            try:
                result = eval(code, names)  # noqa: S307 - our own documentation
                if inspect.isawaitable(result):
                    await result
            finally:
                if "client" in names:
                    await names["client"].aclose()

    @asynccontextmanager
    async def _names(self, text: str) -> AsyncIterator[dict[str, Any]]:
        """What a snippet takes for granted."""
        names: dict[str, Any] = {
            "model": ScriptedModel(),
            "tools": [look_up],
            "look_up": look_up,
            "search": look_up,
            "send_email": look_up,
            "create_agent": create_agent,
            "HumanInTheLoopMiddleware": HumanInTheLoopMiddleware,
            "Auth": Auth,
            "auth": Auth(),
            "Tx": Tx,
            "Principal": Principal,
            "ApiKey": ApiKey,
            "caller": operator("default"),
            "key_id": "01a1e198-186d-73e2-aaf5-f0cc5154fa88",
        }
        if re.search(r"client\.(runs|crons|store)\b", text) and "client =" not in text:
            client = get_client(url=self._stage.dev.url)
            names |= {"client": client, "thread_id": (await client.threads.create())["thread_id"]}
        if "store.write" in text:
            async with open_services(Settings(database=f"sqlite:///{self._shell.folder}/names.db")) as services:
                yield names | {"store": services.store}
        else:
            yield names

    def _compare(self, block: Block, shown: Any) -> None:
        """A file that the project or the assistant reads, or the answer to the command before."""
        if "mcpServers" in shown:
            text = block.text.replace("${GITHUB_TOKEN}", "token")
            servers = read_assistant_settings({"ASSISTANT_MCP_SERVERS": text}).mcp_servers
            assert servers.keys() == shown["mcpServers"].keys()
            return
        if not {"graphs", "webhooks"} & shown.keys():
            return has_shape(json.loads(self._printed or self._refusal()), shown)
        file = self._shell.folder / "shown.json"
        file.write_text(json.dumps({"graphs": {}, **shown}), encoding="utf-8")
        read_manifest(file)

    def _refusal(self) -> str:
        return httpx.get(f"{self._stage.dev.url}/api/users").text

    def _read(self, block: Block) -> None:
        parsed = tomllib.loads(block.text)
        if "rules" in parsed:
            assert parse(block.text).rules
        elif "project" in parsed:
            assert GROUP in parsed["project"]["entry-points"]
        else:
            (self._shell.folder / "assent.toml").write_text(block.text, encoding="utf-8")
            origins = load({}, {}, folder=self._shell.folder).origins
            (self._shell.folder / "assent.toml").unlink()
            assert {name for name, origin in origins.items() if origin.endswith("assent.toml")} == parsed.keys()

    def _query(self, block: Block) -> None:
        with psycopg.connect(self._swaps["postgresql://…"]) as connection:
            assert connection.execute(block.text.encode()).fetchall()


def has_shape(real: Any, shown: Any) -> None:
    """Everything that is shown is there, with values of the same type."""
    assert type(real) is type(shown)
    if isinstance(shown, dict):
        assert shown.keys() <= real.keys()
        for key, value in shown.items():
            has_shape(real[key], value)
    elif isinstance(shown, list):
        for one, value in zip(real, shown, strict=True):
            has_shape(one, value)


@pytest.mark.parametrize("name", PAGES)
async def test_examples_of_every_page_work(name: str, page: Page) -> None:
    for block in BLOCKS:
        if block.page == name and is_executed(block) and not has_own_test(block):
            await page.check(block)


@pytest.mark.parametrize("name", ["wrong.md"])
@pytest.mark.parametrize("block", WRONG, ids=[str(block.line) for block in WRONG])
async def test_control_a_broken_example_is_found(name: str, block: Block, page: Page) -> None:
    with pytest.raises((AssertionError, AssentError, ImportError, APIStatusError)):
        await page.check(block)


def test_every_block_is_executed_or_says_why_not() -> None:
    left = {block.name for block in BLOCKS if block.language and not is_executed(block)}
    assert left == NOT_EXECUTED.keys()
    assert not [block.name for block in BLOCKS if not block.language and "assent " in block.text.split("\n")[0]]


@pytest.mark.parametrize("page", ELSEWHERE)
def test_block_marked_as_tested_elsewhere_has_its_test(page: str) -> None:
    languages, test = ELSEWHERE[page]
    assert {block.language for block in BLOCKS if block.page == page} >= languages
    assert page in (ROOT / test).read_text(encoding="utf-8")
