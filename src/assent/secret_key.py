"""The installation's secret, from which the keys that sign webhooks and encrypt stored keys are derived.

In production it comes from the settings, so that every process has the same one and a copy of the database alone
decrypts nothing. On a developer's machine it is made on first use and stored beside the database, for its owner only.
"""

from __future__ import annotations

import logging
import secrets
import stat
from pathlib import Path

from sqlalchemy import make_url

from assent.errors import ConfigError, UnsafeStart
from assent.kernel import private_file
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
    if not private_file.create(file, f"{secrets.token_urlsafe(_BYTES)}\n".encode()):
        log.debug("another process has made the secret key", extra={"file": str(file)})
