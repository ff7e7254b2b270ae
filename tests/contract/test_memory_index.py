"""The index of the store: what is found, in which order, and with which scores, as LangGraph's own store finds it."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from langgraph.store.base import ensure_embeddings
from langgraph.store.memory import InMemoryStore
from sqlalchemy import text

from assent.errors import EmbeddingFailed, Invalid
from assent.kernel.store.drivers.postgres import PostgresStore
from assent.kernel.store.vectors import normalized
from assent.runs.checkpoints.saver import Scope
from assent.runs.memory import index as indexes
from assent.runs.memory.index import VectorIndex
from assent.runs.memory.store import MemoryStore
from assent.threads.rows.memory import items as memory
from assent.threads.rows.memory.items import Near, Put
from tests.contract.stores import AnyStore, both_databases
from tests.graphs_store.embeddings import DIMS, embed, embed_later, fail, shorten
from tests.scoreboard import Count, RecordScore

NOTES = ("notes",)
TEXTS = {
    "cat": "the cat sleeps on the warm roof",
    "dog": "a dog barks at the mail",
    "sea": "waves break on the shore of the sea",
    "mail": "the mail comes at noon",
}


async def opened_index(store: AnyStore, function: Any = embed, **options: Any) -> VectorIndex:
    index = VectorIndex(ensure_embeddings(function), **{"dims": DIMS, "fields": ["text"], "name": "test", **options})
    await index.open(store)
    return index


@pytest.fixture(params=["native", "plain"])
async def kept(store: AnyStore, request: pytest.FixtureRequest) -> MemoryStore:
    """With pgvector, and without it. SQLite has one way."""
    index = await opened_index(store)
    assert index._pgvector is isinstance(store, PostgresStore)
    index._pgvector = index._pgvector and request.param == "native"
    return MemoryStore(store, Scope("acme"), index=index)


async def put_all(kept: Any, texts: dict[str, str] = TEXTS) -> None:
    for key, words in texts.items():
        await kept.aput(NOTES, key, {"text": words, "length": len(words)})


async def keys(kept: Any, query: str, **search: Any) -> list[str]:
    return [item.key for item in await kept.asearch(NOTES, query=query, **search)]


async def test_most_similar_items_come_first_with_the_scores_of_langgraph(kept: MemoryStore) -> None:
    config: Any = {"dims": DIMS, "embed": embed, "fields": ["text"]}
    theirs = InMemoryStore(index=config)
    for each in (kept, theirs):
        await put_all(each)
    for query in ("the mail", "a warm cat", "sea", "the", "unknown words"):
        ours, expected = await kept.asearch(NOTES, query=query), await theirs.asearch(NOTES, query=query)
        assert [item.key for item in ours] == [item.key for item in expected]
        assert [item.score for item in ours] == pytest.approx([item.score for item in expected], abs=1e-5)


async def test_filters_pages_and_namespaces_apply(kept: MemoryStore) -> None:
    await put_all(kept)
    await kept.aput(("other",), "mail", {"text": "mail"})
    everything = await keys(kept, "mail")
    assert await keys(kept, "mail", limit=2, offset=1) == everything[1:3]
    longest = await kept.asearch(NOTES, query="mail", filter={"length": {"$gt": 30}})
    assert {item.key for item in longest} == {"cat", "sea"}
    [best] = await kept.asearch((), query="mail", limit=1)
    assert best.namespace == ("other",)


async def test_items_without_a_vector_follow_without_a_score(kept: MemoryStore) -> None:
    await put_all(kept)
    await kept.aput(NOTES, "hidden", {"text": "the mail comes at noon"}, index=False)
    await kept.aput(NOTES, "silent", {"title": "no text"})
    matches = await kept.asearch(NOTES, query="the mail comes at noon")
    assert matches[0].key == "mail"
    assert [(item.key, item.score) for item in matches[-2:]] == [("silent", None), ("hidden", None)]


async def test_fields_of_an_item_replace_those_of_the_index(kept: MemoryStore) -> None:
    await kept.aput(NOTES, "a", {"text": "dog", "title": "cat", "tags": ["sea", "mail"]}, index=["title", "tags[*]"])
    await kept.aput(NOTES, "b", {"text": "dog"})
    assert await keys(kept, "dog", limit=1) == ["b"]
    for word in ("cat", "sea", "mail"):  # of several texts the most similar one counts
        [best] = await kept.asearch(NOTES, query=word, limit=1)
        assert best.key == "a"
        assert best.score == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("value", "index"),
    [({"a": "x"}, ["{" + ",".join(["a"] * 200) + "}"]), ({"a": "x"}, ["a"] * 101), ({"a": ["x"] * 101}, ["a[*]"])],
    ids=["long path", "many paths", "many texts"],
)
async def test_index_of_too_many_texts_is_refused(kept: MemoryStore, value: Any, index: Any) -> None:
    with pytest.raises(Invalid, match="index"):
        await kept.aput(("docs",), "hostile", value, index=index)
    assert await kept.aget(("docs",), "hostile") is None


async def test_changed_and_deleted_items_are_found_by_what_they_are_now(kept: MemoryStore) -> None:
    await kept.aput(NOTES, "k", {"text": "cat"})
    await kept.aput(NOTES, "k", {"text": "dog"})
    await kept.aput(NOTES, "other", {"text": "cat"})
    [best] = await kept.asearch(NOTES, query="dog", limit=1)
    assert best.key == "k"
    assert best.score == pytest.approx(1, abs=1e-5)
    assert await keys(kept, "cat", limit=1) == ["other"]
    await kept.adelete(NOTES, "other")
    assert await keys(kept, "cat") == ["k"]


async def test_expired_items_leave_no_vectors(store: AnyStore) -> None:
    kept = MemoryStore(store, Scope("acme"), index=await opened_index(store))
    await kept.aput(NOTES, "k", {"text": "cat"}, ttl=1)
    store.clock_offset += timedelta(minutes=2)
    assert await keys(kept, "cat") == []
    await store.write(None, memory.delete_expired)
    left = await store.read(None, lambda tx: tx.all(text("SELECT 1 FROM memory_vectors")))
    assert left == []


async def test_tenants_do_not_find_each_other(store: AnyStore) -> None:
    index = await opened_index(store)
    ours, theirs = MemoryStore(store, Scope("acme"), index=index), MemoryStore(store, Scope("other"), index=index)
    await put_all(ours)
    assert await keys(theirs, "mail") == []
    await put_all(theirs, {"mail": "dog"})
    assert [item.value["text"] for item in await theirs.asearch(NOTES, query="mail")] == ["dog"]


async def test_vectors_of_another_embedding_do_not_count(store: AnyStore) -> None:
    old = MemoryStore(store, Scope("acme"), index=await opened_index(store, name="old"))
    await put_all(old)
    new = MemoryStore(store, Scope("acme"), index=await opened_index(store, name="new"))
    assert {item.score for item in await new.asearch(NOTES, query="mail")} == {None}
    await put_all(new)
    assert (await keys(new, "the mail comes at noon"))[0] == "mail"


@pytest.mark.parametrize(("function", "reason"), [(fail, "RuntimeError"), (shorten, "31 parts")])
async def test_failing_embedding_stores_nothing_and_tells_no_details(
    store: AnyStore, function: Callable[..., Any], reason: str
) -> None:
    kept = MemoryStore(store, Scope("acme"), index=await opened_index(store, function))
    with pytest.raises(EmbeddingFailed, match=reason) as refused:
        await kept.aput(NOTES, "k", {"text": "cat"})
    assert "hunter2" not in str(refused.value)
    assert await kept.aget(NOTES, "k") is None
    with pytest.raises(EmbeddingFailed):
        await kept.asearch(NOTES, query="cat")


async def test_asynchronous_functions_and_texts_of_whole_values(store: AnyStore) -> None:
    kept = MemoryStore(store, Scope("acme"), index=await opened_index(store, embed_later, fields=["$"]))
    await put_all(kept)
    assert len(await keys(kept, "mail")) == len(TEXTS)
    assert all(item.score is not None for item in await kept.asearch(NOTES, query="mail"))


async def test_text_without_words_has_the_score_zero(kept: MemoryStore) -> None:
    await kept.aput(NOTES, "k", {"text": " "})
    assert [(item.key, item.score) for item in await kept.asearch(NOTES, query="cat")] == [("k", 0)]


@both_databases
async def test_missing_pgvector_is_told_once(
    store: AnyStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_EXTENSION", "_AVAILABLE"):
        monkeypatch.setattr(indexes, name, text("SELECT 1 WHERE 1 = 0"))
    with caplog.at_level(logging.WARNING):
        index = await opened_index(store)
    told = [record.message for record in caplog.records if "pgvector" in record.message]
    assert len(told) == (1 if isinstance(store, PostgresStore) else 0)
    kept = MemoryStore(store, Scope("acme"), index=index)
    await put_all(kept)
    assert (await keys(kept, "the mail comes at noon"))[0] == "mail"


def exact(query: list[float], vectors: dict[str, list[float]], number: int) -> set[str]:
    wanted = normalized(query)
    scores = {key: sum(a * b for a, b in zip(wanted, normalized(each), strict=True)) for key, each in vectors.items()}
    return set(sorted(scores, key=lambda key: -scores[key])[:number])


@pytest.mark.scoreboard
@pytest.mark.timeout(900)
@both_databases
async def test_recall_is_complete(store: AnyStore, count: Count, record_score: RecordScore) -> None:
    number, queries, dims, best = count(full=10_000, quick=400), count(full=50, quick=10), 64, 10
    dice = random.Random(14)
    vectors = {f"k{index}": [dice.gauss(0, 1) for _ in range(dims)] for index in range(number)}
    for start in range(0, number, 500):
        puts = [
            Put(NOTES, key, {"n": 1}, vectors={"$": normalized(vectors[key])}, model="m")
            for key in list(vectors)[start : start + 500]
        ]
        await store.write("acme", memory.put, puts)
    pgvector = (await opened_index(store))._pgvector
    hits = 0
    for _ in range(queries):
        query = [dice.gauss(0, 1) for _ in range(dims)]
        near = Near(normalized(query), "m", pgvector)
        matches = await store.read("acme", memory.nearest, NOTES, {}, near, limit=best, offset=0)
        hits += len({match.key for match in matches} & exact(query, vectors, best))
    recall = hits / (queries * best)
    where = "Postgres, pgvector" if pgvector else "SQLite"
    record_score(f"recall of the store's vector search on {number} items, {where}", "1.0", recall)
    assert recall == 1.0
