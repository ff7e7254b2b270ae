"""The documentation as data: files, tables, links, code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Block:
    """One code block of a page. Its page and first line name it."""

    page: str
    line: int
    language: str
    text: str
    section: str

    @property
    def name(self) -> tuple[str, str]:
        return self.page, self.text.partition("\n")[0]

    @property
    def commands(self) -> str:
        """What a person would type: in a console block, that which stands behind a prompt."""
        if self.language != "console":
            return self.text
        return "".join(f"{line[2:]}\n" for line in self.text.splitlines() if line.startswith("$ "))

    @property
    def shown(self) -> list[str]:
        """The output that a console block shows."""
        lines = self.text.splitlines() if self.language == "console" else []
        return [line for line in lines if line and not line.startswith("$ ")]


def fenced(file: Path) -> list[Block]:
    """Every code block of a page, in its order."""
    text = file.read_text(encoding="utf-8")
    return [
        Block(
            page=file.name,
            line=text.count("\n", 0, match.start()) + 1,
            language=match[1],
            text=match[2],
            section=(["", *_HEADING.findall(prose(text[: match.start()]))])[-1],
        )
        for match in _FENCE.finditer(text)
    ]


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a language, in their order."""
    return [block for blocks_read, block in _FENCE.findall(text) if blocks_read == language]


def spans(text: str) -> list[str]:
    """What stands between backticks in the running text."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(text))]
