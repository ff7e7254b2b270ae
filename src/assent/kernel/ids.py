"""Ids and secrets: time-ordered ids for rows, 256-bit tokens for credentials, which are stored only as their hash."""

from __future__ import annotations

import hashlib
import secrets
from uuid import UUID

import uuid_utils


def new_id() -> str:
    """A UUIDv7: sorts by creation time."""
    return str(uuid_utils.uuid7())


def as_uuid(text: str) -> str | None:
    """The canonical form of a UUID; None for any other text."""
    try:
        return str(UUID(text))
    except ValueError:
        return None


def new_token(prefix: str) -> str:
    return f"{prefix}_{secrets.token_urlsafe(32)}"


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
