"""The author's own classes, of each kind and inside of each other, and the effect that a person has to agree to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from pydantic import BaseModel, field_validator


@dataclass
class Address:
    street: str
    city: str


class Money(NamedTuple):
    amount: int
    currency: str


class Order(BaseModel):
    class Priority(Enum):
        LOW = "low"
        HIGH = "high"

    number: int
    priority: Priority
    address: Address
    total: Money

    @field_validator("number")
    @classmethod
    def is_known(cls, number: int) -> int:
        if number > 100:
            raise ValueError("there is no such order")
        return number


def sample(number: int = 1) -> Order:
    address = Address("Main Street 1", "Bern")
    return Order(number=number, priority=Order.Priority.HIGH, address=address, total=Money(598, "EUR"))


def samples() -> list[Any]:
    """One object of each class, also inside of the others."""
    order = sample()
    return [order, order.address, order.priority, order.total]


def names(kept: list[Any]) -> list[str]:
    return [type(memory_item).__name__ for memory_item in kept]


def ship(order: Order, log: str) -> str:
    """Ships an order, and leaves a line in the file `log`."""
    priority, (amount, currency) = order.priority.name, order.total
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, f"{order.number} {order.address.city} {priority} {amount} {currency}\n".encode())
    os.close(descriptor)
    return f"shipped {order.number}"
