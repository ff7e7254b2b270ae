"""The phrases for days, times and lengths, as patterns, in the order in which they are taken out of a text: the most
specific first. Each has the name of the method of the reader that understands it."""

from __future__ import annotations

import re

from assent.assistant.planner.dates import doubtful
from assent.assistant.planner.dates.clocks import CLOCK, HALF, WORDED
from assent.assistant.planner.dates.dates import GAP
from assent.assistant.planner.dates.lengths import LENGTH, NUMBER

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip


def _pattern(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts), re.IGNORECASE)


def _any(*choices: str) -> re.Pattern[str]:
    return _pattern("|".join(choices))


_MONTH = r"(?:" + "|".join(f"{month[:3]}(?:{month[3:]}|\\.)?" for month in MONTHS) + r"|sept\.?)(?![a-z])"
_WEEKDAY = (
    r"(?:mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?"
    r"|tues?|thu(?:rs?)?|fri|(?-i:Mon|Wed|Sat|Sun)|(?:(?<=on\s)|(?<=next\s)|(?<=this\s))(?:mon|wed|sat|sun)"
    rf"|(?:mon|wed|sat|sun)(?=\s+(?:at\s+)?[0-9]{{1,2}}(?:[:.][0-9]{{2}})?\s*{HALF}))\b(?:['’]s)?\.?"
)
_SHORT_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_BOUND = r"(?:(?P<bound>before|after|by|until|till|since|no later than)\s+)?"
_NTH = r"(?:st|nd|rd|th)"
_YEAR = r"(?:,?\s+(?P<year>[0-9]{4})\b)?"
_ON = r"(?:\bon\s+|\bfor\s+(?=tom|tod|the\s+day))?"
_LEAD = r"(?:\b(?:at|around|about|from|starting(?:\s+at)?|beginning(?:\s+at)?)\s+|@\s*)"
_PART = r"(?P<part>morning|afternoon|evening|night)\b"

HOUR_MARK = _pattern(r"[0-9]{1,2}h(?:[0-9]{2})?")
"""Both a length and a time of day, as in 15h."""

_REPEATED = _any(
    r"\b(?:every|each)\s+\w+",
    r"\b(?:on\s+)?(?:\w+\s+)?(?:mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays)\b(?:\s+from\s+now\b)?",
    r"\bon\s+\w+days\b",
    rf"\b{_SHORT_DAY}\s*(?:[-–—]|through|thru)\s*{_SHORT_DAY}\b",
    r"\b(?:hourly|daily|weekly|biweekly|fortnightly|monthly|yearly|annually)\b"
    r"(?=\s*(?:$|[,.;!?])|\s+(?:at|on|from|starting|beginning)\b)",
)
_ZONED = _any(
    r"\b(?-i:UTC|GMT|CES?T|EE?S?T|BST|IST|JST|[ECMP][SD]T|AE[SD]T)\b(?:\s*[+-][0-9]+)?",
    r"(?<=[0-9m]\s)\(?(?-i:[A-Z])\w+\s+time\b",
    r"\btheir\s+time\b",
)
_ISO = _pattern(
    r"(?:\bon\s+)?\b[0-9]{4}-[0-9]{2}-[0-9]{2}",
    r"(?:(?:T|\s+(?=[0-9]{2}:))[0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?![0-9])",
)
_COUNTED_FROM = _any(
    rf"\b{NUMBER}\s+(?:days?|weeks?|months?)\s+(?:from|after|before)\s+(?!now)\w+",
    r"\b(?:\w+day|tomorrow)\s+(?:week|fortnight)\b",
    rf"\b{NUMBER}\s+(?:weeks?|fortnights?)\s+(?:on\s+|this\s+|next\s+)?(?:\w+day|tomorrow)\b",
    rf"\b(?:within|(?:in|over|during)\s+the\s+(?:next|coming|following))\s+(?:{NUMBER}\s+)?(?:hours?|days?|weeks?|months?)\b",
    rf"\b{_WEEKDAY}\s+(?:after|before)\s+(?:next|last)\b",
    rf"\bin\s+{NUMBER}\s+(?:months?|years?)\b",
)
_COUNTED_CLOCK = _pattern(rf"{LENGTH}\s+(?:earlier|later|sooner)\s+than\s+(?:{CLOCK}|\w+)")
_FEW = _pattern(r"\bin\s+(?:a\s+few|some|several|a\s+while)(?:\s+\w+)?\b")
_IN = _pattern(rf"\b(?:in\s+(?:about\s+)?(?P<length>{LENGTH})(?:['’]?\s+time\b)?)")
_FROM_NOW = _pattern(rf"(?P<length>{LENGTH})\s+from\s+now\b")
_WHOLE_DAY = _any(r"\ball[\s-]+day\b", r"\bthe\s+whole\s+day\b")
_LONG = _pattern(rf"(?:\b(?:for|lasting|takes?|taking)\s+(?:about\s+)?)?(?P<length>{LENGTH})(?:\s+long\b)?")
_SPAN = _pattern(
    rf"(?:\b(?P<lead>from|between)\s+|\bat\s+)?(?<![0-9:/.])(?P<a>{CLOCK})\s*",
    rf"(?P<joint>to|until|till|and|[-–—])\s*(?P<b>{CLOCK})(?![0-9/%])",
)
_NEAR = _pattern(
    rf"{_ON}{_BOUND}(?P<word>\b(?:the\s+)?day\s+after\s+tomorrow\b",
    r"|\b(?:today|tonight|tomorrow|tmrw|tomorow|yesterday)\b)(?:['’]s)?",
)
_FOLLOWING = _pattern(
    r"\b(?:on\s+)?(?:the\s+)?(?:following|nxt|other)\s+(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"
)
_ON_WEEKDAY = _pattern(
    rf"{_BOUND}{_ON}(?:\b(?P<first>next|this)\s+week,?\s+(?:on\s+)?)?",
    rf"(?:\b(?P<which>this\s+coming|this|next|coming|last)\s+|\bthe\s+)?\b(?P<name>{_WEEKDAY})",
    r"(?:,?\s+(?:of\s+)?(?P<week>next|this)\s+week\b)?(?:,(?=\s*(?:the|[a-z]{3}|[0-9])))?",
)
_MONTH_FIRST = _pattern(
    rf"{_BOUND}{_ON}\b(?P<month>{_MONTH})\s+(?:the\s+)?(?P<day>[0-9]{{1,2}}){_NTH}?(?![0-9])",
    rf"(?!\s*(?:[ap]\.?m\b|[:h][0-9])){_YEAR}",
)
_DAY_FIRST = _pattern(
    rf"{_BOUND}{_ON}(?:\bthe\s+)?\b(?P<day>[0-9]{{1,2}}){_NTH}?\.?\s+(?:of\s+)?(?P<month>{_MONTH}){_YEAR}"
)
_ON_THE_NTH = _pattern(
    rf"{_BOUND}(?:\bon\s+(?:the\s+)?|\bthe\s+|(?<={GAP})\s*,?\s*)(?P<day>[0-9]{{1,2}}){_NTH}\b",
    rf"(?=\s*(?:$|[,.;:!?{GAP}]|(?:at|from|for|in|to|with|and|until|around|noon)\b|[0-9]))",
)
_SLASHES = _pattern(
    rf"{_BOUND}{_ON}(?<![0-9/])(?P<a>[0-9]{{1,2}})/(?P<b>[0-9]{{1,2}})",
    r"(?:/(?P<year>[0-9]{4}|[0-9]{2}))?(?![0-9/])",
)
_DOTS = _pattern(rf"{_BOUND}{_ON}(?<![0-9.])(?P<a>[0-9]{{1,2}})\.(?P<b>[0-9]{{1,2}})\.(?P<year>[0-9]{{4}})?(?![0-9])")
_SOME_DAY = _any(
    r"\b(?:early\s+|late\s+)?(?:some\s?time\s+)?(?:the\s+)?(?:next|this|the\s+following|following)"
    r"\s+(?:week(?:end)?|month|year|quarter)\b",
    r"\b(?:the\s+)?week\s+after(?:\s+next)?\b",
    r"\b(?:on|at|over)\s+the\s+weekend\b",
    r"\b(?:at\s+)?(?:the\s+)?end\s+of\s+(?:the\s+|this\s+|next\s+)?(?:week|month|year)\b",
    r"\bsome\s?(?:day|time)\b",
    r"\bat\s+some\s+point\b",
    r"\bsoon\b",
    r"\bwhenever\b",
    r"\bone\s+of\s+these\s+days\b",
)
_SOME_TIME = _any(
    r"\b(?:at\s+)?(?:the\s+)?end\s+of\s+(?:the\s+)?day\b",
    r"\beod\b",
    r"\basap\b",
    r"\bas\s+soon\s+as\s+possible\b",
    rf"\blater(?:\s+on)?(?=\s*(?:$|[,.!?{GAP}]))",
    r"\bfirst\s+thing\b",
    r"\b(?:around|at|after|before|over)\s+(?:lunch|breakfast|dinner)(?:\s?time)?\b",
    r"\b(?:after|before)\s+work\b",
    r"\blunchtime\b",
)
_IN_PART = _pattern(rf"\b(?:in\s+the|at|during\s+the|this)\s+{_PART}")
_AFTER_GAP = _pattern(rf"(?<={GAP})\s*(?:in\s+the\s+|at\s+)?{_PART}")
_BOUNDED = _pattern(rf"\b(?:before|after|by|no\s+later\s+than|not\s+before|earliest|latest)\s+(?:{CLOCK})(?![0-9])")
_ENDS = _pattern(rf"\b(?:until|till|ending\s+at)\s+(?P<clock>{CLOCK})(?![0-9])")
_AT_CLOCK = _pattern(rf"(?:{_LEAD}(?P<clock>{CLOCK}))(?![0-9/%]|\.[0-9]|\s+(?-i:[A-Z][a-z]))")
_CLOCK_ALONE = _pattern(
    rf"(?<![0-9:./])\b(?P<clock>noon|midday|[0-9]{{1,2}}(?:[:.][0-9]{{2}})?\s*{HALF}|[0-9]{{1,2}}:[0-9]{{2}}",
    r"|[0-9]{1,2}h(?:[0-9]{2})?\b|[0-9]{1,2}\s*o['’]?clock)(?![0-9])",
)

PATTERNS = (
    (_REPEATED, "repeated"),
    (_ZONED, "zoned"),
    (_ISO, "iso"),
    (_COUNTED_FROM, "counted_from"),
    (_COUNTED_CLOCK, "bounded_clock"),
    (_FEW, "vague_day"),
    (_IN, "from_now"),
    (_FROM_NOW, "from_now"),
    (_WHOLE_DAY, "whole_day"),
    (_LONG, "length"),
    (_SPAN, "to_from"),
    (_NEAR, "near"),
    (_FOLLOWING, "vague_day"),
    (_ON_WEEKDAY, "weekday"),
    (_MONTH_FIRST, "month_day"),
    (_DAY_FIRST, "month_day"),
    (_ON_THE_NTH, "nth"),
    (_SLASHES, "slashes"),
    (_DOTS, "dots"),
    (_SOME_DAY, "vague_day"),
    (_SOME_TIME, "vague_clock"),
    (_IN_PART, "part"),
    (_AFTER_GAP, "part"),
    (_BOUNDED, "bounded_clock"),
    (_ENDS, "ends"),
    (_pattern(rf"{_LEAD}?\bmidnight\b"), "midnight"),
    (_pattern(rf"{_LEAD}?{WORDED}"), "in_words"),
    (_AT_CLOCK, "in_digits"),
    (_CLOCK_ALONE, "in_digits"),
    (_AFTER_GAP, "part"),
)

_MAY_BE_A_NAME = ("repeated", "counted_from", "length", "vague_day", "vague_clock", "whole_day")

SUSPICIOUS = _any(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b",
    r"\b(?:on|the)\s+(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|\w+teenth"
    r"|twentieth|thirtieth|twenty\W\w+|thirty\W\w+)(?=\s*(?:$|[,.\x1f]|of|at))",
    r"\b(?:this|next|last|in)\s+(?:january|february|april|june|july|august|september|october|november|december"
    r"|spring|summer|autumn|winter|fall)\b",
    r"\b(?:next|following)\s+(?:day|week|month|year)\b",
    r"\bweekend\b",
    r"\b[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}\b",
    r"\b[0-9]{1,2}-[0-9]{1,2}\b",
    r"\b(?:week|wk|cw)\s*[0-9]{1,2}\b",
    rf"\b(?:mon|wed|sat|sun)(?=\s*(?:$|[,{GAP}]))",
    r"\b(?:christmas|xmas|easter|thanksgiving|halloween|valentine['’]?s|new\s+year(?:['’]?s)?)\s+(?:day|eve)\b",
    r"\bovermorrow\b",
)
"""Text that looks like a day and was not read."""

UNREAD = _pattern(
    rf"\b(?:on|before|after|during)\s+(?=[A-Za-z0-9])[^{GAP},;!?]*?(?=\s*(?:$|[{GAP},;!?]|\b(?:with|for|at|about)\b))"
)
"""Text that may be a day, or something else, in a request that names no day."""

_ORDINAL_DAY = _pattern(rf"\b(?:on\s+)?(?:the\s+)?\w+\s+{_WEEKDAY}\s+(?:of|in)\b")


def name_and_time(text: str) -> tuple[str, str]:
    """The name after "called", and the rest from the first phrase about time. A name may begin like one (Later)."""
    for word in re.finditer(r"(?<!\S)\S", text):
        if _begins(text, word.start()):
            return text[: word.start()], text[word.start() :]
    return text, ""


def _begins(text: str, at: int) -> bool:
    patterns = (pattern for pattern, name in PATTERNS if at or name not in _MAY_BE_A_NAME)
    if any(pattern.match(text, at) for pattern in patterns):
        return True
    return bool(at and (SUSPICIOUS.match(text, at) or _ORDINAL_DAY.match(text, at) or doubtful.begins(text, at)))
