"""httpx reads the certificates of the certificate authorities once per worker, not once per client.

To read them takes twenty milliseconds of CPU time, more than most requests of a test, which go to loopback without TLS.
"""

from __future__ import annotations

import ssl
from functools import cache
from typing import Any

import httpx
import httpx._transports.default
import pytest

_read = httpx.create_ssl_context


def pytest_configure(config: pytest.Config) -> None:
    httpx.create_ssl_context = _context
    httpx._transports.default.create_ssl_context = _context  # type: ignore[attr-defined]


def _context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
    """Only the default is shared: what a test brings itself may differ from one client to the next."""
    return _default() if verify is True and cert is None else _read(verify, cert, trust_env)


@cache
def _default() -> ssl.SSLContext:
    return _read()
