"""An embedding without a model: a text is the sum of the vectors of its words, and those are drawn by lot."""

from __future__ import annotations

import random
from hashlib import sha256

DIMS = 32


def word(text: str) -> list[float]:
    dice = random.Random(sha256(text.encode()).digest())
    return [dice.gauss(0, 1) for _ in range(DIMS)]


def embed(texts: list[str]) -> list[list[float]]:
    words = [[word(each) for each in text.lower().split()] or [[0.0] * DIMS] for text in texts]
    return [[sum(parts) for parts in zip(*vectors, strict=True)] for vectors in words]


async def embed_later(texts: list[str]) -> list[list[float]]:
    return embed(texts)


def fail(texts: list[str]) -> list[list[float]]:
    raise RuntimeError("the provider said: hunter2")


def shorten(texts: list[str]) -> list[list[float]]:
    return [vector[:-1] for vector in embed(texts)]
