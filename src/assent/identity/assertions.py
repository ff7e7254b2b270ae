"""Verifies a browser's passkey response by the rules of WebAuthn. The library is slow to import and needed only where
policies require passkeys: it is loaded with the first response."""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assent.errors import ConfirmationRefused
from assent.identity.model.passkeys import Party, Passkey
from assent.kernel import canonical
from assent.kernel.canonical import Json

_LONGEST_PART = 20_000
"""Characters of one part of a response; real ones have a few hundred."""

_LONGEST_CREDENTIAL_ID = 1023
"""In bytes, by the standard."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A new passkey, as its authenticator describes it."""

    credential_id: str
    public_key: bytes
    sign_count: int


async def load() -> None:
    """Imports the library in a thread, outside of transactions."""
    await asyncio.to_thread(_library)


def challenge_in(answer: Mapping[str, Json]) -> str:
    """The challenge in the response, not verified yet."""
    try:
        client_data = canonical.parse(_decoded(_part(answer, "clientDataJSON")))
    except canonical.JsonError:
        raise _malformed() from None
    challenge = client_data.get("challenge") if isinstance(client_data, dict) else None
    if not isinstance(challenge, str) or client_data.get("crossOrigin") is True:
        raise _malformed()
    return challenge


def credential_in(answer: Mapping[str, Json]) -> str:
    """The id of the credential that signed the response."""
    credential_id = answer.get("id")
    if not isinstance(credential_id, str) or len(credential_id) > _LONGEST_PART:
        raise _malformed()
    return credential_id


def verified(answer: Mapping[str, Json], challenge: str, party: Party, passkey: Passkey) -> int:
    """The passkey's new signature count, after checking that it signed this challenge: with its owner present and
    verified, at our origin, and later than the last time."""
    _check_sizes(answer, ("clientDataJSON", "authenticatorData", "signature"))
    _check_owner(answer, passkey)
    library = _library()
    try:
        verification = library.verify_authentication_response(
            credential=dict(answer),
            expected_challenge=_decoded(challenge),
            expected_rp_id=party.id,
            expected_origin=party.origin,
            credential_public_key=passkey.public_key,
            credential_current_sign_count=passkey.sign_count,
            require_user_verification=True,
        )
    except Exception as error:  # noqa: BLE001 - the input is untrusted: every parse error is a refusal
        raise ConfirmationRefused(f"the passkey's response is not valid: {_reason(error)}") from None
    count: int = verification.new_sign_count
    return count


def registered(answer: Mapping[str, Json], challenge: str, party: Party) -> Registered:
    """The passkey that was made for this challenge."""
    _check_sizes(answer, ("clientDataJSON", "attestationObject"))
    library = _library()
    try:
        registration = library.verify_registration_response(
            credential=dict(answer),
            expected_challenge=_decoded(challenge),
            expected_rp_id=party.id,
            expected_origin=party.origin,
            require_user_verification=True,
        )
    except Exception as error:  # noqa: BLE001 - as above
        raise ConfirmationRefused(
            f"the new passkey cannot be used: {_reason(error)}", hint="try again, or with another device"
        ) from None
    if not 0 < len(registration.credential_id) <= _LONGEST_CREDENTIAL_ID:
        raise _malformed()
    return Registered(encoded(registration.credential_id), registration.credential_public_key, registration.sign_count)


def transports_in(answer: Mapping[str, Json]) -> tuple[str, ...]:
    """The transports of the device as the browser reports them, not verified: a hint for the next sign-in."""
    response = answer.get("response")
    names = response.get("transports") if isinstance(response, dict) else None
    transports = {"usb", "nfc", "ble", "internal", "cable", "hybrid", "smart-card"}
    return tuple(sorted({n for n in names if isinstance(n, str)} & transports)) if isinstance(names, list) else ()


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _library() -> Any:
    import webauthn

    return webauthn


def _check_owner(answer: Mapping[str, Json], passkey: Passkey) -> None:
    """Some devices store the person's id with the key and return it."""
    response = answer.get("response")
    handle = response.get("userHandle") if isinstance(response, dict) else None
    if handle and handle != encoded(passkey.user_id.encode()):
        raise ConfirmationRefused("this passkey belongs to somebody else")


def _check_sizes(answer: Mapping[str, Json], parts: tuple[str, ...]) -> None:
    for name in parts:
        _part(answer, name)


def _part(answer: Mapping[str, Json], name: str) -> str:
    response = answer.get("response")
    part = response.get(name) if isinstance(response, dict) else None
    if not isinstance(part, str) or len(part) > _LONGEST_PART:
        raise _malformed()
    return part


def _decoded(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise _malformed() from None


def _malformed() -> ConfirmationRefused:
    return ConfirmationRefused("this is not a passkey response")


def _reason(error: Exception) -> str:
    """The library's message about a response that it could parse; its other errors are internal."""
    from webauthn.helpers.exceptions import WebAuthnException

    text = str(error).partition("\n")[0]
    return text[:1].lower() + text[1:300] if isinstance(error, WebAuthnException) and text else "it is malformed"


def new_challenge() -> str:
    return encoded(secrets.token_bytes(32))


def nowhere(**extra: Any) -> ConfirmationRefused:
    """Browsers bind passkeys to a domain, and use them on secure pages only."""
    return ConfirmationRefused(
        "passkeys do not work at this address: it needs a domain with https, or localhost",
        hint="open the inbox at http://localhost on the same port, or set public_url",
        **extra,
    )
