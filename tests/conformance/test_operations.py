"""The operations of LangGraph's server, by its own OpenAPI document: ours has each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

_METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.mark.promise("DROP-10")
def test_every_operation_of_the_reference_is_served(addresses: list[str]) -> None:
    theirs, ours = [set(_operations(_document(address))) for address in addresses]
    assert len(theirs) > 50
    assert theirs - ours == {("get", "/docs")}, "the page of the document itself is the only one that ours leaves out"
    assert httpx.get(f"{addresses[1]}/docs").status_code == 200


def _document(address: str) -> dict[str, Any]:
    document: dict[str, Any] = httpx.get(f"{address}/openapi.json", timeout=60).raise_for_status().json()
    return document


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Method and path, whose parameters have no names, since only their places matter."""
    for path, methods in document["paths"].items():
        for method in methods.keys() & _METHODS:
            yield method, re.sub(r"\{[^}]*\}", "{}", path).rstrip("/") or "/"
