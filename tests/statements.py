"""SQLAlchemy compiles a statement once per worker and database, not once per test.

Each test opens a store of its own, and a store has its own engine. Its statements are the same each time. This plugin
lets the engines of one kind of database share what they compiled, and the dialect, which is part of the key.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from assent.kernel.store.drivers import postgres, sqlite

_STORES: tuple[Any, ...] = (sqlite, postgres)


def pytest_configure(config: pytest.Config) -> None:
    for module in _STORES:
        module._engine = _sharing(module._engine)


def _sharing(make_engine: Callable[..., Any]) -> Callable[..., Any]:
    earlier: list[Engine] = []

    @wraps(make_engine)
    def make(*args: Any, **options: Any) -> Any:
        made = make_engine(*args, **options)
        engine = made.sync_engine if isinstance(made, AsyncEngine) else made
        if earlier and earlier[0].dialect.server_version_info:  # known once it was connected
            engine.dialect = engine.pool._dialect = earlier[0].dialect
            engine._compiled_cache = earlier[0]._compiled_cache
        else:
            earlier[:] = [engine]
        return made

    return make
