"""A security key in software: it makes real credentials and signs real assertions, as a browser would send them.

Everything that an attacker could vary is an option: the origin, the domain, the flags, the count of signatures.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40
_P256 = ec.SECP256R1()


@dataclass
class Authenticator:
    """One device with one passkey. `origin` is the page that asks it."""

    origin: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(_P256))
    credential_id: bytes = field(default_factory=lambda: os.urandom(32))
    count: int = 0
    handle: str | None = None

    def create(self, options: Mapping[str, Any], *, flags: int = PRESENT | VERIFIED, **changes: Any) -> dict[str, Any]:
        """The answer of `navigator.credentials.create`."""
        self.handle = options["user"]["id"]
        attested = bytes(16) + len(self.credential_id).to_bytes(2) + self.credential_id + self._public_key()
        told = self._data(changes.pop("party", options["rp"]["id"]), flags | ATTESTED) + attested
        client = self._client("webauthn.create", options["challenge"], **changes)
        made = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": told})
        response = {"clientDataJSON": text(client), "attestationObject": text(made), "transports": ["internal"]}
        return self._answer(response)

    def get(
        self, options: Mapping[str, Any], *, flags: int = PRESENT | VERIFIED, count: int | None = None, **changes: Any
    ) -> dict[str, Any]:
        """The answer of `navigator.credentials.get`; `count` is the count of signatures that it claims."""
        self.count = self.count + 1 if count is None else count
        told = self._data(changes.pop("party", options["rpId"]), flags)
        client = self._client("webauthn.get", options["challenge"], **changes)
        signature = self.key.sign(told + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        response = {"clientDataJSON": text(client), "authenticatorData": text(told), "signature": text(signature)}
        return self._answer(response | ({"userHandle": self.handle} if self.handle else {}))

    def _client(self, kind: str, challenge: str, **changes: Any) -> bytes:
        said = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps(said | changes).encode()

    def _data(self, party: str, flags: int) -> bytes:
        return hashlib.sha256(party.encode()).digest() + bytes([flags]) + self.count.to_bytes(4)

    def _public_key(self) -> bytes:
        numbers = self.key.public_key().public_numbers()
        return cbor2.dumps({1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)})

    def _answer(self, response: dict[str, Any]) -> dict[str, Any]:
        id = text(self.credential_id)
        return {"id": id, "rawId": id, "type": "public-key", "response": response, "clientExtensionResults": {}}


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
