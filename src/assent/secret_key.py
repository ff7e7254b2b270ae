"""The installation's secret, from which the keys that sign webhooks and encrypt stored keys are derived.

In production it comes from the settings, so that every process has the same one and a copy of the database alone
decrypts nothing. On a developer's machine it is made on first use and stored beside the database, for its owner only.
"""

from __future__ import annotations

import logging
import os
import secrets
import stat
from pathlib import Path

from sqlalchemy import make_url

from assent.errors import ConfigError, UnsafeStart
from assent.settings import Mode, Settings

_BYTES = 32
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

log = logging.getLogger(__name__)


def load(settings: Settings) -> bytes:
    if settings.secret_key is not None:
        return settings.secret_key.get_secret_value().encode()
    if settings.mode is Mode.SERVE:
        raise UnsafeStart(
            "refused to start: secret_key is not set, and production does not generate one",
            hint="export ASSENT_SECRET_KEY=$(openssl rand -base64 32), the same for every process, and keep it safe",
        )
    return _stored(path(settings))


def path(settings: Settings) -> Path:
    """The file of this machine's own secret."""
    url = make_url(settings.database)
    if url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:"):
        return Path(url.database).with_suffix(".key")
    return settings.config.parent / ".assent" / "assent.key"


def _stored(file: Path) -> bytes:
    if not file.exists():
        _make(file)
    if file.stat().st_mode & _OTHERS:
        log.warning("secret key is readable by other users", extra={"file": str(file)})
    secret = file.read_text(encoding="ascii").strip().encode()
    if len(secret) < _BYTES:
        raise ConfigError(f"{file} holds no secret key", hint="remove the file; the next start makes a new key")
    return secret


def _make(file: Path) -> None:
    """Creates the file atomically; where two processes start at once, the first one's stays."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(secrets.token_urlsafe(_BYTES) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    try:
        os.link(draft, file)
    except FileExistsError:
        log.debug("another process has made the secret key", extra={"file": str(file)})
    finally:
        draft.unlink()
