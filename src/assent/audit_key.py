"""The key that signs the heads of the timeline. It comes from the operator's file or the installation's secret; never
from the database, whose writers it has to detect."""

from __future__ import annotations

import logging
import stat
from typing import TYPE_CHECKING

from assent import secret_key
from assent.errors import ConfigError, Invalid
from assent.settings import Mode, Settings

if TYPE_CHECKING:
    from assent.audit.signatures import AuditKey

log = logging.getLogger(__name__)

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def load(settings: Settings) -> AuditKey:
    from assent.audit.signatures import AuditKey  # slow to import

    if settings.audit_key is None:
        return AuditKey.derived(secret_key.load(settings))
    try:
        if settings.audit_key.stat().st_mode & _OTHERS:
            log.warning("audit key is readable by other users", extra={"file": str(settings.audit_key)})
        return AuditKey.from_pem(settings.audit_key.read_bytes())
    except OSError as error:
        raise ConfigError(f"audit_key: {settings.audit_key} cannot be read: {error.strerror}") from None
    except Invalid as error:
        raise ConfigError(f"audit_key: {settings.audit_key} is {error.message}", hint=error.hint) from None


def check(settings: Settings) -> None:
    """Fails at the start rather than at the first signature. A key that is derived from the secret cannot be wrong."""
    if settings.audit_key is not None:
        load(settings)


def existing(settings: Settings) -> AuditKey | None:
    """As `load`; None where there is no key yet."""
    configured = settings.audit_key is not None or settings.secret_key is not None
    stored = settings.mode is not Mode.SERVE and secret_key.path(settings).exists()
    return load(settings) if configured or stored else None
