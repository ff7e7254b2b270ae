"""The schema: queries, mutations and the subscription, with errors as in REST."""

from __future__ import annotations

from functools import cache
from typing import Any

import strawberry
from graphql import GraphQLError, GraphQLSchema
from strawberry.schema.config import StrawberryConfig

from assent.surfaces.graphql import errors
from assent.surfaces.graphql.documents import Validation
from assent.surfaces.graphql.mutations import Mutation
from assent.surfaces.graphql.queries import Query
from assent.surfaces.graphql.subscriptions import Subscription


class Schema(strawberry.Schema):
    def process_errors(self, errors_: list[GraphQLError], execution_context: Any = None) -> None:
        errors.translate(errors_)


@cache
def schema() -> Schema:
    config = StrawberryConfig(auto_camel_case=True)
    return Schema(Query, Mutation, Subscription, config=config, extensions=[Validation])


def types() -> GraphQLSchema:
    """The types of the schema."""
    return schema()._schema
