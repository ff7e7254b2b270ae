"""Translations of the pages. The English text is the key and the fallback.

A language is a folder of JSON files in `locales`, one per page, mapping English text to its translation. Texts with a
count use the plural as the key.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import orjson

from assent.surfaces import extensions
from assent.surfaces.web import preferences

_LOCALES = Path(__file__).parent / "locales"


def gettext(message: str) -> str:
    language = preferences.current().language
    return message if language == "en" else translations(language).get(message, message)


def ngettext(single: str, many: str, count: int) -> str:
    if preferences.current().language == "en":
        return single if count == 1 else many
    return gettext(many)


@cache
def translations(language: str) -> dict[str, str]:
    folders = (_LOCALES, *extensions.folders("locales"))
    files = [file for folder in folders for file in sorted((folder / language).glob("*.json"))]
    return {english: text for file in files for english, text in orjson.loads(file.read_bytes()).items()}
