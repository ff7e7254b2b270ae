"""Encrypts what is stored, with keys derived from the installation's secret: one for each purpose."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12


class Undecipherable(ValueError):
    """The text was encrypted with another secret, or for another place."""


class Cipher:
    def __init__(self, secret: Callable[[], bytes], purpose: bytes) -> None:
        self._secret = secret
        self._purpose = purpose

    def seal(self, text: bytes, place: bytes) -> bytes:
        """The ciphertext is bound to its place: copied to another one, it does not decrypt."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._aes().encrypt(nonce, text, place)

    def open(self, sealed: bytes, place: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._aes().decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place)
        except (InvalidTag, ValueError):
            raise Undecipherable from None

    def _aes(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # slow to import
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        return AESGCM(HKDF(SHA256(), 32, salt=None, info=self._purpose).derive(self._secret()))
