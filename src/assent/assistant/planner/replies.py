"""All that the planner says, in English and in Chinese, by key and with named fields.

The language is that of the request in hand: `speaking` sets it for a plan, and `say` uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime

NAME = "offline planner (rules, not a language model)"

_HAN = re.compile(r"[\u4e00-\u9fff]")
_LATIN = re.compile(r"[A-Za-z]+")
_QUOTED = re.compile(r"[「『《“\"]([^」』》”\"]+)[」』》”\"]")
_chinese: ContextVar[bool] = ContextVar("chinese", default=False)


def is_chinese(text: str) -> bool:
    """More Chinese characters than words in Latin letters; a Chinese name in an English sentence is quoted or short."""
    bare = _QUOTED.sub("", text)
    return len(_HAN.findall(bare)) > len(_LATIN.findall(bare))


@contextmanager
def speaking(text: str) -> Iterator[None]:
    """In the language of the text."""
    token = _chinese.set(is_chinese(text))
    try:
        yield
    finally:
        _chinese.reset(token)


def say(key: str, /, **fields: object) -> str:
    return MESSAGES[key][_chinese.get()].format(**fields)


def day(meant: date, now: datetime) -> str:
    """As people say it: today, tomorrow, Friday 20 November."""
    near = {0: "today", 1: "tomorrow", -1: "yesterday"}.get((meant - now.date()).days)
    if near:
        return say(near)
    if _chinese.get():
        year = "" if meant.year == now.year else f"{meant.year}年"
        return f"{year}{meant.month}月{meant.day}日（周{'一二三四五六日'[meant.weekday()]}）"
    return f"{meant:%A} {meant.day} {meant:%B}{'' if meant.year == now.year else f' {meant.year}'}"


def length(minutes: int) -> str:
    hours, left = divmod(minutes, 60)
    parts = [say("hours", count=hours)] if hours else []
    return say("space").join([*parts, say("minutes", count=left)] if left or not hours else parts)


_ABLE = "I can schedule, move, rename, delete and list events, find free times, search places and find ways."
_ABLE_ZH = "我可以安排、调整、改名、删除和查询日程，查找空闲时间、地点和路线。"
_NAME_ZH = "离线规划器（按规则工作，不是语言模型）"
_DAY, _DAY_ZH = "Which day do you mean?", "您指的是哪一天？"
_CLOCK, _CLOCK_ZH = "What time do you mean?", "您指的是几点？"
_LONG, _LONG_ZH = "How long should it take?", "需要多长时间？"

MESSAGES = {
    # the planner itself
    "hello": (f"Hello. I am the {NAME}. {_ABLE}", f"你好。我是{_NAME_ZH}。{_ABLE_ZH}"),
    "help": (f"What can I do for you? {_ABLE}", f"我能为您做什么？{_ABLE_ZH}"),
    "unclear": (f"I am the {NAME} and do not understand “{{said}}”. {_ABLE} What should I do?",
        f"我是{_NAME_ZH}，没有听懂“{{said}}”。{_ABLE_ZH}我该做什么？"),
    "too long": ("That is longer than I can read ({most} characters). What should I do, in a sentence or two?",
        "内容太长，我最多能读{most}个字符。请用一两句话说明我该做什么。"),
    "did you mean": ("Did you mean “{said}”?", "您的意思是“{said}”吗？"),
    "welcome": ("You are welcome.", "不客气。"),
    "nothing": ("All right, I did nothing.", "好的，我什么也没做。"),
    "kept": ("All right, I did nothing about “{said}”.", "好的，我没有改动“{said}”。"),
    "left": ("All right, I left {goal} alone.", "好的，我没有动{goal}。"),
    "gave up": ("I still do not understand, so I did nothing about {goal}.", "我还是没有听懂，所以没有动{goal}。"),
    "depends": ("“{said}” depends on something that I do not know. What should I do?",
        "“{said}”取决于我不知道的事情。我该做什么？"),
    "replace": ("“{said}”: please say to which day and time it should move.", "“{said}”：请说明要改到哪一天、几点。"),
    "context": ("You asked: “{said}”", "您的请求：“{said}”"),
    "no more": ("There is nothing left to do.", "没有别的要做了。"),
    "no tool": ("I have no tool here to {ability}.", "这里没有能{ability}的工具。"),
    # the role of a tool that is missing
    "request_clarification": ("ask you", "向您提问"),
    "list_calendars": ("see which calendars there are", "查看有哪些日历"),
    "list_events": ("read the calendar", "查看日程"),
    "create_event": ("create events", "新建日程"),
    "update_event": ("change events", "更改日程"),
    "delete_event": ("delete events", "删除日程"),
    "search_places": ("search places", "查找地点"),
    "get_directions": ("find the way", "查找路线"),
    "book_room": ("book rooms", "预订会议室"),
    # words
    "today": ("today", "今天"),
    "tomorrow": ("tomorrow", "明天"),
    "yesterday": ("yesterday", "昨天"),
    "hours": ("{count} h", "{count}小时"),
    "minutes": ("{count} min", "{count}分钟"),
    "space": (" ", ""),
    "am": ("morning", "上午"),
    "pm": ("afternoon", "下午"),
    "evening": ("evening", "晚上"),
    "night": ("night", "晚上"),
    "quoted": ("“{name}”", "“{name}”"),
    "or": (" or ", "，还是"),
    "listed": (", ", "、"),
    "new event": ("the new event", "新日程"),
    "the room": ("the room", "会议室"),
    "that": ("that", "它"),
    "your request": ("your request", "您的请求"),
    # new events
    "what and when": ("What should I schedule, and when? For example: “Meeting tomorrow at 3pm”.",
        "要安排什么，在什么时候？例如：“明天下午三点开会”。"),
    "name?": ("What should the event be called?", "这个日程叫什么名字？"),
    "about": ("{goal}: {question}", "{goal}：{question}"),
    "the room:": ("The room", "会议室"),
    "each of them": ("You speak of {count} events. Please give me a name, a day and a time for each of them.",
        "请给出每个日程的名字、日期和时间。"),
    "meeting with": ("Meeting with {people}", "和{people}开会"),
    "and": (" and ", "、"),
    # days and times
    "when?": ("When should it be? Please give a day and a time.", "什么时候？请给出日期和时间。"),
    "clock?": ("At what time {day}?", "{day}几点？"),
    "half?": ("Is {clock} in the morning or in the afternoon? Please say {clock} am or {clock} pm.",
        "{clock}是上午还是下午？"),
    "skipped": ("The clocks skip {clock} on {day}. What time do you mean?",
        "{day}没有{clock}这个时间（夏令时）。您指的是几点？"),
    "passed": ("{day} {clock} has passed. When do you mean?", "{day} {clock}已经过去了。您指的是什么时候？"),
    "too far": ("{day} is more than five years away. Which date do you mean?", "{day}超过了五年。您指的是哪一天？"),
    "ends early": ("{end} is not after {start}. When does it end?", "{end}不晚于{start}。几点结束？"),
    "which day of": ("Which day do you mean: {days}?", "您指的是哪一天：{days}？"),
    "two times": ("There is more than one time in that. Which one do you mean?",
        "里面有不止一个时间。您指的是哪一个？"),
    "with it": ("{question} Please ask me again with it.", "{question}请带上它再问我一次。"),
    "open day": (f"“{{said}}” leaves the day open. {_DAY}", f"日期不明确。{_DAY_ZH}"),
    "today or next": (f"“{{said}}” is today, and also a week from now. {_DAY}",
        f"是今天，还是下一周的同一天？{_DAY_ZH}"),
    "no such day": (f"“{{said}}” is not a date that exists. {_DAY}", f"这个日期不存在。{_DAY_ZH}"),
    "repeats": (f"“{{said}}” repeats, and I can only make single events. {_DAY}",
        f"我只能安排单次日程，不能重复。{_DAY_ZH}"),
    "uncounted": (f"“{{said}}” is more than I can count. {_DAY}", f"我算不出这个日期。{_DAY_ZH}"),
    "far day": (f"“{{said}}” is too far away. {_DAY}", f"太遥远了。{_DAY_ZH}"),
    "years away": (f"“{{said}}” is more than five years away. {_DAY}", f"超过了五年。{_DAY_ZH}"),
    "two dates": (f"“{{said}}” may be {{first}} or {{second}}. {_DAY}", f"日期有两种读法。{_DAY_ZH}"),
    "unread day": (f"I cannot read “{{said}}” as a date. {_DAY}", f"我看不懂日期“{{said}}”。{_DAY_ZH}"),
    "unread": (f"I cannot read “{{said}}” as a date or a time. {_DAY}", f"我看不懂日期“{{said}}”。{_DAY_ZH}"),
    "unread time": ("I cannot read “{said}” as a date or a time. Which day do you mean, and what time?",
        "我看不懂“{said}”。您指的是哪一天，几点？"),
    "misspelt day": ("I cannot read “{said}” as a day. Please write it again, such as {meant}.",
        "我看不懂日期“{said}”。请重新写一遍。"),
    "misspelt month": ("I cannot read “{said}” as a month. Please write it again, such as {meant}.",
        "我看不懂日期“{said}”。请重新写一遍。"),
    "open time": (f"“{{said}}” leaves the time open. {_CLOCK}", f"时间不明确。{_CLOCK_ZH}"),
    "what time": (_CLOCK, _CLOCK_ZH),
    "no such time": (f"“{{said}}” is not a time of day. {_CLOCK}", f"没有这样的时间。{_CLOCK_ZH}"),
    "other half": (f"“{{said}}” is not in that part of the day. {_CLOCK}", f"“{{said}}”不在那个时段。{_CLOCK_ZH}"),
    "ends first": (f"“{{said}}” ends before it begins. {_CLOCK}", f"结束早于开始。{_CLOCK_ZH}"),
    "midnight": (f"“{{said}}” can be the start or the end of a day; please write 0:00 and the date. {_CLOCK}",
        "半夜十二点是哪一天的？请写明日期和0:00。"),
    "zone": (f"“{{said}}” is another time zone; I only know {{zone}}. {_CLOCK}", f"我只知道时区{{zone}}。{_CLOCK_ZH}"),
    "whole day": ("I cannot make events without a time. When does it start, and how long does it take?",
        "我不能安排没有时间的日程。几点开始，需要多长时间？"),
    "no length": (f"“{{said}}” is not a length I can use. {_LONG}", f"这个时长不可用。{_LONG_ZH}"),
    "open end": (f"“{{said}}” is not clear. {_LONG}", f"不清楚何时结束。{_LONG_ZH}"),
    # changes
    "move to?": ("To which day and time should it move?", "要改到哪一天、几点？"),
    "change?": ("What should change?", "要改什么？"),
    "how long?": ("How long should it be?", "要多长时间？"),
    "unclear end": ("“{said}” is not clear to me as its end. How long should it be?", "不清楚何时结束。需要多长时间？"),
    "nothing left": ("Nothing would be left of it. How long should it be?", "那样就没有时间了。要多长时间？"),
    "which way": ("Should it be {length} earlier or later? Please give the new time.",
        "要提前还是推迟{length}？请给出新的时间。"),
    "one at a time": ("I do that for one event at a time. Which one do you mean?",
        "我一次只处理一个日程。您指的是哪一个？"),
    "which it": ("Which event do you mean by “{said}”? Please give me its name, or its day and time.",
        "您指的是哪个日程？请给出它的名字，或日期和时间。"),
    "which one": ("Which one do you mean: {events}?", "您指的是哪一个：{events}？"),
    "no event on": ("I find no event for “{said}” {day}. Which event do you mean, and on which day?",
        "{day}没有找到日程“{said}”。您指的是哪个日程，在哪一天？"),
    "no event in": ("I find no event for “{said}” in the next {days} days. Which event do you mean, and on which day?",
        "{days}天内没有找到日程“{said}”。您指的是哪个日程，在哪一天？"),
    "no calendar": ("There is no calendar “{name}”. Which one do you mean: {calendars}?",
        "没有日历“{name}”。您指的是哪一个：{calendars}？"),
    "instead?": ("It was rejected: “{said}”. What should it be instead?", "被拒绝了：“{said}”。应该改成什么？"),
    # proposals and results
    "event": ("{name}, {day} {hours}{place}", "{name}，{day} {hours}{place}"),
    "place": (", {place}", "，{place}"),
    "create": ("Create: {event}.", "新建：{event}。"),
    "book a room": ("Book a room: {event}.", "预订会议室：{event}。"),
    "change": ("Change: {before} → {after}.", "更改：{before} → {after}。"),
    "delete": ("Delete: {event}.", "删除：{event}。"),
    "created": ("Done: {event}.", "已安排：{event}。"),
    "changed": ("Changed: {event}.", "已更改：{event}。"),
    "deleted": ("Deleted: {event}.", "已删除：{event}。"),
    "booked": ("Booked: {event}.", "已预订：{event}。"),
    "as you asked": ("as you asked", "如您所说"),
    "rejected": ("Not done, because it was rejected: {about}.", "没有执行，因为被拒绝了：{about}。"),
    "rejected for": ("Not done, because it was rejected: “{said}”: {about}.",
        "没有执行，因为被拒绝了（{said}）：{about}。"),
    "failed": ("That did not work: {why}", "没有成功：{why}"),
    "failed for": ("That did not work for {about}: {why}", "没有成功（{about}）：{why}"),
    "sign in": ("That needs you to sign in first: {url} Then ask me again.", "需要先登录：{url} 然后再问我一次。"),
    # the calendar
    "calendars": ("Your calendars: {names}.", "您的日历：{names}。"),
    "event in": ("1 event {period}: {events}{more}.", "{period}有1个日程：{events}{more}。"),
    "events in": ("{count} events {period}: {events}{more}.", "{period}有{count}个日程：{events}{more}。"),
    "and more": ("; and {count} more", "；还有{count}个"),
    "empty": ("Nothing is in the calendar {period}.", "{period}没有日程，有空。"),
    "none about": ("Nothing about “{words}” is in the calendar {period}.", "{period}没有关于“{words}”的日程。"),
    "busy": ("In the calendar: {events}.", "已有日程：{events}。"),
    "on": ("on {day}", "{day}"),
    "from to": ("from {first} to {last}", "{first}到{last}"),
    "free": ("Free: {spans}{more}.", "空闲时间：{spans}{more}。"),
    "none free": ("No {length} are free then.", "那段时间没有{length}的空闲。"),
    "none free, when": ("No {length} are free then. On which other day, and at what time, should it be?",
        "那段时间没有{length}的空闲。改在哪一天、几点？"),
    "offer": ("{length} are free: {spans}. Which one should I take?", "以下时间有{length}空闲：{spans}。选哪一个？"),
    "offer to others": ("{length} are free: {spans}. I only see your calendar. Which one should I take?",
        "以下时间有{length}空闲：{spans}。我只能看到您的日历。选哪一个？"),
    # the map
    "kind of place?": ("What kind of place are you looking for?", "您要找什么样的地方？"),
    "which place": ("{why}. Which place do you mean?", "{why}。您指的是哪个地方？"),
    "from where?": ("From where?", "从哪里出发？"),
    "from where to where?": ("From where to where?", "从哪里到哪里？"),
    "no place": ("I found no {query}.", "没有找到{query}。"),
    "no place near": ("I found no {query} near {near}.", "在{near}附近没有找到{query}。"),
    "places": ("I found {count}: {places}{more}.", "找到{count}个：{places}{more}。"),
    "metres": ("{count} m away", "距离{count}米"),
    "way": ("{origin} to {destination}, {mode}, {metres} m, {minutes} min. {steps}",
        "{origin}到{destination}，{mode}，{metres}米，{minutes}分钟。{steps}"),
}  # fmt: skip
"""English, Chinese."""
