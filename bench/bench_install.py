"""What an installation without extras brings: packages and their size on disk, with bytecode, beside the peer's."""

from __future__ import annotations

import os
from pathlib import Path

from bench import reference, served
from bench.rows import Row, at_most

_MEGABYTE = 1_000_000


def run() -> list[Row]:
    ours, peer = _site(served.INSTALLED), _site(reference.ENVIRONMENT)
    return [
        at_most("install: packages", _packages(ours), "", target=70, peer=_packages(peer)),
        at_most("install: size", _megabytes(ours), "MB", target=190, peer=_megabytes(peer)),
    ]


def _site(environment: Path) -> Path:
    [site] = environment.glob("lib/python*/site-packages")
    return site


def _packages(site: Path) -> int:
    return len(list(site.glob("*.dist-info")))


def _megabytes(site: Path) -> float:
    sizes = (os.lstat(Path(folder, name)).st_size for folder, _, names in os.walk(site) for name in names)
    return sum(sizes) / _MEGABYTE
