"""Python's cyclic garbage collector, told what kind of process this is.

While a server starts, nearly everything that is made stays, and looking for garbage among it is in vain. Once it
serves, all of that is set apart, so that nobody goes through it again; and what requests and runs make is nearly always
freed by its reference count, so that the collector need not come by as often. Left alone it takes an eighth of the
time of a busy server, and a sixth of that of a start.
"""

from __future__ import annotations

import gc

_OBJECTS, _YOUNG, _OLD = 50_000, 20, 50
"""How many objects more there must be for a collection, and how many of those for one of the next older ones."""


def starting() -> None:
    gc.set_threshold(_OBJECTS, _YOUNG, _OLD)


def started() -> None:
    gc.collect()
    gc.freeze()
