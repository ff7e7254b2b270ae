"""Days, times and lengths in Chinese, as the English phrases that the grammar reads; what is doubtful stays so."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from assent.assistant.planner.dates.grammar import MONTHS

_DIGITS = {"零": 0, "〇": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_OPEN, _CLOSE = "\ue002", "\ue003"
"""Stand around the number of an English phrase, so that no pattern reads it again."""
_N = r"(?:[0-9]{1,4}|[零〇一二两三四五六七八九十百]{1,5})"
_WEEKDAYS = {"一": "Monday", "二": "Tuesday", "三": "Wednesday", "四": "Thursday", "五": "Friday", "六": "Saturday"}
_WEEKDAYS |= {str(n): day for n, day in enumerate(_WEEKDAYS.values(), 1)} | dict.fromkeys("日天7", "Sunday")
_MONTHS = tuple(month.title() for month in MONTHS)
_HALVES = {"am": "凌晨|清晨|早晨|早上|一早|上午|早", "pm": "下午|午后", "evening": "傍晚|晚上|夜里|夜晚|今晚|晚"}
_HALF = "凌晨|清晨|早晨|早上|一早|上午|中午|下午|午后|傍晚|晚上|夜里|夜晚|早|晚"
_MEAL = "[饭餐茶会宴操点安]"
_CLOCK = (
    rf"(?:(?P<half>{_HALF})的?)?(?:(?P<h>{_N})(?:点钟?|时(?!候|间|长)|[:：](?=[0-9]{{2}}))"
    rf"(?:(?P<part>半|一刻|三刻|整)|(?P<m>[0-9]{{2}}|零[一二三四五六七八九]|[二三四五]?十[一二三四五六七八九]?|{_N}(?=分(?!钟)))"
    r"(?!个|分钟|小时|天)分?)?)"
)
_LENGTH = (
    rf"(?P<halfhour>半个?(?:小时|钟头))|(?P<hours>{_N})个?(?P<and>半)?个?(?:小时|钟头)(?:(?P<more>半)|零?(?P<minutes>{_N})分钟)?"
    rf"|(?P<only>{_N})(?:分钟|(?<=[0-9])min)|(?P<quarters>[一三])刻钟"
)


def number(text: str) -> int:
    if text.isdigit():
        return int(text)
    total, last = 0, 0
    for char in text:
        if char in _DIGITS:
            last = last * 10 + _DIGITS[char]
        else:
            total += (last or 1) * {"十": 10, "百": 100}[char]
            last = 0
    return total + last


def in_english(text: str, today: date) -> str:
    """The text with English phrases in place of the times in it."""
    phrases: list[str] = []

    def take(pattern: str, phrase: Callable[[re.Match[str]], str | None], text: str) -> str:
        def marked(match: re.Match[str]) -> str:
            english = phrase(match)
            if english is None:
                return match[0]
            phrases.append(english)
            return f" {_OPEN}{len(phrases) - 1}{_CLOSE} "

        return re.sub(pattern, marked, text)

    for pattern, phrase in (*_PHRASES, (_DAY_OF_MONTH, _of_month(today)), *_CLOCKS):
        text = take(pattern, phrase, text)
    shown = re.sub(f"{_OPEN}([0-9]+){_CLOSE}", lambda match: phrases[int(match[1])], text)
    return re.sub(r"\s+", " ", shown).strip()


def _clock(match: re.Match[str], prefix: str = "", inherited: str = "") -> str:
    half = match[f"{prefix}half"] or inherited
    part, h = match[f"{prefix}part"], number(match[f"{prefix}h"])
    m = (
        {"半": 30, "一刻": 15, "三刻": 45}.get(part or "", 0)
        if not match[f"{prefix}m"]
        else number(match[f"{prefix}m"])
    )
    if h > 12 or (h == 0):
        return f"{h:02}:{m:02}"
    kind = next((kind for kind, words in _HALVES.items() if half in words.split("|")), None)
    if half == "中午":
        kind = "am" if h in (10, 11) else "pm"
    if h == 12 and kind == "evening":
        return "midnight"
    if h == 12 and kind == "am":
        return f"{h}:{m:02}"
    padded = re.match(r"0[0-9]", match[f"{prefix}h"])
    suffix = {"am": " am", "pm": " pm", "evening": " pm"}.get(kind or "", "")
    return f"{h:02}:{m:02}" if padded and not suffix else f"{h}:{m:02}{suffix}"


def _span(match: re.Match[str]) -> str:
    return f"from {_clock(match)} to {_clock(match, 'to_')}"


def _minutes(match: re.Match[str]) -> int:
    if match["halfhour"]:
        return 30
    if match["quarters"]:
        return 15 * number(match["quarters"])
    if match["only"]:
        return number(match["only"])
    extra = 30 if match["and"] or match["more"] else number(match["minutes"]) if match["minutes"] else 0
    return number(match["hours"]) * 60 + extra


def _part(match: re.Match[str]) -> str:
    kind = next((kind for kind, words in _HALVES.items() if match["half"] in words.split("|")), "noon")
    return {"am": "in the morning", "pm": "in the afternoon", "evening": "in the evening", "noon": "at lunchtime"}[kind]


def _week(match: re.Match[str]) -> str:
    day = _WEEKDAYS[match["day"]]
    which = match["which"] or ""
    if which.startswith("下下"):
        return f"two weeks from {day}"
    return f"{ {'下': 'next ', '这': 'this ', '本': 'this ', '上': 'last '}.get(which[:1], '') }{day}"


def _date(match: re.Match[str]) -> str | None:
    month = number(match["month"])
    if not 1 <= month <= 12:
        return "on Feb 30"
    year = f" {match['year']}" if match["year"] else ""
    return f"on {number(match['day'])} {_MONTHS[month - 1]}{year}"


def _nth(match: re.Match[str]) -> str:
    day = number(match["day"])
    suffix = "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"on the {day}{suffix}"


def _of_month(today: date) -> Callable[[re.Match[str]], str]:
    def phrase(match: re.Match[str]) -> str:
        month = today.month - 1 + (match["which"][0] == "下")
        return f"on {number(match['day'])} {_MONTHS[month % 12]} {today.year + month // 12}"

    return phrase


def _later(match: re.Match[str]) -> str:
    inner = re.fullmatch(rf"(?:{_LENGTH})", match["length"])
    return f"in {_minutes(inner)} minutes" if inner else "in a while"


_WEEK_PHRASES = {"下": "next", "这": "this", "本": "this"}

_PHRASES: tuple[tuple[str, Callable[[re.Match[str]], str | None]], ...] = (
    (
        r"每(?:天|日|晚|早)|每个?(?:周|星期|礼拜|月|年)(?:[一二三四五六日天末]|的?[0-9一二三四五六七八九十]+号)?|天天",
        lambda match: "every day",
    ),
    (r"大后天", lambda match: "in 3 days"),
    (r"后天", lambda match: "the day after tomorrow"),
    (r"(?:明天|明日|明儿)|明(?=早|晚|上午|下午|中午)", lambda match: "tomorrow"),
    (r"(?:今天|今日|今儿)|今(?=早|晚)", lambda match: "today"),
    (r"前天|昨天|昨晚|昨日", lambda match: "yesterday"),
    (rf"(?P<n>{_N})个?(?:天|日)(?:之|以)?后", lambda match: f"in {number(match['n'])} days"),
    (rf"(?P<n>{_N})个?(?:周|星期|礼拜)(?:之|以)?后", lambda match: f"in {number(match['n'])} weeks"),
    (rf"(?P<length>{_LENGTH.replace('?P<', '?P<in_')})(?:之|以)?后", lambda match: _later(match)),
    (
        r"(?P<which>(?<!一)下下?个?|这个?|本|(?<!早)(?<!晚)上个?)?(?:周|星期|礼拜)(?P<day>[一二三四五六日天](?![点个])|[1-7](?![0-9点个:：]))",
        _week,
    ),
    (r"(?P<which>(?<!一)下|这|本)个?(?:周末|星期末)", lambda match: f"{_WEEK_PHRASES[match['which'][0]]} weekend"),
    (r"周末", lambda match: "on the weekend"),
    (
        r"(?P<which>(?<!一)下|这|本)个?(?:周|星期|礼拜)(?!会|报|年)",
        lambda match: f"{_WEEK_PHRASES[match['which'][0]]} week",
    ),
    (rf"(?:(?P<year>[0-9]{{4}})年)?(?P<month>{_N})月(?P<day>{_N})[号日]?", _date),
    (r"(?:月|年)(?:底|初|中旬?)", lambda match: "at the end of the month"),
    (r"(?P<which>(?<!一)下)个?月(?![0-9一二三四五六七八九十]+[号日])", lambda match: "next month"),
    (
        r"(?<![月0-9一二三四五六七八九十])(?P<day>[0-9]{1,2}|[一二三]?十?[一二三四五六七八九十])号(?!楼|会议室|线|馆|厅|院|候选|选手|员工|店|房|门|桌|球|车|码)",
        _nth,
    ),
    (r"(?:改天|最近|有空的时候|过几天|过两天|以后|回头)", lambda match: "some day"),
    (r"(?:待会儿?|一会儿|稍后|等下|晚点)", lambda match: "later"),
)
_DAY_OF_MONTH = r"(?P<which>(?<!一)下个?月|这个?月|本月)(?P<day>[0-9一二三四五六七八九十]+)[号日]"
_CLOCKS: tuple[tuple[str, Callable[[re.Match[str]], str | None]], ...] = (
    (rf"{_CLOCK}\s*(?:到|至|[-–—～])\s*{_CLOCK.replace('?P<', '?P<to_')}", _span),
    (_CLOCK, lambda match: f"at {_clock(match)}"),
    (rf"(?:时长|大概|大约|持续|为期)?(?:{_LENGTH})(?:左右)?", lambda match: f"for {_minutes(match)} minutes"),
    (rf"(?P<half>{_HALF})(?!{_MEAL})", _part),
)
