"""The curl lines of the README and of docs/assistant.md, run as they stand against `assent demo`."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.assistant.events import AFTER_EACH_FLOW, events_in
from tests.cli.command import PATIENCE, Server, environment, serving
from tests.docs.documents import blocks, read, sections
from tests.missing import missing

PRINTED = "http://127.0.0.1:8002"


class Shell:
    """A terminal beside the demo, in a folder of its own."""

    def __init__(self, folder: Path, server: Server) -> None:
        self._folder, self._url = folder, server.url

    def __call__(self, script: str) -> None:
        assert PRINTED in script
        subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace(PRINTED, self._url)],
            cwd=self._folder,
            env=environment(),
            timeout=PATIENCE,
            check=True,
        )

    @property
    def status(self) -> str:
        return str(json.loads((self._folder / "reply.json").read_text("utf-8"))["status"])

    @property
    def calendar(self) -> Path:
        return self._folder / ".assent" / "calendar.db"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    for tool in ("bash", "curl"):
        _ = shutil.which(tool) or missing(f"{tool}: apt-get install {tool}")
    with serving(tmp_path, "demo", "--port", "0") as server:
        yield Shell(tmp_path, server)


@pytest.mark.promise("ASST-32", "ASST-33", "ASST-34", "ASST-35", "ASST-25")
def test_curl_lines_of_the_five_flows_work(shell: Shell) -> None:
    helpers, *flows = blocks(sections(read("docs/assistant.md"), "##")["The five flows"], "sh")
    for flow, expected in zip(flows, AFTER_EACH_FLOW, strict=True):
        shell(helpers + flow)
        assert shell.status == "success"
        assert events_in(shell.calendar) == expected


@pytest.mark.promise("ASST-34")
def test_curl_lines_of_the_readme_work(shell: Shell) -> None:
    [lines] = blocks(read("README.md"), "sh")
    shell(lines)
    assert shell.status == "success"
    assert events_in(shell.calendar) == [("Dentist", "10:00")]
