"""Remembers whether an MCP server refused the credentials: the client reports only that the request failed.

This module imports the HTTP library of the MCP client.
"""

from __future__ import annotations

from collections.abc import Generator

import httpx2

_REFUSED = (401, 403)


class Refusals(httpx2.Auth):
    """`status` is the status of the last refusal; None if there was none."""

    status: int | None = None

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        response = yield request
        if response.status_code in _REFUSED:
            self.status = response.status_code
