"""Drawings, JSON schemas and subgraphs of a graph, as plain JSON.

One unsupported annotation must not hide the rest of a graph: if a schema cannot be generated as a whole (on Python 3.11
that is every `typing.TypedDict`), it is built from its fields, and an unsupported field becomes "anything".
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from langchain_core.runnables.graph import Graph
    from langgraph.pregel import Pregel

    AnyPregel: TypeAlias = Pregel[Any, Any, Any, Any]

log = logging.getLogger(__name__)

Json = dict[str, Any]


def drawing(graph: AnyPregel, *, xray: bool | int = False) -> Json:
    """Nodes and edges; `xray` draws subgraphs too, all of them or down to a depth."""
    drawn = _drawn(graph, xray).to_json()
    for node in drawn["nodes"]:
        if isinstance(data := node.get("data"), dict):
            data.pop("id", None)  # the import path of a class
    plain: Json = json.loads(json.dumps(drawn, default=str))  # metadata may hold anything
    return plain


def _drawn(graph: AnyPregel, xray: bool | int) -> Graph:
    """Draws subgraphs as plain nodes if reading them fails, for example on an unreachable server."""
    if xray:
        try:
            return graph.get_graph(xray=xray)
        except Exception as error:  # noqa: BLE001 - another server or an author's class may raise anything
            log.warning("draw subgraphs failed", extra={"graph": graph.get_name(), "reason": str(error)})
    return graph.get_graph()


def schemas(graph: AnyPregel) -> Json:
    """The five schemas. Without a context, `config_schema` is empty and `context_schema` null, as clients expect."""
    context = _attempt(graph.get_context_jsonschema)
    return {
        "input_schema": _attempt(graph.get_input_jsonschema) or _fields_schema(graph, "Input", _keys(graph, "input")),
        "output_schema": _attempt(graph.get_output_jsonschema)
        or _fields_schema(graph, "Output", _keys(graph, "output")),
        "state_schema": _with_defaults(_fields_schema(graph, "State", graph.stream_channels_list)),
        "config_schema": context or {},
        "context_schema": context,
    }


def subgraphs(graph: AnyPregel, *, namespace: str | None = None, recurse: bool = False) -> Json:
    """Schemas by namespace; with `namespace`, of that one only."""
    from langgraph.pregel import Pregel

    named = graph.get_subgraphs(namespace=namespace, recurse=recurse)
    return {name: schemas(subgraph) for name, subgraph in named if isinstance(subgraph, Pregel)}


def _attempt(write: Callable[[], Json | None]) -> Json | None:
    from pydantic.errors import PydanticUserError

    try:
        return write()
    except (PydanticUserError, NameError, TypeError, ValueError) as exc:
        log.debug("no JSON Schema: %s", exc)
        return None


def _keys(graph: Any, side: str) -> Iterable[str]:
    """The fields of the builder's input or output schema; the whole state for a graph without a builder."""
    builder = getattr(graph, "builder", None)
    if builder is None:
        return list(graph.stream_channels_list)
    return list(builder.schemas[getattr(builder, f"{side}_schema")])


def _fields_schema(graph: AnyPregel, suffix: str, names: Iterable[str]) -> Json | None:
    """The schema of an update, built from its fields."""
    fields = {name: getattr(graph.channels.get(name), "UpdateType", Any) for name in names}
    name = graph.get_name(suffix)
    whole = _record_schema(name, fields)
    if whole is not None:
        return whole
    return _record_schema(
        name, {key: kind if _record_schema(name, {key: kind}) else Any for key, kind in fields.items()}
    )


def _with_defaults(schema: Json | None) -> Json | None:
    """The schema of a state: every field may be missing, and is null then."""
    if schema is None:
        return None
    fields = {name: {"default": None, **field} for name, field in schema.get("properties", {}).items()}
    return {**schema, "properties": fields}


def _record_schema(name: str, fields: dict[str, Any]) -> Json | None:
    from pydantic import TypeAdapter
    from typing_extensions import TypedDict

    # A TypedDict, because its keys may be any text: models refuse names like `_draft` or `copy`.
    record = TypedDict(name, fields, total=False)  # type: ignore[misc]
    return _attempt(lambda: TypeAdapter(record).json_schema())
