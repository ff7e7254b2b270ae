"""Handlers for the store, one by user: `Bearer <rule>:<name>`."""

from __future__ import annotations

from typing import Any

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str | None) -> dict[str, Any]:
    if authorization is None:
        raise Auth.exceptions.HTTPException(status_code=401, detail="no token")
    rule, _, name = authorization.removeprefix("Bearer ").partition(":")
    return {"identity": name, "permissions": [], "rule": rule}


@auth.on.store
async def about_store(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    user: Any = ctx.user
    if user.rule == "home":  # everyone has a namespace of their own, which clients do not name
        value["namespace"] = (user.identity, *(value["namespace"] or ()))
        return None
    if user.rule == "first":
        assert value["namespace"]
        assert value["namespace"][0] == user.identity
        return None
    if user.rule == "filter":
        return {"owner": user.identity}
    if user.rule == "broken":
        value["namespace"] = ("not.valid",)
    return user.rule != "deny"


@auth.on.crons
async def about_crons(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    user: Any = ctx.user
    if user.rule == "deny":
        return False
    filters = {"owner": user.identity}
    value.setdefault("metadata", {}).update(filters)
    return filters
