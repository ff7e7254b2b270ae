"""Limits the size of documents that callers store: metadata, configs, contexts, drafts.

A document is read with every list of its object, so each is limited (`kernel/limits.py`). `require` checks a document
in the transaction that stores it, after a merge. `require_given` checks a caller's document before the transaction, a
large one in a thread, so that other writes do not wait for a refused document.
"""

from __future__ import annotations

from typing import Any

from assent.kernel import jsontext
from assent.kernel.fair_threads import alone
from assent.kernel.limits import SMALL_BYTES, Limits, is_small
from assent.kernel.store.transaction import Tx


def require(tx: Tx, **documents: Any) -> None:
    for name, value in documents.items():
        if value:
            tx.limits.require_document(name, size(value))


async def require_given(limits: Limits, **documents: Any) -> None:
    for name, value in documents.items():
        if value and not (limits.document_bytes >= SMALL_BYTES and is_small(value)):
            limits.require_document(name, await alone(size, value))


def size(value: Any) -> int:
    return len(jsontext.dump(value).encode())
