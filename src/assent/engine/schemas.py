"""What a graph looks like from outside: its drawing, its JSON schemas, its subgraphs. All answers are plain JSON.

A schema that cannot be written as JSON Schema is null (of a single state field: any), because one odd annotation must
not hide the rest of the graph from its clients.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

log = logging.getLogger(__name__)

Json = dict[str, Any]


def drawing(graph: Pregel[Any, Any, Any, Any], *, xray: bool | int = False) -> Json:
    """Nodes and edges; `xray` draws subgraphs too, all of them or down to a depth."""
    drawn = graph.get_graph(xray=xray).to_json()
    for node in drawn["nodes"]:
        if isinstance(data := node.get("data"), dict):
            data.pop("id", None)  # the import path of a class, of no use outside
    plain: Json = json.loads(json.dumps(drawn, default=str))  # metadata may hold anything
    return plain


def schemas(graph: Pregel[Any, Any, Any, Any]) -> Json:
    """The five schemas. Without a context, `config_schema` is empty and `context_schema` null, as clients expect."""
    context = _schema_or_none(graph.get_context_jsonschema, graph, "context")
    return {
        "input_schema": _schema_or_none(graph.get_input_jsonschema, graph, "input"),
        "output_schema": _schema_or_none(graph.get_output_jsonschema, graph, "output"),
        "state_schema": _state_schema(graph),
        "config_schema": context or {},
        "context_schema": context,
    }


def subgraphs(graph: Pregel[Any, Any, Any, Any], *, namespace: str | None = None, recurse: bool = False) -> Json:
    """Schemas by namespace; with `namespace`, of that one only."""
    from langgraph.pregel import Pregel

    found = graph.get_subgraphs(namespace=namespace, recurse=recurse)
    return {name: schemas(subgraph) for name, subgraph in found if isinstance(subgraph, Pregel)}


def _schema_or_none(make: Callable[[], Json | None], graph: Pregel[Any, Any, Any, Any], which: str) -> Json | None:
    from pydantic.errors import PydanticUserError

    try:
        return make()
    except (PydanticUserError, NameError, TypeError, ValueError) as exc:
        log.warning("graph %r: its %s cannot be written as JSON Schema: %s", graph.name, which, exc)
        return None


def _state_schema(graph: Pregel[Any, Any, Any, Any]) -> Json | None:
    """What an update of the state may hold, field by field."""
    fields = {name: getattr(graph.channels[name], "UpdateType", Any) for name in graph.stream_channels_list}
    whole = _record_schema(graph, fields)
    if whole is not None:
        return whole
    alone = {name: kind if _record_schema(graph, {name: kind}) else Any for name, kind in fields.items()}
    return _record_schema(graph, alone)


def _record_schema(graph: Pregel[Any, Any, Any, Any], fields: dict[str, Any]) -> Json | None:
    from pydantic import TypeAdapter

    # A TypedDict, because its keys may be any text: models refuse names like `_draft` or `copy`.
    record = TypedDict(graph.get_name("State"), fields, total=False)  # type: ignore[misc]
    return _schema_or_none(lambda: TypeAdapter(record).json_schema(), graph, "state")
