"""Routes that read bodies as the LangGraph API does: a body that is empty or not JSON is one kind of 422.

Parsing is strict, and the same for every database: Postgres cannot store U+0000, so it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from inspect import signature
from typing import Any, ClassVar, cast

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, ValidationError

from assent.errors import Invalid, InvalidJson
from assent.kernel import canonical, fair_threads
from assent.surfaces.http.limits.execution import executed
from assent.surfaces.http.routing import DeferredRoute, StrictRequest, as_json, holds_nul, read, require_declared

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

NOT_JSON = "Invalid JSON in request body"


class Failure(BaseModel):
    """An error. `detail` is for people; programs read the status and `code`. Some have further fields."""

    model_config = ConfigDict(extra="allow")

    detail: str
    code: str
    hint: str | None = None
    request_id: str | None = None


class BodyRequest(StrictRequest):
    async def json(self) -> Any:
        try:
            value = await super().json()
        except InvalidJson as error:
            raise InvalidJson(NOT_JSON, hint=error.message) from None
        await _require_storable(await self.body(), value)
        return value


async def parsed(text: bytes, max_values: int) -> Any:
    """A message of a web socket, as strictly as a body."""
    try:
        value = await read(text, max_values=max_values)
    except canonical.JsonError as error:
        raise InvalidJson(str(error)) from None
    await _require_storable(text, value)
    return value


async def _require_storable(text: bytes, value: Any) -> None:
    if b"\\u0000" in text and await fair_threads.beside(holds_nul, value):
        raise Invalid("a text in the body contains the character U+0000, which cannot be stored")


class LangGraphRoute(DeferredRoute):
    request_class: ClassVar[type[BodyRequest]] = BodyRequest

    def get_route_handler(self) -> Handler:
        handle = self._handler()
        field = self.body_field
        takes_body, needs_body = field is not None, field is not None and field.field_info.is_required()

        async def read(request: Request) -> Response:
            if takes_body and (needs_body or await request.body()):
                if await request.body():
                    _require_declared(request)
                await request.json()
            return await handle(request)

        async def strict(request: Request) -> Response:
            return await executed(self.request_class(as_json(request.scope), request.receive), read)

        return strict

    def _handler(self) -> Handler:
        """The handler of requests whose body is JSON."""
        return super().get_route_handler()


class DirectRoute(LangGraphRoute):
    """A hot route. Its endpoint takes a `body`, the caller, the execution and parts of the path, and answers itself.

    A valid request does not pass FastAPI's dependencies, which take several percent of the processor time of a short
    run. FastAPI refuses the others."""

    def _handler(self) -> Handler:
        handle, endpoint = super()._handler(), self.endpoint
        assert self.body_field is not None
        model = cast(type[BaseModel], self.body_field.field_info.annotation)
        names = [name for name in signature(endpoint).parameters if name != "body"]

        async def direct(request: Request) -> Response:
            if request.headers.get("content-type", "").partition(";")[0] != "application/json":
                return await handle(request)
            try:
                body = model.model_validate(await request.json())
            except ValidationError:
                return await handle(request)
            response: Response = await endpoint(body=body, **{name: _argument(request, name) for name in names})
            return response

        return direct


def _argument(request: Request, name: str) -> Any:
    if name == "caller":
        return request.state.principal
    return request.state.execution if name == "executing" else request.path_params[name]


def _require_declared(request: Request) -> None:
    try:
        require_declared(request)
    except InvalidJson as error:
        raise InvalidJson(NOT_JSON, hint=error.hint) from None


def router(prefix: str, tag: str, route_class: type[LangGraphRoute] = LangGraphRoute) -> APIRouter:
    failures: dict[int | str, dict[str, Any]] = {"4XX": {"model": Failure}, "5XX": {"model": Failure}}
    return APIRouter(prefix=prefix, tags=[tag], route_class=route_class, responses=failures, strict_content_type=False)
