"""Generated GraphQL operations, right and wrong: none makes the server fail."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    build_schema,
    get_named_type,
)

from assent.surfaces.graphql.schema import schema
from tests.api.house import Builder
from tests.api.reviewing import Office, open_office
from tests.scoreboard import Count, RecordScore

TEXTS = ('""', '"a"', '"is:pending"', '"\\u0000"', '"\\ud800"', '"%00\' OR 1=1 --"', '"🦊"', f'"{"x" * 600}"', "null")
NUMBERS = ("0", "1", "-1", "50", "200", "201", "2147483647", "2147483648", "1e400", "null")
JSONS = ("{}", "[]", '{a: [1, {b: "c"}]}', "1e999", "99999999999999999999999", "null", '"\\u0000"', "true")


class Writer:
    """Writes operations of a schema by dice. Some values are wrong on purpose."""

    def __init__(self, types: GraphQLSchema, dice: random.Random, ids: list[str]) -> None:
        self._types, self._dice, self._ids = types, dice, ids

    def operation(self) -> str:
        kind = self._dice.choice(("query", "query", "mutation"))
        root = self._types.query_type if kind == "query" else self._types.mutation_type
        assert root is not None
        fields = " ".join(self._field(root, name, 0) for name in self._dice.choices(list(root.fields), k=2))
        return f"{kind} {{ {fields} }}"

    def _field(self, parent: GraphQLObjectType, name: str, depth: int) -> str:
        field = parent.fields[name]
        given = [
            f"{argument}: {self._value(taken.type)}"
            for argument, taken in field.args.items()
            if isinstance(taken.type, GraphQLNonNull) or self._dice.random() < 0.5
        ]
        arguments = f"({', '.join(given)})" if given else ""
        alias = f"a{self._dice.randrange(10**6)}: " if self._dice.random() < 0.7 or given else ""
        return f"{alias}{name}{arguments}{self._selection(get_named_type(field.type), depth)}"

    def _selection(self, kind: Any, depth: int) -> str:
        if not isinstance(kind, GraphQLObjectType):
            return ""
        names = self._dice.sample(list(kind.fields), k=min(3, len(kind.fields)))
        deep = [name for name in names if isinstance(get_named_type(kind.fields[name].type), GraphQLObjectType)]
        chosen = [name for name in names if name not in deep or depth < 4]
        return f" {{ __typename {' '.join(self._field(kind, name, depth + 1) for name in chosen)} }}"

    def _value(self, kind: Any) -> str:
        if isinstance(kind, GraphQLNonNull):
            return self._value(kind.of_type)
        if isinstance(kind, GraphQLList):
            return f"[{self._value(kind.of_type)}]"
        if isinstance(kind, GraphQLEnumType):
            return str(self._dice.choice([*kind.values, "NOTHING"]))
        if isinstance(kind, GraphQLInputObjectType):
            given = (
                f"{name}: {self._value(field.type)}" for name, field in kind.fields.items() if self._dice.random() < 0.8
            )
            return f"{{{', '.join(given)}}}"
        scalars = {
            "Int": NUMBERS,
            "Float": NUMBERS,
            "ID": (*(f'"{name}"' for name in self._ids), *TEXTS),
            "JSON": JSONS,
        }
        times = ('"2026-01-01T00:00:00Z"', '"2026-01-01"', '"never"', '"9999-12-31T23:59:59-12:00"')
        return self._dice.choice((scalars | {"DateTime": times, "Boolean": ("true", "5")}).get(kind.name, TEXTS))


@pytest.fixture(scope="module")
async def office(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> AsyncIterator[Office]:
    folder = tmp_path_factory.mktemp("generated")
    async with AsyncExitStack() as stack:
        house = Builder(folder, migrated_file, stack)
        yield await open_office(house, rate_limit=0)


@pytest.mark.scoreboard
@pytest.mark.timeout(900)
async def test_generated_operations_make_no_server_error(
    office: Office, count: Count, record_score: RecordScore
) -> None:
    number, dice = count(full=1000, quick=60), random.Random(16)
    ids = [(await office.request(title=f"Item {place}"))["id"] for place in range(3)]
    writer, outcomes = Writer(build_schema(schema().as_str()), dice, ids), Counter[str]()
    for _ in range(number):
        query = writer.operation()
        response = await dice.choice((office.ana, office.agent)).post("/graphql", json={"query": query})
        assert response.status_code in (200, 400), (query, response.text)
        failed = response.json().get("errors", [])
        outcomes["executed" if response.status_code == 200 else "refused"] += 1
        assert not [error for error in failed if error["extensions"]["status"] >= 500], (query, response.text)
    record_score(f"{number} generated GraphQL operations", "0 server errors", f"0; {dict(sorted(outcomes.items()))}")
    assert outcomes["executed"] > number // 10
