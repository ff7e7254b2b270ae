"""The documentation as data: files, tables, links, shell lines."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """Without code blocks, whose lines mean something else."""
    return _FENCE.sub("", text)


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every table row, headings left out."""
    for line in prose(text).splitlines():
        if line.startswith("|") and not re.fullmatch(r"[|\s:-]+", line):
            yield [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip("|"))]


def sections(text: str, level: str = "###") -> dict[str, str]:
    """Each heading of a level with what stands below it."""
    parts = re.split(rf"^{level} (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def links(text: str) -> list[str]:
    return _LINK.findall(prose(text))


def anchors(text: str) -> set[str]:
    """The fragments that a page of this text can be linked at."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in _HEADING.findall(prose(text))
    }


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a language, in their order."""
    return [block for found, block in _FENCE.findall(text) if found == language]


def shell_lines(text: str) -> Iterator[str]:
    """What stands behind a prompt in the console blocks."""
    for language, block in _FENCE.findall(text):
        if language == "console":
            yield from (line[2:].partition("   #")[0].strip() for line in block.splitlines() if line.startswith("$ "))
