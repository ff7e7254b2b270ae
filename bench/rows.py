"""One result of a benchmark: what was measured, beside what it is compared with, and whether it is good enough.

`at_least` and `at_most` judge the value itself; `ratio_at_least` and `ratio_at_most` judge it against a peer or the
floor, so that the verdict holds on any machine.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    unit: str
    target: str
    ok: bool
    peer: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.peer if self.peer else None


def at_least(name: str, value: float, unit: str, *, target: float, peer: float | None = None) -> Row:
    return Row(name, value, unit, f"≥ {target:g} {unit}".rstrip(), value >= target, peer)


def at_most(name: str, value: float, unit: str, *, target: float, peer: float | None = None) -> Row:
    return Row(name, value, unit, f"≤ {target:g} {unit}".rstrip(), value <= target, peer)


def ratio_at_least(name: str, value: float, unit: str, *, peer: float, target: float) -> Row:
    return Row(name, value, unit, f"≥ {target:g} ×", value >= target * peer, peer)


def ratio_at_most(name: str, value: float, unit: str, *, peer: float, target: float) -> Row:
    return Row(name, value, unit, f"≤ {target:g} ×", value <= target * peer, peer)


def reported(name: str, value: float, unit: str, *, peer: float | None = None) -> Row:
    """For the reader to judge."""
    return Row(name, value, unit, "reported", True, peer)
