"""Seals what Assent stores where its callers can write: a document with another seal was not written by Assent."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from assent.kernel import canonical
from assent.kernel.canonical import Json


class Sealer:
    def __init__(self, secret: Callable[[], bytes], purpose: bytes) -> None:
        self._secret = secret
        self._purpose = purpose

    def seal(self, document: Json) -> str:
        key = hmac.digest(self._secret(), self._purpose, "sha256")
        return hmac.digest(key, canonical.text(document).encode(), "sha256").hex()
