"""The installation's one secret, from which others are derived: what signs webhooks, what encrypts stored keys.

In production it comes from the settings, so that every process has the same one and a copy of the database alone opens
nothing. On a developer's machine it is made on first use and kept beside the database, for its owner's eyes only.
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
            "refused to start: secret_key is not set, and production does not make up its own",
            hint="export ASSENT_SECRET_KEY=$(openssl rand -base64 32), the same for every process, and keep it safe",
        )
    return _kept(path(settings))


def path(settings: Settings) -> Path:
    """Where a secret of this machine's own is kept."""
    url = make_url(settings.database)
    if url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:"):
        return Path(url.database).with_suffix(".key")
    return settings.config.parent / ".assent" / "assent.key"


def _kept(file: Path) -> bytes:
    if not file.exists():
        _make(file)
    if file.stat().st_mode & _OTHERS:
        log.warning("others on this machine can read the secret key", extra={"file": str(file)})
    found = file.read_text(encoding="ascii").strip().encode()
    if len(found) < _BYTES:
        raise ConfigError(f"{file} holds no secret key", hint="remove it, and another one is made")
    return found


def _make(file: Path) -> None:
    """Appears under its name only when it is complete; where two processes start at once, the first one's stays."""
    file.parent.mkdir(parents=True, exist_ok=True)
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
