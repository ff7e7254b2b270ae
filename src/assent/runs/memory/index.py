"""The index of the store: texts of items are embedded when they are stored, and found by their similarity to a query.

`store.index` in `langgraph.json` names the embedding: a function or an object of the project, or a provider as for
LangChain's `init_embeddings`. Import it only if there is an index: the embedding is LangChain's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from assent.errors import AssentError, EmbeddingFailed, Invalid
from assent.kernel.ids import new_id
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.kernel.store.vectors import Vector, normalized
from assent.threads.rows.memory.items import Near, Put

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

log = logging.getLogger(__name__)

WHOLE = "$"
_MOST_TEXTS = 100
_LONGEST_PATH = 200
"""Limits, because a caller chooses the paths, and every text is embedded and stored."""
_EXTENSION = text("SELECT 1 FROM pg_extension WHERE extname = 'vector'")
_AVAILABLE = text("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
_CREATE = text("CREATE EXTENSION IF NOT EXISTS vector")


class VectorIndex:
    def __init__(self, embeddings: Embeddings, *, dims: int, fields: Sequence[str] = (WHOLE,), name: str = "") -> None:
        """`name` identifies the embedding: vectors of another one are not compared."""
        self._embeddings = embeddings
        self._dims = dims
        self._fields = tuple(fields)
        self._model = f"{name}:{dims}"
        self._pgvector = False

    async def open(self, store: Store) -> None:
        """Uses pgvector where the database has it, and says so where it does not."""
        self._pgvector = await _has_pgvector(store)

    async def with_vectors(self, put: Put, index: bool | Sequence[str] | None = None) -> Put:
        """The entry with the vectors of its texts: at the fields of the index, or at those of `index`; False: none."""
        if put.value is None or index is False:
            return put
        texts = _texts(put.value, self._fields if index is None or index is True else tuple(index))
        if not texts:
            return put
        vectors = await self._embedded(list(texts.values()))
        return replace(put, vectors=dict(zip(texts, vectors, strict=True)), model=self._model)

    async def near(self, query: str) -> Near:
        try:
            vector = await self._embeddings.aembed_query(query)
        except Exception as error:  # the project's function, or a provider
            raise _failed(error) from error
        return Near(self._checked(vector), self._model, self._pgvector)

    async def _embedded(self, texts: Sequence[str]) -> list[Vector]:
        """Each text is embedded once."""
        different = list(dict.fromkeys(texts))
        try:
            vectors = await self._embeddings.aembed_documents(different)
        except Exception as error:  # the project's function, or a provider
            raise _failed(error) from error
        if len(vectors) != len(different):
            raise EmbeddingFailed(f"store.index.embed returned {len(vectors)} vectors for {len(different)} texts")
        by_text = {each: self._checked(vector) for each, vector in zip(different, vectors, strict=True)}
        return [by_text[each] for each in texts]

    def _checked(self, vector: Any) -> Vector:
        numbers = [float(part) for part in vector]
        if len(numbers) != self._dims:
            raise EmbeddingFailed(
                f"store.index.embed returned a vector with {len(numbers)} parts; store.index.dims is {self._dims}"
            )
        return normalized(numbers)


def _texts(value: Mapping[str, Any], fields: Sequence[str]) -> dict[str, str]:
    """By path, as LangGraph's stores name them."""
    from langgraph.store.base import get_text_at_path, tokenize_path

    if len(fields) > _MOST_TEXTS or any(len(path) > _LONGEST_PATH for path in fields):
        raise Invalid(f"index: at most {_MOST_TEXTS} paths of at most {_LONGEST_PATH} characters")
    texts = dict[str, str]()
    for path in fields:
        at_path = get_text_at_path(value, path if path == WHOLE else tokenize_path(path))
        named = {path: at_path[0]} if len(at_path) == 1 else {f"{path}.{i}": each for i, each in enumerate(at_path)}
        texts |= named
        if len(texts) > _MOST_TEXTS:
            raise Invalid(f"index: {path!r} has more than {_MOST_TEXTS} texts in this item")
    return texts


async def _has_pgvector(store: Store) -> bool:
    if await store.read(None, lambda tx: tx.dialect) != "postgresql":
        return False
    if await store.read(None, _is_installed):
        return True
    reason = "the server does not have the extension"
    if await store.read(None, lambda tx: tx.first(_AVAILABLE) is not None):
        try:
            await store.write(None, _create)
            return True
        except Exception as error:  # noqa: BLE001 - any database error: the search works without it
            reason = str(getattr(error, "orig", error)).strip()
    if await store.read(None, _is_installed):  # by another process in the meantime
        return True
    log.warning("pgvector is not used: search of the store is exact and slow", extra={"reason": reason})
    return False


def _is_installed(tx: Tx) -> bool:
    return tx.first(_EXTENSION) is not None


def _create(tx: Tx) -> None:
    tx.change(_CREATE)


def _failed(error: Exception) -> AssentError:
    id = new_id()
    log.error("embed texts of the store failed", extra={"id": id}, exc_info=error)
    return EmbeddingFailed(f"store.index.embed failed: {type(error).__name__}", hint="see the server's log", id=id)
