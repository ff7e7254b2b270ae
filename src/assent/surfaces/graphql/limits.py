"""Limits of a GraphQL document, checked before it is validated and executed.

The document is measured as it would be executed, with its fragments expanded. Measuring stops at the first limit that
is exceeded, so a small document that expands into a large one costs little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    IntValueNode,
    ListValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    VariableNode,
    parse,
)

from assent.errors import Invalid
from assent.kernel.canonical import MAX_DEPTH as MAX_NESTING
from assent.kernel.canonical import MAX_DIGITS

MAX_CHARACTERS = 20_000
MAX_TOKENS = 3_000
MAX_DEPTH = 16
MAX_ALIASES = 30
MAX_FIELDS = 500
MAX_COST = 5_000
MAX_REPEATED = 300
"""Pairs of fields with one name in one selection, fragments expanded: the validation compares each pair."""
LARGEST_PAGE = 200

_DEFAULT_PAGE = 50
_LOADED = 10
"""The cost of a field that reads from the database for each item."""
_PAGED = frozenset({"inboxItems", "activityLog", "agents"})
_LOADS = frozenset({"comments", "revisions", "timeline", "actions", "decisions", "grants", "delivery"})
_META_LISTS = frozenset(
    {"types", "fields", "args", "inputFields", "enumValues", "possibleTypes", "interfaces", "directives"}
)
_META_LENGTH = 4


@dataclass(slots=True)
class _Measure:
    fragments: Mapping[str, FragmentDefinitionNode]
    variables: Mapping[str, Any]
    fields: int = 0
    aliases: int = 0
    cost: int = 0
    repeated: int = 0
    used: set[str] = field(default_factory=set)
    """The names of the fragments in the operations."""

    def walk(self, selected: SelectionSetNode | None, depth: int, times: int, inside: tuple[str, ...] = ()) -> None:
        """`times`: how many objects the selection applies to. `inside`: the fragments that contain it."""
        _require("depth", depth, MAX_DEPTH)
        _require("nesting of fragments", len(inside), MAX_DEPTH)
        for node in selected.selections if selected else ():
            if isinstance(node, FieldNode):
                self._field(node, depth, times, inside)
            else:
                self._fragment(node, depth, times, inside)

    def _field(self, node: FieldNode, depth: int, times: int, inside: tuple[str, ...]) -> None:
        name = node.name.value
        self.fields += 1
        self.aliases += node.alias is not None
        self.cost += times * (_LOADED if name in _LOADS else 1)
        _require("number of fields", self.fields, MAX_FIELDS)
        _require("number of aliases", self.aliases, MAX_ALIASES)
        _require("cost", self.cost, MAX_COST)
        self.walk(node.selection_set, depth + 1, times * self._length(node), inside)

    def _fragment(self, node: SelectionNode, depth: int, times: int, inside: tuple[str, ...]) -> None:
        if isinstance(node, FragmentSpreadNode):
            name = node.name.value
            if name in inside:
                raise Invalid(f"the fragment {name!r} contains itself")
            self.used.add(name)
            named = self.fragments.get(name)
            return self.walk(named.selection_set if named else None, depth, times, (*inside, name))
        self.walk(getattr(node, "selection_set", None), depth, times, (*inside, ""))

    def compare(self, selections: Iterable[SelectionSetNode | None]) -> None:
        """Counts the fields that would be merged into one, after `walk` has limited their number."""
        named = defaultdict[str, list[FieldNode]](list)
        for node in self._expanded(selections):
            named[(node.alias or node.name).value].append(node)
        for nodes in named.values():
            self.repeated += len(nodes) * (len(nodes) - 1) // 2
            _require("repeated fields", self.repeated, MAX_REPEATED)
            self.compare(node.selection_set for node in nodes)

    def _expanded(self, selections: Iterable[SelectionSetNode | None]) -> Iterator[FieldNode]:
        for node in (node for selected in selections if selected for node in selected.selections):
            if isinstance(node, FieldNode):
                yield node
            elif isinstance(node, FragmentSpreadNode):
                named = self.fragments.get(node.name.value)
                yield from self._expanded([named.selection_set] if named else [])
            else:
                yield from self._expanded([getattr(node, "selection_set", None)])

    def _length(self, node: FieldNode) -> int:
        """The most objects that the field returns, as far as the document tells."""
        if node.name.value in _META_LISTS:
            return _META_LENGTH
        return self._page(node) if node.name.value in _PAGED else 1

    def _page(self, node: FieldNode) -> int:
        value = next((given.value for given in node.arguments or () if given.name.value == "first"), None)
        if isinstance(value, IntValueNode):
            return min(int(value.value[:9]), LARGEST_PAGE)
        if isinstance(value, VariableNode):
            number = self.variables.get(value.name.value)
            return min(number, LARGEST_PAGE) if isinstance(number, int) and number >= 0 else LARGEST_PAGE
        return _DEFAULT_PAGE


def measured(query: str, variables: Mapping[str, Any], operation_name: str | None) -> OperationDefinitionNode:
    """The operation that would be executed. Raises `Invalid` for a document that cannot be parsed or is
    beyond a limit."""
    _require("length of the document", len(query), MAX_CHARACTERS)
    document = _parsed(query)
    operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    _require("number of fields", sum(1 for _ in _fields(document)), MAX_FIELDS)
    used = set[str]()
    for operation in operations:
        measure = _Measure(fragments, variables, used=used)
        measure.walk(operation.selection_set, 1, 1)
        measure.compare([operation.selection_set])
    if unused := sorted(fragments.keys() - used):
        raise Invalid(f"the fragment {unused[0]!r} is not used")
    _require_plain_values(document, operations, variables)
    return _chosen(operations, operation_name)


def _parsed(query: str) -> DocumentNode:
    try:
        return parse(query, max_tokens=MAX_TOKENS, no_location=True)
    except GraphQLError as error:
        raise Invalid(error.message) from None
    except RecursionError:
        raise Invalid(f"depth: at most {MAX_DEPTH}") from None


def _chosen(operations: list[OperationDefinitionNode], name: str | None) -> OperationDefinitionNode:
    named = [node for node in operations if name is None or (node.name and node.name.value == name)]
    if len(named) != 1:
        raise Invalid("operationName: the document has no such operation" if name else "give an operationName")
    return named[0]


def _fields(document: DocumentNode) -> Iterator[FieldNode]:
    """All fields as written: the validation compares fields with each other, also in unused fragments."""
    waiting: list[Any] = [getattr(node, "selection_set", None) for node in document.definitions]
    while waiting:
        selected = waiting.pop()
        for node in selected.selections if selected else ():
            if isinstance(node, FieldNode):
                yield node
            waiting.append(getattr(node, "selection_set", None))


def _require_plain_values(
    document: DocumentNode, operations: Iterable[OperationDefinitionNode], variables: Mapping[str, Any]
) -> None:
    """Values in the document have the limits of a JSON body, together with the variables inside of them."""
    defined = [definition for operation in operations for definition in operation.variable_definitions or ()]
    defaults = [definition.default_value for definition in defined if definition.default_value]
    depths = {name: _nesting(value, {}) for name, value in variables.items()}
    for definition in defined:
        name = definition.variable.name.value
        depths[name] = max(depths.get(name, 0), _nesting(definition.default_value, {}))
    given = (argument.value for node in _fields(document) for argument in node.arguments or ())
    for value in (*defaults, *given):
        _nesting(value, depths)


def _nesting(value: Any, depths: Mapping[str, int]) -> int:
    """The number of lists and objects around the innermost value, of a document or of JSON. `depths` are those of the
    variables."""
    deepest, waiting = 0, [(value, 0)]
    while waiting:
        node, depth = waiting.pop()
        inner = _inside(node)
        if inner is not None:
            depth += 1
            waiting += [(each, depth) for each in inner]
        elif isinstance(node, VariableNode):
            depth += depths.get(node.name.value, 0)
        elif isinstance(node, IntValueNode):
            _require("digits of an integer", len(node.value), MAX_DIGITS)
        deepest = max(deepest, depth)
        _require("nesting of values", deepest, MAX_NESTING)
    return deepest


def _inside(node: Any) -> Iterable[Any] | None:
    """The values in a list or an object; None for any other value."""
    if isinstance(node, ListValueNode):
        return node.values
    if isinstance(node, ObjectValueNode):
        return (field.value for field in node.fields)
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else None


def _require(name: str, number: int, most: int) -> None:
    if number > most:
        raise Invalid(f"{name}: at most {most:,}", hint="split the document into several requests")
