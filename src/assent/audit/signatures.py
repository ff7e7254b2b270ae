"""Signatures of chain heads: made with a key that is not in the database, checked with its public key alone.

An attacker who can write to the database can compute every hash of the chain again, but cannot sign a head. Slow to
import, like the cryptography library.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from datetime import datetime

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from assent.errors import Invalid
from assent.kernel.timeline import Head, SignedHead

_PURPOSE = b"assent audit key 1"


class AuditKey:
    """The private key. Ed25519: the same head at the same moment always gets the same signature."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.id = _id(private.public_key())

    @classmethod
    def derived(cls, secret: bytes) -> AuditKey:
        """The key that is derived from an installation's secret."""
        seed = HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(secret)
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def from_pem(cls, pem: bytes) -> AuditKey:
        try:
            private = load_pem_private_key(pem, password=None)
        except (TypeError, ValueError, UnsupportedAlgorithm):
            private = None
        if not isinstance(private, Ed25519PrivateKey):
            raise Invalid("not an Ed25519 private key", hint="make one: openssl genpkey -algorithm ed25519")
        return cls(private)

    def public_pem(self) -> str:
        return self._private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def sign(self, tenant: str, head: Head, at: datetime) -> SignedHead:
        unsigned = SignedHead(tenant, head.seq, head.hash, at.isoformat(timespec="microseconds"), self.id, "")
        signature = base64.b64encode(self._private.sign(unsigned.message())).decode()
        return SignedHead(tenant, head.seq, head.hash, unsigned.at, self.id, signature)


class PublicKeys:
    """The trusted public keys; several after a rotation."""

    def __init__(self, pems: Iterable[bytes]) -> None:
        keys = [_public(pem) for pem in pems]
        self._keys = {_id(key): key for key in keys}

    def flaw(self, signed: SignedHead) -> str | None:
        """The flaw of a signed head; None where one of these keys has signed exactly this."""
        key = self._keys.get(signed.key)
        if key is None:
            return f"is signed with the key {signed.key}, whose public key is missing"
        try:
            key.verify(base64.b64decode(signed.signature, validate=True), signed.message())
        except (InvalidSignature, ValueError):
            return "has a wrong signature"
        return None


def _public(pem: bytes) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise Invalid("not an Ed25519 public key", hint="assent audit public-key prints the one of this installation")
    return key


def _id(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:16]
