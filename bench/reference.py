"""The peer: LangGraph's own development server, the one that `assent dev` takes the place of.

It lives in an environment of its own (`tools/setup reference`), with the same LangGraph as ours. Ten jobs at once is
the most favourable of its settings here; by itself it would take one after another.
"""

from __future__ import annotations

from pathlib import Path

ENVIRONMENT = Path(__file__).parents[1] / ".tools" / "reference"


def reference(folder: Path, port: int) -> list[str]:
    program = ENVIRONMENT / "bin" / "langgraph"
    if not program.exists():
        raise RuntimeError("the peer is not installed: run tools/setup reference, or `make bench`")
    options = ["--no-reload", "--no-browser", "--n-jobs-per-worker", "10"]
    return [str(program), "dev", *options, "--port", str(port), "--config", str(folder / "langgraph.json")]
