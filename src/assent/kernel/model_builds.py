"""Builds the pydantic models of imported modules at their first use.

A server imports more than a thousand models: its own and those of FastAPI, LangChain and LangSmith. To build them took
a tenth of a start, and most are never used. The author's modules are not imported like this, so that a mistake in a
model of theirs is reported where they define it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel

_BUILDS_IN_THREADS = (2, 14)
"""Earlier versions of pydantic may validate with the parent's fields if two threads are the first to use a model."""


@contextmanager
def deferred() -> Iterator[None]:
    """Models that are defined meanwhile are built at their first use."""
    from pydantic import VERSION, BaseModel

    if tuple(map(int, VERSION.split(".")[:2])) < _BUILDS_IN_THREADS:
        yield
        return
    config = BaseModel.model_config
    BaseModel.model_config = {**config, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = config
        for model in _below(BaseModel):
            model.model_config.pop("defer_build", None)  # subclasses and type adapters would take it over


def _below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for below in model.__subclasses__():
        yield below
        yield from _below(below)
