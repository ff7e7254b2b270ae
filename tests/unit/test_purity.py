"""The pure layers use no await, clock, console or files, which import contracts cannot check."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "assent"
PURE = ("identity/model", "threads/model", "review/model", "review/dialects", "runs/events/model")
ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
IMPURE_CALLS = {"datetime.now", "datetime.today", "datetime.utcnow", "date.today", "input", "open", "print"}


def impurities(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ASYNC):
            yield f"line {node.lineno}: async code"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in IMPURE_CALLS:
            yield f"line {node.lineno}: {ast.unparse(node.func)}()"


@pytest.mark.parametrize("layer", PURE)
def test_pure_layer_has_no_await_clock_console_or_files(layer: str) -> None:
    impurities_by_file = {
        str(file): list(impurities(file.read_text("utf-8"))) for file in (SOURCE / layer).rglob("*.py")
    }
    assert len(impurities_by_file) > 4, "the folder was moved"
    assert {file: lines for file, lines in impurities_by_file.items() if lines} == {}


@pytest.mark.parametrize("impure", ["async def f(): pass", "datetime.now(UTC)", "open('x')"])
def test_control_impurities_are_found(impure: str) -> None:
    assert list(impurities(impure))
