"""Cannot be imported: a typical mistake, work at import time."""

from __future__ import annotations


def connect(key: str | None) -> object:
    if key is None:
        raise RuntimeError("MODEL_KEY is not set")
    return object()


graph = connect(None)
