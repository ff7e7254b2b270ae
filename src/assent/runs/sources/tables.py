"""The tables of a LangGraph checkpointer as a source: those of langgraph-checkpoint-postgres and -sqlite.

Checkpoints are read with LangGraph's savers and our serializer, which refuses types that the graph does not list.
Nothing is written: the savers' migrations are not run.
"""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiosqlite
import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg.rows import dict_row, tuple_row
from sqlalchemy import make_url

from assent.errors import ConfigError, NotFound, Unavailable
from assent.runs.sources.source import ForeignAssistant, ForeignThread, Json, Past
from assent.threads.rows.memory.items import Put

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from assent.runs.project.graphs import AnyPregel

Rows = list[tuple[Any, ...]]

_THREADS = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"
_METADATA = "SELECT metadata FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id DESC LIMIT 1"
_MEMORIES = (
    "SELECT prefix, key, value, ttl_minutes FROM store WHERE expires_at IS NULL OR expires_at > CURRENT_TIMESTAMP"
)
_NOT_STATE = ("__", "branch:", "join:")
_STAMP = ("graph_id", "assistant_id")


class TableSource(ABC):
    def __init__(self, name: str) -> None:
        self.name = name

    async def assistants(self) -> AsyncIterator[ForeignAssistant]:
        """None: a checkpointer has no assistants."""
        none: tuple[ForeignAssistant, ...] = ()
        for assistant in none:
            yield assistant

    async def memories(self) -> AsyncIterator[Put]:
        """The items of a LangGraph store in the same database, if it has one."""
        for prefix, key, value, ttl in await self._rows(_MEMORIES) or ():
            yield Put(tuple(prefix.split(".")), key, _loaded(value), ttl)

    async def thread_count(self) -> int:
        return len(await self._of_checkpoints(_THREADS))

    async def threads(self) -> AsyncIterator[ForeignThread]:
        for (thread_id,) in await self._of_checkpoints(_THREADS):
            yield ForeignThread(thread_id, await self._stamp(thread_id))

    async def past(self, thread: ForeignThread, graph: AnyPregel) -> Past:
        ours: Any = graph.checkpointer
        listed = self._saver(ours.serde).alist({"configurable": {"thread_id": thread.id}})
        try:
            checkpoints = [_numbered(checkpoint) async for checkpoint in listed][::-1]
        except (psycopg.Error, sqlite3.Error) as error:
            raise _unreadable(self.name, error) from error
        return Past(checkpoints, _notes(graph, checkpoints))

    async def _stamp(self, thread_id: str) -> Json:
        """The graph and assistant in the metadata of the last checkpoint, which only a server sets."""
        [(metadata,)] = await self._of_checkpoints(_METADATA, thread_id)
        return {name: value for name, value in _loaded(metadata).items() if name in _STAMP}

    async def _of_checkpoints(self, statement: str, *values: Any) -> Rows:
        rows = await self._rows(statement, *values)
        if rows is None:
            raise ConfigError(
                f"{self.name} has no table `checkpoints`",
                hint="name the database of langgraph-checkpoint-postgres or langgraph-checkpoint-sqlite",
            )
        return rows

    @abstractmethod
    async def _rows(self, statement: str, *values: Any) -> Rows | None:
        """The rows; None if the table does not exist."""

    @abstractmethod
    def _saver(self, serde: SerializerProtocol) -> BaseCheckpointSaver[Any]: ...

    @abstractmethod
    async def close(self) -> None: ...


class PostgresTables(TableSource):
    def __init__(self, name: str, connection: psycopg.AsyncConnection[Any]) -> None:
        super().__init__(name)
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> PostgresTables:
        address = make_url(url).set(drivername="postgresql")
        name = address.render_as_string(hide_password=True)
        try:
            connection: Any = await psycopg.AsyncConnection.connect(
                address.render_as_string(hide_password=False),
                autocommit=True,
                prepare_threshold=0,
                row_factory=dict_row,
            )
        except psycopg.OperationalError as error:
            raise Unavailable(f"{name} cannot be reached: {error}", hint="check its address") from error
        await connection.set_read_only(True)
        return cls(name, connection)

    async def _rows(self, statement: str, *values: Any) -> Rows | None:
        try:
            async with self._connection.cursor(row_factory=tuple_row) as cursor:
                await cursor.execute(statement.replace("?", "%s").encode(), values)
                return await cursor.fetchall()
        except psycopg.errors.UndefinedTable:
            return None
        except psycopg.Error as error:
            raise _unreadable(self.name, error) from error

    def _saver(self, serde: SerializerProtocol) -> BaseCheckpointSaver[Any]:
        return AsyncPostgresSaver(self._connection, serde=serde)

    async def close(self) -> None:
        await self._connection.close()


class SqliteTables(TableSource):
    def __init__(self, name: str, connection: aiosqlite.Connection) -> None:
        super().__init__(name)
        self._connection = connection

    @classmethod
    async def open(cls, file: Path) -> SqliteTables:
        address = f"file:{quote(str(file))}?mode=ro"
        try:
            return cls(str(file), await aiosqlite.connect(address, uri=True))
        except aiosqlite.OperationalError as error:
            hint = "name the database that the checkpointer writes"
            raise NotFound(f"{file} cannot be opened: {error}", hint=hint) from error

    async def _rows(self, statement: str, *values: Any) -> Rows | None:
        try:
            return [tuple(row) for row in await self._connection.execute_fetchall(statement, values)]
        except sqlite3.Error as error:
            if "no such table" in str(error):
                return None
            raise _unreadable(self.name, error) from error

    def _saver(self, serde: SerializerProtocol) -> BaseCheckpointSaver[Any]:
        saver = AsyncSqliteSaver(self._connection, serde=serde)
        saver.is_setup = True  # a setup would write
        return saver

    async def close(self) -> None:
        await self._connection.close()


def _unreadable(name: str, error: Exception) -> ConfigError:
    hint = "if its tables are of an earlier version, call setup() of its checkpointer or store once"
    return ConfigError(f"{name} cannot be read: {error}", hint=hint)


def _loaded(stored: Any) -> Any:
    return json.loads(stored) if isinstance(stored, str | bytes) else stored


def _notes(graph: AnyPregel, checkpoints: Sequence[CheckpointTuple]) -> tuple[str, ...]:
    heads = [checkpoint for checkpoint in checkpoints if not checkpoint.config["configurable"].get("checkpoint_ns")]
    stored = heads[-1].checkpoint["channel_values"].keys() if heads else ()
    unknown = sorted(name for name in stored if name not in graph.channels and not name.startswith(_NOT_STATE))
    return (f"the state of the graph here has no {', '.join(unknown)}: it is omitted",) if unknown else ()


def _numbered(loaded: CheckpointTuple) -> CheckpointTuple:
    """The checkpoint with integer channel versions. These savers append random digits, and ours increments integers."""
    stored: Any = loaded.checkpoint
    seen = {node: _numbers(versions) for node, versions in stored["versions_seen"].items()}
    changed = {"channel_versions": _numbers(stored["channel_versions"]), "versions_seen": seen}
    return loaded._replace(checkpoint=stored | changed)


def _numbers(versions: Any) -> dict[str, int]:
    return {name: int(str(version).partition(".")[0]) for name, version in versions.items()}
