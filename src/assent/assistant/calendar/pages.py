"""The login's pages: consent and callback. Plain HTML without a script."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from anyio import to_thread
from fastmcp import FastMCP
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from assent.assistant.calendar.login import Login

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem;color-scheme:light dark}"
    "a{display:inline-block;padding:.5rem 1rem;border:1px solid;border-radius:8px}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def add_health_to(server: FastMCP) -> None:
    @server.custom_route("/ok", methods=["GET"])
    async def ok(request: Request) -> Response:
        return JSONResponse({"ok": True})


def add_login_to(server: FastMCP, login: Login) -> None:
    @server.custom_route("/auth/connect/{login_id}", methods=["GET"])
    async def connect(request: Request) -> Response:
        state = await to_thread.run_sync(login.state, request.path_params["login_id"])
        if state is None:
            return _page("This link has expired", "It was used, or it is too old. Ask the assistant again.", status=404)
        callback = f"{request.scope.get('root_path', '')}/auth/callback?state={state}"
        text = "The assistant text to read and change the events of this calendar, until you revoke it."
        return _page("Connect the calendar", text, link=(callback, "Allow"))

    @server.custom_route("/auth/callback", methods=["GET"])
    async def callback(request: Request) -> Response:
        if request.method != "GET":  # a HEAD must not consume the state
            return Response(status_code=405)
        if not await to_thread.run_sync(login.complete, request.query_params.get("state", "")):
            return _page("Not connected", "This page was used, or it is too old. Open the link again.", status=400)
        return _page("Connected", "You may close this tab.")

    @server.custom_route("/auth/revoke", methods=["POST"])
    async def revoke(request: Request) -> Response:
        return JSONResponse({"revoked": await to_thread.run_sync(login.revoke)})


def _page(title: str, text: str, *, link: tuple[str, str] | None = None, status: int = 200) -> Response:
    action = f'<p><a href="{escape(link[0])}">{escape(link[1])}</a></p>' if link else ""
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1><p>{escape(text)}</p>{action}</body></html>",
        status,
        headers=_HEADERS,
    )
