"""Browser sessions: the cookie, signing in and signing out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from assent.identity.access import Access, is_key
from assent.identity.model.access import Principal
from assent.surfaces.http.authentication import session_cookie
from assent.surfaces.http.limits.admission import Admission
from assent.surfaces.http.origins import peer_of


async def sign_in(
    access: Access, admission: Admission, request: Request, response: Response, credential: str
) -> Principal:
    """Opens a session with a login link's token or a reviewer's key and sets its cookie."""
    enter = access.sign_in_by_key if is_key(credential) else access.sign_in_by_link
    with admission.sign_in(peer_of(request)):
        principal, token = await enter(credential)
    secure = request.url.scheme == "https"
    response.set_cookie(session_cookie(request), token, httponly=True, samesite="lax", secure=secure, path="/")
    return principal


async def sign_out(access: Access, request: Request, response: Response) -> None:
    name = session_cookie(request)
    if token := request.cookies.get(name):
        await access.sign_out(token)
    response.delete_cookie(name, path="/")
