"""What import contracts cannot say about the pure layers: no await, no clock, no console, no files."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "assent"
PURE = ("domain", "dialects")
ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
IMPURE_CALLS = {"datetime.now", "datetime.today", "datetime.utcnow", "date.today", "input", "open", "print"}


def impurities(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ASYNC):
            yield f"line {node.lineno}: async code"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in IMPURE_CALLS:
            yield f"line {node.lineno}: {ast.unparse(node.func)}()"


@pytest.mark.parametrize("layer", PURE)
def test_the_layer_is_pure(layer: str) -> None:
    found = {str(file): list(impurities(file.read_text("utf-8"))) for file in (SOURCE / layer).rglob("*.py")}
    assert {file: lines for file, lines in found.items() if lines} == {}


@pytest.mark.parametrize("impure", ["async def f(): pass", "datetime.now(UTC)", "open('x')"])
def test_impurities_are_found(impure: str) -> None:
    assert list(impurities(impure))
