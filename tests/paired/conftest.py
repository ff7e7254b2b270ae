"""LangGraph's own server and ours, on the same graphs, for tests that ask both the same."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from bench.reference import ENVIRONMENT, reference
from bench.served import assent, serving
from tests.missing import missing

GRAPHS = Path(__file__).parents[1] / "graphs_paired"


@dataclass(frozen=True)
class Pair:
    theirs: LangGraphClient
    ours: LangGraphClient

    def __iter__(self) -> Iterator[LangGraphClient]:
        return iter((self.theirs, self.ours))


@pytest.fixture(scope="session")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    if not ENVIRONMENT.exists():
        missing("LangGraph's server: tools/setup reference")
    with ExitStack() as stack:
        urls = []
        for command in (reference, assent):
            folder = tmp_path_factory.mktemp("served")
            shutil.copytree(GRAPHS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            urls.append(f"http://127.0.0.1:{stack.enter_context(serving(command, folder)).port}")
        yield urls


@pytest.fixture
async def pair(addresses: list[str]) -> AsyncIterator[Pair]:
    made = Pair(*(get_client(url=url) for url in addresses))
    yield made
    async with asyncio.timeout(10):
        for client in made:
            await client.aclose()
