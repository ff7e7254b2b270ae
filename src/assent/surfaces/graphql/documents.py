"""A document before its execution: within the limits, with variables that are cheap to read, and validated.

All of this is work of up to a tenth of a second on a document that somebody else wrote, so threads do it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from graphql import (
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    type_from_ast,
)
from strawberry.extensions import SchemaExtension
from strawberry.schema.schema import validate_document

from assent.errors import Invalid
from assent.kernel import fair_threads
from assent.surfaces.graphql import limits

MOST_INPUT_VALUES = 2_000
"""In all variables. A value of the scalar JSON counts as one: it is used as it is."""


async def admitted(
    schema: GraphQLSchema, query: str, variables: Mapping[str, Any], operation_name: str | None
) -> OperationType:
    """The type of the operation. Raises `Invalid` for a document or variables beyond a limit."""
    return await fair_threads.beside(_admitted, schema, query, variables, operation_name)


def _admitted(
    schema: GraphQLSchema, query: str, variables: Mapping[str, Any], operation_name: str | None
) -> OperationType:
    operation = limits.measured(query, variables, operation_name)
    _require_few(schema, operation, variables)
    return operation.operation


def _require_few(schema: GraphQLSchema, operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> None:
    """Execution converts each value of an input on the event loop."""
    count = 0
    waiting: list[tuple[Any, Any]] = [
        (type_from_ast(schema, definition.type), variables.get(definition.variable.name.value))
        for definition in operation.variable_definitions or ()
    ]
    while waiting:
        kind, value = waiting.pop()
        count += 1
        if count > MOST_INPUT_VALUES:
            raise Invalid(f"variables: at most {MOST_INPUT_VALUES:,} values of inputs", hint="send several requests")
        waiting += _parts(kind, value)


def _parts(kind: GraphQLInputType | None, value: Any) -> list[tuple[Any, Any]]:
    """The values inside a value, with their types; more than the limit are not needed."""
    if isinstance(kind, GraphQLNonNull):
        kind = kind.of_type
    if isinstance(kind, GraphQLList) and isinstance(value, list):
        return [(kind.of_type, element) for element in value[: MOST_INPUT_VALUES + 1]]
    if isinstance(kind, GraphQLInputObjectType) and isinstance(value, dict):
        fields = ((kind.fields.get(name), part) for name, part in list(value.items())[: MOST_INPUT_VALUES + 1])
        return [(known.type if known else None, part) for known, part in fields]
    return []


class Validation(SchemaExtension):
    """Validates in a thread; strawberry would validate on the event loop."""

    async def on_validate(self) -> AsyncIterator[None]:
        context = self.execution_context
        assert context.graphql_document is not None
        context.pre_execution_errors = await fair_threads.alone(
            validate_document, context.schema._schema, context.graphql_document, context.validation_rules
        )
        yield
