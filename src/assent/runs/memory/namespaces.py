"""Lists namespaces by their first and last labels, where `*` stands for any label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assent.threads.rows.memory.items import Namespace

_ANY = "*"


@dataclass(frozen=True, slots=True)
class Match:
    """The labels that a namespace begins with, or ends with."""

    path: Namespace
    at_end: bool = False

    def __call__(self, namespace: Namespace) -> bool:
        size = len(self.path)
        if len(namespace) < size:
            return False
        part = namespace[len(namespace) - size :] if self.at_end else namespace[:size]
        return all(wanted in (_ANY, label) for label, wanted in zip(part, self.path, strict=True))


def common_start(matches: Iterable[Match]) -> Namespace:
    """The common prefix of all listed namespaces: that of a prefix condition up to its first wildcard."""
    for match in matches:
        if not match.at_end:
            end = match.path.index(_ANY) if _ANY in match.path else len(match.path)
            return match.path[:end]
    return ()


def listed(
    present: Iterable[Namespace], matches: Sequence[Match], *, max_depth: int | None, limit: int, offset: int
) -> list[Namespace]:
    """One page of the namespaces that match, sorted, cut to `max_depth` labels."""
    matching = [namespace for namespace in present if all(match(namespace) for match in matches)]
    return sorted({namespace[:max_depth] for namespace in matching})[offset : offset + limit]
