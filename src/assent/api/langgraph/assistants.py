"""REST: assistants, as the LangGraph API has them."""

from __future__ import annotations

from typing import Literal, cast, get_args

from fastapi import APIRouter, Response
from pydantic import Field
from typing_extensions import TypedDict

from assent.api.langgraph.routing import router
from assent.api.langgraph.schemas import Body, Config, Limit, Object, Offset, SortOrder, Timestamp, tell_page
from assent.domain.assistants import Assistant, AssistantVersion, Change, Query
from assent.errors import Invalid
from assent.http.authentication import Caller
from assent.services.assistants import Assistants, IfExists
from assent.store.assistants import SortBy

SelectField = Literal[
    "assistant_id",
    "graph_id",
    "name",
    "description",
    "config",
    "context",
    "created_at",
    "updated_at",
    "metadata",
    "version",
]
_SELECTABLE: tuple[SelectField, ...] = get_args(SelectField)


class AssistantChange(Body):
    graph_id: str | None = None
    config: Config | None = Field(None, description="replaces the config; an empty one changes nothing")
    context: Object | None = Field(None, description="the newer name of `config.configurable`; give one of the two")
    metadata: Object | None = Field(None, description="merged into what is there")
    name: str | None = None
    description: str | None = None

    def to_domain(self) -> Change:
        return Change(**{name: getattr(self, name) for name in AssistantChange.model_fields})


class NewAssistant(AssistantChange):
    graph_id: str = Field(description="the name of a graph in langgraph.json")
    assistant_id: str | None = Field(None, description="a UUID; one is made where none is given")
    if_exists: IfExists = "raise"


class AssistantFilter(Body):
    metadata: Object = Field(default_factory=dict, description="contained in the assistant's metadata, at any depth")
    graph_id: str | None = None
    name: str | None = Field(None, description="part of the name, in any case of letters")

    def to_domain(self) -> Query:
        return Query(metadata=self.metadata, graph_id=self.graph_id, name=self.name)


class AssistantSearch(AssistantFilter):
    limit: Limit = 10
    offset: Offset = 0
    sort_by: SortBy = "created_at"
    sort_order: SortOrder = "desc"
    select: list[SelectField] | None = None


class VersionsSearch(Body):
    metadata: Object = Field(default_factory=dict)
    limit: Limit = 10
    offset: Offset = 0


class VersionChoice(Body):
    version: int = Field(ge=-(2**31), lt=2**31)


class VersionView(TypedDict, total=False):
    assistant_id: str
    graph_id: str
    name: str
    description: str | None
    config: Object
    context: Object
    metadata: Object
    version: int
    created_at: Timestamp


class AssistantView(VersionView, total=False):
    """All of it, or the fields that were selected."""

    updated_at: Timestamp


def routes(assistants: Assistants) -> APIRouter:
    api = router("/assistants", "assistants")
    _add_lists(api, assistants)
    _add_rows(api, assistants)
    _add_versions(api, assistants)
    _add_graphs(api, assistants)
    return api


def _add_lists(api: APIRouter, assistants: Assistants) -> None:
    @api.post("")
    async def create_assistant(caller: Caller, body: NewAssistant) -> AssistantView:
        made = await assistants.create(
            caller, body.graph_id, body.to_domain(), assistant_id=body.assistant_id, if_exists=body.if_exists
        )
        return _view(made)

    @api.post("/search")
    async def search_assistants(caller: Caller, body: AssistantSearch, response: Response) -> list[AssistantView]:
        """Newest first. `X-Pagination-Total` counts all that match, `X-Pagination-Next` is the next page's offset."""
        found, total = await assistants.search(
            caller,
            body.to_domain(),
            sort_by=body.sort_by,
            descending=body.sort_order == "desc",
            limit=body.limit,
            offset=body.offset,
        )
        tell_page(response, offset=body.offset, shown=len(found), total=total)
        return [_view(assistant, body.select or _SELECTABLE) for assistant in found]

    @api.post("/count")
    async def count_assistants(caller: Caller, body: AssistantFilter) -> int:
        return await assistants.count(caller, body.to_domain())


def _add_rows(api: APIRouter, assistants: Assistants) -> None:
    @api.get("/{assistant_id}")
    async def get_assistant(caller: Caller, assistant_id: str) -> AssistantView:
        return _view(await assistants.get(caller, assistant_id))

    @api.patch("/{assistant_id}")
    async def change_assistant(caller: Caller, assistant_id: str, body: AssistantChange) -> AssistantView:
        """Makes a new version, which is in force at once."""
        return _view(await assistants.change(caller, assistant_id, body.to_domain()))

    @api.delete("/{assistant_id}", status_code=204)
    async def delete_assistant(caller: Caller, assistant_id: str, delete_threads: bool = False) -> None:
        """`delete_threads` also deletes the threads that carry the assistant's id in their metadata."""
        await assistants.delete(caller, assistant_id, delete_threads=delete_threads)


def _add_versions(api: APIRouter, assistants: Assistants) -> None:
    @api.post("/{assistant_id}/versions")
    async def list_assistant_versions(caller: Caller, assistant_id: str, body: VersionsSearch) -> list[VersionView]:
        found = await assistants.versions(
            caller, assistant_id, metadata=body.metadata, limit=body.limit, offset=body.offset
        )
        return [_version_view(version) for version in found]

    @api.post("/{assistant_id}/latest")
    async def set_latest_assistant_version(caller: Caller, assistant_id: str, body: VersionChoice) -> AssistantView:
        return _view(await assistants.set_latest(caller, assistant_id, body.version))


def _add_graphs(api: APIRouter, assistants: Assistants) -> None:
    @api.get("/{assistant_id}/graph")
    async def draw_assistant(caller: Caller, assistant_id: str, xray: str = "false") -> Object:
        """Takes a graph's name too. `xray` draws subgraphs: all of them, or down to a depth."""
        return await assistants.drawing(caller, assistant_id, xray=_xray(xray))

    @api.get("/{assistant_id}/schemas")
    async def get_assistant_schemas(caller: Caller, assistant_id: str) -> Object:
        return await assistants.schemas(caller, assistant_id)

    @api.get("/{assistant_id}/subgraphs")
    async def get_assistant_subgraphs(caller: Caller, assistant_id: str, recurse: bool = False) -> Object:
        return await assistants.subgraphs(caller, assistant_id, recurse=recurse)

    @api.get("/{assistant_id}/subgraphs/{namespace:path}")
    async def get_assistant_subgraph(
        caller: Caller, assistant_id: str, namespace: str, recurse: bool = False
    ) -> Object:
        return await assistants.subgraphs(caller, assistant_id, namespace=namespace, recurse=recurse)


def _view(assistant: Assistant, select: tuple[SelectField, ...] | list[SelectField] = _SELECTABLE) -> AssistantView:
    whole: AssistantView = {**_version_view(assistant), "updated_at": assistant.updated_at}
    return cast(AssistantView, {name: whole[name] for name in select})


def _version_view(version: AssistantVersion) -> VersionView:
    return {
        "assistant_id": version.id,
        "graph_id": version.graph_id,
        "name": version.name,
        "description": version.description,
        "config": version.config,
        "context": version.context,
        "metadata": version.metadata,
        "version": version.version,
        "created_at": version.created_at,
    }


def _xray(text: str) -> bool | int:
    """`true`, `false`, or a depth."""
    named = {"true": True, "false": False}.get(text.lower())
    if named is not None:
        return named
    if not text.isdecimal() or len(text) > 3 or int(text) == 0:
        raise Invalid("Invalid xray value")
    return int(text)
