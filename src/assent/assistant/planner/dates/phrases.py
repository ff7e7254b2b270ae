"""Pieces of a sentence: quoted names, calendars, places, and what is left as the name of an event."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from assent.assistant.planner.dates.dates import GAP

LONGEST_NAME = 200

_OPEN, _CLOSE = "\ue000", "\ue001"
TOKEN = f"{_OPEN}[0-9]+{_CLOSE}"
_QUOTED = re.compile(
    r'"([^"\n]{1,200})"|“([^”\n]{1,200})”|„([^“”\n]{1,200})[“”]|«([^»\n]{1,200})»'
    r"|(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w)){1,200})'(?!\w)|(?<!\w)‘([^’\n]{1,200})’(?!\w)"
)
_CALENDAR = re.compile(
    rf"\b(?:in|on|to|into|from)\s+(?:my|the|our)\s+(?:(?P<name>{TOKEN}|[\w'’&-]+(?:\s[\w'’&-]+)?)\s+)?(?:calendar|diary|agenda)\b"
    r"|\bmy\s+(?P<mine>[\w'’&-]+)\s+calendar\b",
    re.IGNORECASE,
)
_OWN = {"primary", "main", "default", "own"}
_NOTES = re.compile(
    r"[,;]?\s*\b(?:(?:with\s+(?:the\s+|a\s+)?)?(?:description|notes?))\s*:?\s*(?P<notes>TOKEN|(?<=:)\s*.+"
    r"|(?<=:\s).+)$".replace("TOKEN", TOKEN),
    re.I,
)
_STOP = (
    rf"(?=\s*(?:$|[{GAP},;!?]|\.(?:\s|$)|\b(?:with|for|about|called|named|titled|and|to\s+(?:discuss|talk|plan))\b))"
)
ROOMS = r"(?:room|office|hall|kitchen|lobby|garden|library|caf[eé]|building|studio|restaurant|park|lab)"
_PLACES = (
    re.compile(
        rf"(?:^|(?<=\s))(?:at|@)\s*(?!(?:least|most|once|all|last|first)\b)(?P<place>{TOKEN}"
        rf"|[^\s{GAP}][^{GAP},;!?]*?){_STOP}",
        re.IGNORECASE,
    ),
    re.compile(rf"(?:^|(?<=\s))in\s+(?P<place>{TOKEN}|(?-i:[A-ZÀ-Þ])[^{GAP},;!?]*?){_STOP}", re.IGNORECASE),
    re.compile(
        rf"(?:^|(?<=\s))in\s+(?P<place>(?:(?:the|my|our|meeting"
        rf"|conference)\s+)*(?:\w+\s+)?{ROOMS}(?:\s+[\w]+)?){_STOP}",
        re.IGNORECASE,
    ),
)
_PERSON = (
    r"(?:(?-i:(?:Dr|Mr|Mrs|Ms|Prof)\.\s+)?(?-i:[A-ZÀ-Þ])[\w'’-]*(?:\s(?-i:[A-ZÀ-Þ])[\w'’-]*)?"
    rf"|[^\s,;{GAP}]+@[^\s,;{GAP}]+|{TOKEN})"
)
_SOMEBODY = rf"(?:me|us|{_PERSON})"
_PEOPLE = re.compile(
    rf"(?:\b(?:with|between)\s+|\bw/\s*)(?P<people>{_SOMEBODY}(?:\s*(?:,\s*(?:and\s+)?|\band\b|&)\s*{_SOMEBODY})*)",
    re.IGNORECASE,
)
_EQUIPMENT = re.compile(
    r",?\s*\b(?:with|and)\s+(?:an?\s+|the\s+)?(?P<what>whiteboard|projector|screen|display|beamer|tv"
    r"|video(?:\s+conferenc\w+)?|camera)\b",
    re.IGNORECASE,
)
_CLOCK_WORDS = re.compile(
    r"(?:an?\s+|the\s+)?(?:half|quarter|five|ten|twenty(?:[\s-]five)?|past|to|before|after|noon|midnight|o['’]?clock|[\s-])+",
    re.IGNORECASE,
)
_ARTICLE = re.compile(
    r"^(?:(?:an?|the|my|our|(?-i:of|another|new|some|one|me|us|to|for\s+me|for|short|quick))\s+)+(?=\S)", re.IGNORECASE
)
_PREPOSITION = r"(?:on|at|for|from|in|to|by|of|starting|beginning|and|or|around|,|;|-|–|—|\.|!|\?|:)"
_FILLER = re.compile(
    r"\b(?:please|pls|thanks|thank\s+you|for\s+(?:me|us)|(?:or|and)\s+so|if\s+possible|sharp|instead|then|booked|i\s+said"
    r"|i\s+mean)\b",
    re.IGNORECASE,
)
_NOTHING = {
    "", "something", "anything", "event", "events", "thing", "things", "it", "that", "this", "time", "stuff",
    "some time", "entry", "one", "an", "a", "the", "me", "an event", "a new event", "new event", "calendar event",
    "calendar entry", "calendar", "diary",
    "yes", "no", "ok", "okay", "sure", "start", "starts", "starting", "is", "should be", "it is", "make it", "be",
    "it should be", "let's say", "at", "on", "or",
}  # fmt: skip


@dataclass(slots=True)
class Quotes:
    """Quoted texts, taken out so that nothing inside them is read as a date or a verb."""

    texts: list[str] = field(default_factory=list)

    def hide(self, text: str) -> str:
        def token(match: re.Match[str]) -> str:
            self.texts.append(next(group for group in match.groups() if group).strip())
            return f"{_OPEN}{len(self.texts) - 1}{_CLOSE}"

        return _QUOTED.sub(token, text)

    def show(self, text: str) -> str:
        return re.sub(f"{_OPEN}([0-9]+){_CLOSE}", lambda match: self.texts[int(match[1])], text).strip()

    def first(self, text: str) -> str | None:
        match = re.search(TOKEN, text)
        return self.show(match[0]) if match else None


def clean(text: str) -> str:
    """One line, composed characters, nothing that the planner uses as a mark."""
    composed = unicodedata.normalize("NFC", text)
    kept = "".join(" " if _is_mark(char) else char for char in composed.replace("\n", " ; "))
    return re.sub(r"\s+", " ", kept).strip()


def take_calendar(text: str) -> tuple[str, str | None]:
    """Without "in my Work calendar", and which one; None is the person's own."""
    match = _CALENDAR.search(text)
    if not match:
        return text, None
    name = match["name"] or match["mine"]
    rest = f"{text[: match.start()]} {text[match.end() :]}"
    return rest, None if name is None or name.lower() in _OWN else name


def take_notes(text: str) -> tuple[str, str | None]:
    match = _NOTES.search(text)
    return (text[: match.start()], match["notes"].strip()) if match else (text, None)


def people(text: str, quotes: Quotes) -> tuple[str, ...]:
    """The people that a list names, or that stand after "with"; the speaker is not one of them."""
    match = _PEOPLE.search(text)
    listed = match["people"] if match else text
    names = re.split(r"\s*(?:,\s*(?:and\s+)?|\band\b|&)\s*", listed.strip(" .,!?"))
    if not all(re.fullmatch(_SOMEBODY, name, re.IGNORECASE) for name in names):
        return ()
    return tuple(quotes.show(name) for name in names if name.lower() not in ("me", "us"))


def company(text: str, quotes: Quotes) -> tuple[str, ...]:
    """The people after "with", wherever that stands."""
    return people(match[0], quotes) if (match := _PEOPLE.search(text)) else ()


def take_equipment(text: str) -> tuple[str, str | None]:
    match = _EQUIPMENT.search(text)
    return (f"{text[: match.start()]} {text[match.end() :]}", match["what"].lower()) if match else (text, None)


def take_place(text: str) -> tuple[str, str | None]:
    """Without "at Café Luna", and the place. Times are out already, so what is left after "at" is one."""
    for pattern in _PLACES:
        match = pattern.search(text)
        if match:
            place = None if _CLOCK_WORDS.fullmatch(match["place"]) else match["place"].strip(" .")
            return f"{text[: match.start()]} {GAP} {text[match.end() :]}", place
    return text, None


def name_of(text: str, *, whole: bool = False) -> str | None:
    """The rest of a sentence as a name: without gaps, words that name nothing and, unless `whole`, articles."""
    pieces = [_trimmed(piece) for piece in _FILLER.sub(" ", text).split(GAP)]
    joined = _trimmed(" ".join(piece for piece in pieces if piece))
    bare = joined if whole else _ARTICLE.sub("", joined)
    nothing = bare.lower() in _NOTHING and (len(bare) > 1 or bare.islower())
    if nothing or not re.search(r"\w|\ue000", bare) or len(bare) > LONGEST_NAME:
        return None
    return bare[0].upper() + bare[1:]


def without_accents(text: str) -> str:
    """For searching: a map knows "cafe" where people write "café"."""
    return "".join(char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char))


def _trimmed(piece: str) -> str:
    before = None
    while before != piece:
        before = piece
        piece = re.sub(rf"(?:(?:^|\s){_PREPOSITION}|[,;.!?:–—-])\s*$", "", piece.strip(), flags=re.IGNORECASE)
        piece = re.sub(r"^\s*[,;.!?:–—-]+\s*", "", piece)
    return re.sub(r"\s+", " ", piece).strip()


def _is_mark(char: str) -> bool:
    return char in (_OPEN, _CLOSE, GAP) or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp", "Zs", "Co")
