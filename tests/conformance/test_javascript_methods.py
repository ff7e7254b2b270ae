"""Every public method of the JavaScript SDK, in two versions: LangGraph's own server and ours answer the same.

`methods.mjs` reads the methods from the SDK, so that a new method without a row fails.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.allowed import listed, unexplained
from tests.conformance.comparing import alike, differences
from tests.javascript import VERSIONS, printed, sdk

METHODS = Path(__file__).with_name("methods.mjs")


@pytest.mark.promise("SERVE-01")
def test_every_method_of_the_javascript_sdk_has_a_row(node: Path) -> None:
    told = [json.loads(printed(node, METHODS, sdk(version))) for version in VERSIONS]
    assert [version["missing"] for version in told] == [[], []]
    assert {row for version in told for row in version["rows"]} == {
        method for version in told for method in version["methods"]
    }


@pytest.mark.promise("SERVE-01")
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_method_answers_alike_in_javascript(node: Path, addresses: list[str], version: str) -> None:
    theirs, ours = await asyncio.gather(
        *(asyncio.to_thread(printed, node, METHODS, sdk(version), address) for address in addresses)
    )
    left = unexplained(differences("javascript", _answers(theirs), _answers(ours)), Counter())
    assert not left, listed(left)


def _answers(text: str) -> Any:
    return alike(json.loads(text))
