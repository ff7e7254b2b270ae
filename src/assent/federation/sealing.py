"""Encrypts the credentials of deployments with a key derived from the installation's secret."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from assent.errors import ConfigError
from assent.kernel import jsontext
from assent.threads.model.deployments import Credentials

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_PURPOSE = b"assent deployment credentials 1"
_NONCE_BYTES = 12


class Sealing:
    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._secret = secret

    def seal(self, tenant: str, deployment_id: str, credentials: Credentials) -> bytes | None:
        """The ciphertext is bound to its deployment: copied to another row, it does not decrypt."""
        if not credentials.as_headers():
            return None
        nonce = os.urandom(_NONCE_BYTES)
        text = jsontext.dump({"key": credentials.key, "headers": dict(credentials.headers)}).encode()
        return nonce + self._cipher().encrypt(nonce, text, _bound(tenant, deployment_id))

    def open(self, tenant: str, deployment_id: str, sealed: bytes | None) -> Credentials:
        from cryptography.exceptions import InvalidTag

        if sealed is None:
            return Credentials()
        nonce, text = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            plain = jsontext.load(self._cipher().decrypt(nonce, text, _bound(tenant, deployment_id)))
        except InvalidTag:
            hint = "restore the secret_key that it was stored with, or store the deployment's key again"
            raise ConfigError("the key of the deployment cannot be decrypted", hint=hint) from None
        return Credentials(plain["key"], plain["headers"])

    def _cipher(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # slow to import
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        return AESGCM(HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(self._secret()))


def _bound(tenant: str, deployment_id: str) -> bytes:
    return f"{tenant}\0{deployment_id}".encode()
