"""Encrypts the credentials of deployments with a key derived from the installation's secret."""

from __future__ import annotations

from collections.abc import Callable

from assent.errors import ConfigError
from assent.kernel import jsontext
from assent.kernel.cipher import Cipher, Undecipherable
from assent.threads.model.deployments import Credentials

_PURPOSE = b"assent deployment credentials 1"


class Sealing:
    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._cipher = Cipher(secret, _PURPOSE)

    def seal(self, tenant: str, deployment_id: str, credentials: Credentials) -> bytes | None:
        """The ciphertext is bound to its deployment: copied to another row, it does not decrypt."""
        if not credentials.as_headers():
            return None
        text = jsontext.dump({"key": credentials.key, "headers": dict(credentials.headers)}).encode()
        return self._cipher.seal(text, _bound(tenant, deployment_id))

    def open(self, tenant: str, deployment_id: str, sealed: bytes | None) -> Credentials:
        if sealed is None:
            return Credentials()
        try:
            plain = jsontext.load(self._cipher.open(sealed, _bound(tenant, deployment_id)))
        except Undecipherable:
            hint = "restore the secret_key that it was stored with, or store the deployment's key again"
            raise ConfigError("the key of the deployment cannot be decrypted", hint=hint) from None
        return Credentials(plain["key"], plain["headers"])


def _bound(tenant: str, deployment_id: str) -> bytes:
    return f"{tenant}\0{deployment_id}".encode()
