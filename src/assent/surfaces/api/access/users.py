"""REST: the people of the caller's tenant."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from assent.identity.model.access import Role
from assent.identity.model.users import User
from assent.identity.users import MOST_GROUPS, Users
from assent.surfaces.api.schemas import Body, Cursor, Limit, PageOf
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import router

Groups = Annotated[list[str], Field(max_length=MOST_GROUPS, description="as policies name them under `by`")]


class UserRequest(Body):
    name: str = Field(min_length=1, max_length=200)
    role: Role = Role.REVIEWER
    email: str | None = Field(None, max_length=320)
    groups: Groups = Field(default_factory=list)


class UserChange(Body):
    role: Role | None = None
    disabled: bool | None = None
    groups: Groups | None = None


class UserView(BaseModel):
    id: str
    name: str
    email: str | None
    role: Role
    groups: list[str]
    created_at: datetime
    disabled_at: datetime | None

    @classmethod
    def of(cls, user: User) -> UserView:
        facts = {name: getattr(user, name) for name in cls.model_fields}
        return cls(**facts | {"groups": sorted(user.groups)})


class LoginLink(BaseModel):
    token: str = Field(description="works once, within 15 minutes, as the fragment of /login")


class Erased(BaseModel):
    payloads: int = Field(description="number of erased event payloads")


def routes(users: Users) -> APIRouter:
    api = router("/api/users", "users")

    @api.post("", status_code=201)
    async def create_user(caller: Caller, body: UserRequest) -> UserView:
        return UserView.of(
            await users.create(caller, name=body.name, role=body.role, email=body.email, groups=body.groups)
        )

    @api.get("")
    async def list_users(caller: Caller, limit: Limit = 50, cursor: Cursor = None) -> PageOf[UserView]:
        page = await users.list(caller, limit=limit, cursor=cursor)
        return PageOf(items=[UserView.of(user) for user in page.items], next=page.next)

    @api.patch("/{name}")
    async def change_user(caller: Caller, name: str, body: UserChange) -> UserView:
        return UserView.of(await users.change(caller, name, role=body.role, disabled=body.disabled, groups=body.groups))

    @api.post("/{name}/login-link", status_code=201)
    async def create_login_link(caller: Caller, name: str) -> LoginLink:
        return LoginLink(token=await users.login_link(caller, name))

    @api.delete("/{name}")
    async def erase_user(caller: Caller, name: str) -> Erased:
        return Erased(payloads=await users.erase(caller, name))

    return api
