"""Only `settings.py` reads the environment, so that `assent config` shows everything that can be set."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "assent"
READER = "settings.py"
WRITERS = {
    # LangGraph reads it once, when it is imported; in library mode there are no settings
    "runs/checkpoints/serde.py": ["os.environ[VARIABLE]"],
    # the variables of the project's langgraph.json, for the author's modules
    "runs/project/loader.py": ["os.environ.setdefault"],
}
NAMES = {"environ", "environb", "getenv", "getenvb"}


def mentions(source: str) -> Iterator[str]:
    """Every use of the environment, with what is done to it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from (f"from os import {alias.name}" for alias in node.names if alias.name in NAMES)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Attribute) and ast.unparse(child) in {f"os.{name}" for name in NAMES}:
                writes = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
                yield ast.unparse(node) if writes or isinstance(node, ast.Attribute) else ast.unparse(child)


def test_no_other_module_reads_the_environment() -> None:
    files = {
        file.relative_to(SOURCE).as_posix(): list(mentions(file.read_text("utf-8"))) for file in SOURCE.rglob("*.py")
    }
    assert files.pop(READER)
    assert {file: uses for file, uses in files.items() if uses} == WRITERS


@pytest.mark.parametrize(
    ("source", "use"),
    [
        ("os.environ['A']", "os.environ"),
        ("os.environ['A'] = 'b'", "os.environ['A']"),
        ("os.environ.get('A')", "os.environ.get"),
        ("dict(os.environ)", "os.environ"),
        ("os.getenv('A')", "os.getenv"),
        ("from os import environ", "from os import environ"),
    ],
)
def test_control_uses_of_the_environment_are_found(source: str, use: str) -> None:
    assert list(mentions(source)) == [use]
