"""An auth file as authors write them, with one of everything: the token says how the handlers behave.

`Bearer <rule>:<name>` is a user called name to whom `@auth.on` applies the rule; other tokens are the ways in which
`@auth.authenticate` itself can go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph_sdk import Auth
from starlette.requests import Request

auth = Auth()

SECRET = "postgres://admin:hunter2@10.0.0.1/users"


@dataclass
class Account:
    """What a handler may return as well: an object of its own."""

    identity: str
    rule: str = "open"


ODD_USERS: dict[str, Any] = {
    "text": "tess",
    "object": Account("olga"),
    "pair": (["read", "assent:decide"], {"identity": "pia"}),
    "reviewer": {"identity": "rita", "display_name": "Rita", "permissions": ["assent:decide"], "rule": "open"},
    "own reviewer": {"identity": "otto", "permissions": ["assent:decide"], "rule": "owner"},
    "team reviewer": {"identity": "tara", "permissions": ["assent:decide"], "rule": "team"},
    "acme": {"identity": "amy", "permissions": ["assent:tenant:acme"], "rule": "open"},
    "nobody": None,
    "anonymous": {"identity": "someone", "is_authenticated": False},
    "nameless": {"permissions": []},
    "number": 7,
    "two tenants": {"identity": "eve", "permissions": ["assent:tenant:a", "assent:tenant:b"]},
    "no tenant": {"identity": "eve", "permissions": ["assent:tenant:"]},
    "odd tenant": {"identity": "eve", "permissions": ["assent:tenant:a/b"]},
    "odd permissions": {"identity": "eve", "permissions": [1]},
}
FAULTS: dict[str, Exception] = {
    "teapot": Auth.exceptions.HTTPException(status_code=418, detail="I'm a teapot"),
    "forbidden": Auth.exceptions.HTTPException(status_code=403, detail="not you"),
    "fine": Auth.exceptions.HTTPException(status_code=200, detail="nothing wrong"),
    "key": KeyError(SECRET),
    "value": ValueError(SECRET),
    "own": type("TokenError", (Exception,), {})(SECRET),
    "down": ConnectionError(SECRET),
    "broken": RuntimeError(SECRET),
}


@auth.authenticate
async def authenticate(
    request: Request,
    body: Any,
    path: str,
    method: str,
    path_params: dict[str, str],
    query_params: dict[str, str],
    headers: dict[bytes, bytes],
    authorization: str | None,
    optional: str = "not asked for",
) -> Any:
    if authorization is None and b"x-token" not in headers:
        raise Auth.exceptions.HTTPException(status_code=401, detail="no token")
    token = (authorization or f"Bearer {headers[b'x-token'].decode()}").split(" ", 1)[1]
    if token in FAULTS:
        raise FAULTS[token]
    if token in ODD_USERS:
        return ODD_USERS[token]
    seen = {
        "path": path,
        "method": method,
        "path_params": dict(path_params),
        "query_params": dict(query_params),
        "agent": request.headers.get("user-agent"),
        "body": body,
        "read_again": (await request.body()).decode(),
        "optional": optional,
    }
    rule, name = token.split(":")
    return {"identity": name, "display_name": name.title(), "permissions": ["read"], "rule": rule, "seen": seen}


@auth.on
async def decide(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    """The rule of the user, whichever way they are looked at."""
    assert ctx.user.identity == ctx.user["identity"]
    assert list(ctx.permissions) == list(ctx.user.permissions)
    return await RULES[ctx.user.rule](ctx, value)  # type: ignore[attr-defined]


async def owner(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    """The way of LangGraph's own documentation."""
    filters = {"owner": ctx.user.identity}
    value.setdefault("metadata", {}).update(filters)
    return filters


async def team(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    """Threads are their owner's; a reviewer sees what the threads of the team ask."""
    if value.get("assent:inbox") and "assent:decide" in ctx.permissions:
        return {"team": "red"}
    return await owner(ctx, value)


async def reader(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    return ctx.action in ("read", "search")


async def member(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    return {"members": {"$contains": ctx.user.identity}}


async def either(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    return {"$or": [{"owner": {"$eq": ctx.user.identity}}, {"members": {"$contains": [ctx.user.identity]}}]}


async def allow(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    return True


async def nothing(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    return None


async def deny(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    return False


async def insist(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    assert ctx.action == "put", SECRET


async def refuse(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    raise Auth.exceptions.HTTPException(status_code=402, detail="pay first")


async def fail(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    raise ValueError(SECRET)


async def talk(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    return "yes, of course"


async def vague(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    return {"owner": {"$startswith": SECRET}}


async def spoil(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    value["metadata"] = SECRET


RULES = {
    "owner": owner,
    "team": team,
    "reader": reader,
    "member": member,
    "either": either,
    "open": allow,
    "nothing": nothing,
    "deny": deny,
    "insist": insist,
    "refuse": refuse,
    "fail": fail,
    "talk": talk,
    "vague": vague,
    "spoil": spoil,
}
