"""The schema: queries, mutations and the subscription, with errors as in REST."""

from __future__ import annotations

from functools import cache
from typing import Any

import strawberry
from graphql import GraphQLError
from strawberry.schema.config import StrawberryConfig

from assent.surfaces.graphql import errors
from assent.surfaces.graphql.mutations import Mutation
from assent.surfaces.graphql.queries import Query
from assent.surfaces.graphql.subscriptions import Subscription


class Schema(strawberry.Schema):
    def process_errors(self, errors_: list[GraphQLError], execution_context: Any = None) -> None:
        errors.translate(errors_)


@cache
def schema() -> Schema:
    return Schema(Query, Mutation, Subscription, config=StrawberryConfig(auto_camel_case=True))
