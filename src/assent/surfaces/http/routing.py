"""Routes that parse JSON strictly: duplicate keys, NaN, lone surrogates and deep nesting are refused, and integers
stay exact, so that reviewers see exactly what was sent."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match, compile_path, get_name
from starlette.types import Scope

from assent.errors import InvalidJson, TooLarge
from assent.kernel import canonical, fair_threads
from assent.surfaces.http.limits.execution import executed

_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": {"content": _PROBLEM}, "5XX": {"content": _PROBLEM}}
"""A reference, not the model: FastAPI would process the model again for every route."""

_READ_AT_ONCE = 16 * 1024
"""Larger bodies are parsed in a thread, so that other requests continue."""


class StrictRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            most = getattr(self.app.state, "max_body_values", canonical.MAX_VALUES)
            try:
                self._json = await read(await self.body(), max_values=most)
            except canonical.JsonTooLarge as error:
                raise TooLarge(f"the body: {error}", hint="see the setting max_body_values") from None
            except canonical.JsonError as error:
                raise InvalidJson(str(error)) from None
        return self._json


async def read(body: bytes, *, max_values: int = canonical.MAX_VALUES) -> Any:
    """Parses a body whose size is already limited."""
    parse = partial(canonical.parse, body, max_bytes=len(body), max_values=max_values)
    if len(body) <= _READ_AT_ONCE:
        return parse()
    return await (fair_threads.alone(parse) if len(body) > fair_threads.LARGE_BYTES else fair_threads.beside(parse))


def as_json(scope: Scope) -> Scope:
    """Declares the body of a caller with a key as JSON. Other callers must declare it: a form on any page can make a
    browser send other content types, with the cookie or from this machine."""
    if not scope.get("state", {}).get("by_key"):
        return scope
    others = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return {**scope, "headers": [*others, (b"content-type", b"application/json")]}


def require_declared(request: Request) -> None:
    if "json" not in request.headers.get("content-type", ""):
        raise InvalidJson("the body is not declared as JSON", hint="send the header content-type: application/json")


class DeferredRoute(APIRoute):
    """A route that is prepared at its first use. FastAPI examines every endpoint when its route is made, which took
    longer than everything else that a start of Assent does."""

    def __init__(
        self, path: str, endpoint: Callable[..., Any], *, methods: list[str] | None = None, **options: Any
    ) -> None:
        self._prepare = partial(super().__init__, path, endpoint, methods=methods, **options)
        self.path, self.endpoint = path, endpoint
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.name = options.get("name") or get_name(endpoint)
        self.methods = {method.upper() for method in methods or ["GET"]}
        self.include_in_schema = options.get("include_in_schema", True)
        self._begins = path.partition("{")[0]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Most requests are not for this route: to see that costs a tenth of a match by the pattern."""
        if not scope.get("root_path") and not scope["path"].startswith(self._begins):
            return Match.NONE, {}
        return super().matches(scope)

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there yet."""
        if (prepare := self.__dict__.pop("_prepare", None)) is None:
            raise AttributeError(f"a route has no attribute {name}")
        prepare()
        return getattr(self, name)


class StrictRoute(DeferredRoute):
    takes_json = True
    """Whether a body must be JSON; pages take forms as well."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def read(request: Request) -> Response:
            if await request.body():
                if self.takes_json and self.body_field is not None:
                    require_declared(request)
                if "json" in request.headers.get("content-type", ""):
                    await request.json()
            return await handle(request)

        async def strict(request: Request) -> Response:
            """Parses the body before FastAPI does, which would answer every parse error with the same 400."""
            scope = as_json(request.scope) if self.takes_json else request.scope
            return await executed(StrictRequest(scope, request.receive), read)

        return strict


def router(prefix: str, tag: str) -> APIRouter:
    return APIRouter(prefix=prefix, tags=[tag], route_class=StrictRoute, responses=dict(_PROBLEMS))


def add(app: FastAPI | APIRouter, routes: APIRouter) -> None:
    """Adds the routes themselves: `include_router` would create every route a second time."""
    app.routes.extend(routes.routes)


def holds_nul(value: Any) -> bool:
    """Whether a text in it contains U+0000, which Postgres cannot store."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(map(holds_nul, value)) or any(map(holds_nul, value.values()))
    return isinstance(value, list) and any(map(holds_nul, value))
