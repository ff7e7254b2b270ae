"""An index of the store whose embedding is named by its provider, over HTTP against a server that speaks OpenAI's
protocol, with LangChain's own package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tiktoken.registry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assent.errors import LoadError
from assent.settings import Mode
from tests.api.house import Builder
from tests.api.test_store_items import INDEXED, ITEMS, put
from tests.assistant.calendars import served
from tests.graphs_store.embeddings import DIMS, embed

MODEL = "text-embedding-3-small"
_CLOSE = {"connection": "close"}
"""OpenAI's client is never closed by LangChain."""


class Provider:
    """Embeds what it is sent, and remembers who asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self.refuses = False
        self.app = Starlette(routes=[Route("/v1/embeddings", self.embeddings, methods=["POST"])])

    async def embeddings(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append((request.headers["authorization"], body["model"], len(body["input"])))
        if self.refuses:
            said = {"message": "wrong key sk-other", "type": "invalid_request_error"}
            return JSONResponse({"error": said}, 401, headers=_CLOSE)
        vectors = embed([bytes(tokens).decode() for tokens in body["input"]])
        data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return JSONResponse({"object": "list", "data": data, "model": body["model"], "usage": usage}, headers=_CLOSE)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """OpenAI's package sends numbers of tokens. Its vocabulary would be downloaded; this one has a token per byte."""
    ranks = {bytes([number]): number for number in range(256)}
    plain = tiktoken.Encoding("cl100k_base", pat_str=r"[\s\S]", mergeable_ranks=ranks, special_tokens={})
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "cl100k_base", plain)
    made = Provider()
    with served(made.app) as address:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        yield made


def project(folder: Path, embedding: str) -> Path:
    config = json.loads(INDEXED.read_text())
    config["graphs"] = {"remembering": str(INDEXED.with_name("remembering.py")) + ":graph"}
    config.pop("auth")
    config["store"]["index"] = {"dims": DIMS, "embed": embedding, "fields": ["text"]}
    (folder / "langgraph.json").write_text(json.dumps(config))
    return folder / "langgraph.json"


@pytest.mark.promise("SERVE-01")
async def test_items_are_found_by_the_embedding_of_a_provider(
    build_on_both: Builder, tmp_path: Path, provider: Provider
) -> None:
    house = await build_on_both(Mode.SERVE, config=project(tmp_path, f"openai:{MODEL}"))
    agent = house.client(await house.key())
    for key, text in (("cat", "the cat sleeps"), ("mail", "the mail comes")):
        assert await put(agent, key, value={"text": text}) == 204
    body: Any = {"namespace_prefix": ["notes"], "query": "the mail"}
    items = (await agent.post(f"{ITEMS}/search", json=body)).json()["items"]
    assert [item["key"] for item in items] == ["mail", "cat"]
    assert items[0]["score"] > items[1]["score"] > 0
    assert provider.asked == [("Bearer sk-mine", MODEL, 1)] * 3
    provider.refuses = True
    refused = await agent.put(ITEMS, json={"namespace": ["a"], "key": "k", "value": {"text": "x"}})
    assert (refused.status_code, refused.json()["code"]) == (502, "embedding_failed")
    assert "sk-" not in refused.text


@pytest.mark.parametrize(
    ("embedding", "says", "hint"),
    [
        (f"openai:{MODEL}", "OPENAI_API_KEY", "key"),
        ("cohere:embed-v4", "langchain-cohere", "pip install"),
        ("nobody:x", "nobody", "package"),
    ],
)
async def test_provider_without_its_package_or_key_stops_the_start(
    build: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedding: str, says: str, hint: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(LoadError, match=says) as refused:
        await build(Mode.SERVE, config=project(tmp_path, embedding))
    assert hint in f"{refused.value} {refused.value.hint}"
