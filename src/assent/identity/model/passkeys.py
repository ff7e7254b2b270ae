"""Passkeys: a person's proof for one challenge.

A browser signs our challenge with a key that never leaves its device, after the device has verified its owner. The
challenge is bound to one purpose: a decision about exactly one revision, or the registration of a further passkey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from assent.kernel import canonical
from assent.kernel.canonical import Json

LIFETIME = timedelta(minutes=2)
"""The lifetime of a challenge."""

FRESH = timedelta(minutes=5)
"""The maximum age of a sign-in that adds or removes a passkey."""

MOST_PASSKEYS = 20
"""Per person."""

_ALGORITHMS = (-8, -7, -257)
"""Ed25519, ECDSA with P-256, RSA with PKCS #1: those that browsers and security keys support."""


@dataclass(frozen=True, slots=True)
class Party:
    """The relying party: the domain that a passkey is bound to, and the origin of our pages."""

    id: str
    origin: str


@dataclass(frozen=True, slots=True)
class Proof:
    """A browser's passkey response as JSON, and its relying party; None where passkeys do not work at this address."""

    answer: Mapping[str, Json]
    party: Party | None


@dataclass(frozen=True, slots=True)
class Passkey:
    id: str
    user_id: str
    credential_id: str
    public_key: bytes
    sign_count: int
    party: str
    name: str
    transports: tuple[str, ...]
    created_at: datetime
    last_used_at: datetime | None


def bound(**facts: Json) -> str:
    """The digest of the purpose that a signature is valid for."""
    return canonical.digest(facts)


def request_options(party: Party, challenge: str, passkeys: Sequence[Passkey]) -> dict[str, Any]:
    """The JSON options of `navigator.credentials.get`."""
    return {
        "challenge": challenge,
        "rpId": party.id,
        "timeout": _milliseconds(LIFETIME),
        "userVerification": "required",
        "allowCredentials": [_descriptor(passkey) for passkey in passkeys],
    }


def creation_options(
    party: Party, challenge: str, *, name: str, handle: str, known: Sequence[Passkey]
) -> dict[str, Any]:
    """The JSON options of `navigator.credentials.create`. `handle` is the user's id in base64url."""
    return {
        "challenge": challenge,
        "rp": {"id": party.id, "name": "Assent"},
        "user": {"id": handle, "name": name, "displayName": name},
        "pubKeyCredParams": [{"type": "public-key", "alg": number} for number in _ALGORITHMS],
        "timeout": _milliseconds(LIFETIME),
        "attestation": "none",
        "authenticatorSelection": {"residentKey": "preferred", "userVerification": "required"},
        "excludeCredentials": [_descriptor(passkey) for passkey in known],
    }


def _descriptor(passkey: Passkey) -> dict[str, Any]:
    return {"type": "public-key", "id": passkey.credential_id, "transports": list(passkey.transports)}


def _milliseconds(time: timedelta) -> int:
    return int(time.total_seconds() * 1000)
