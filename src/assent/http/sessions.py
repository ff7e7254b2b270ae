"""The browser's session: the cookie that carries it and the credentials that open one."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from assent.domain.access import Principal
from assent.http.authentication import session_cookie
from assent.services.access import Access, is_key


async def sign_in(access: Access, request: Request, response: Response, credential: str) -> Principal:
    """Opens a session by a login link's token or a reviewer's key and puts its cookie on the response."""
    enter = access.sign_in_by_key if is_key(credential) else access.sign_in_by_link
    principal, token = await enter(credential)
    secure = request.url.scheme == "https"
    response.set_cookie(session_cookie(request), token, httponly=True, samesite="lax", secure=secure, path="/")
    return principal


async def sign_out(access: Access, request: Request, response: Response) -> None:
    name = session_cookie(request)
    if token := request.cookies.get(name):
        await access.sign_out(token)
    response.delete_cookie(name, path="/")
