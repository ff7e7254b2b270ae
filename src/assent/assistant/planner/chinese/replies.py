"""The planner's sentences in Chinese. Names stay as they are: they stand in quotes, or before the comma of an event."""

from __future__ import annotations

import re
from collections.abc import Callable

from assent.assistant.planner.dates.grammar import MONTHS, WEEKDAYS

_WEEKDAYS = {day.title(): chinese for day, chinese in zip(WEEKDAYS, "一二三四五六日", strict=True)}
_MONTHS = tuple(month.title() for month in MONTHS)
_DAY = rf"(?:today|tomorrow|yesterday|(?:{'|'.join(_WEEKDAYS)}) \d{{1,2}} (?:{'|'.join(_MONTHS)})(?: \d{{4}})?)"

_PART = "(?:morning|afternoon|evening|night)"


def _date(match: re.Match[str]) -> str:
    year = f"{match['year']}年" if match["year"] else ""
    return f"{year}{_MONTHS.index(match['month']) + 1}月{match['day']}日（周{_WEEKDAYS[match['weekday']]}）"


_SENTENCES: tuple[tuple[str, str], ...] = (
    (
        r"Hello\. I am the offline planner \(rules, not a language model\)\.",
        "你好。我是离线规划器（按规则工作，不是语言模型）。",
    ),
    (
        r"I am the offline planner \(rules, not a language model\) and do not understand “(.*?)”\.",
        r"我是离线规划器（按规则工作，不是语言模型），没有听懂“\1”。",
    ),
    (
        r"I can schedule, move, rename, delete and list events, find free times, search places and find ways\.",
        "我可以安排、调整、改名、删除和查询日程，查找空闲时间、地点和路线。",
    ),
    (r"What can I do for you\?", "我能为您做什么？"),
    (r"You are welcome\.", "不客气。"),
    (r"What should I schedule, and when\? For example: “.*?”\.", "要安排什么，在什么时候？例如：“明天下午三点开会”。"),
    (r"What should I do\?", "我该做什么？"),
    (r"What should I do, in a sentence or two\?", "请用一两句话说明我该做什么。"),
    (r"That is longer than I can read \((\d+) characters\)\.", r"内容太长，我最多能读\1个字符。"),
    (r"“(.*?)” depends on something that I do not know\.", r"“\1”取决于我不知道的事情。"),
    (r"All right, I did nothing about “(?:don't touch )?(.*?)”\.", r"好的，我没有改动“\1”。"),
    (r"All right, I did nothing\.", "好的，我什么也没做。"),
    (r"All right, I left (.*?) alone\.", r"好的，我没有动\1。"),
    (r"I still do not understand, so I did nothing about (.*?)\.", r"我还是没有听懂，所以没有动\1。"),
    (r"the new event", "新日程"),
    (r"\bthat\b(?=。)", "它"),
    (r"What should the event be called\?", "这个日程叫什么名字？"),
    (r"When should it be\? Please give a day and a time\.", "什么时候？请给出日期和时间。"),
    (rf"At what time ({_DAY})\?", r"\1几点？"),
    (r"Is (\d+:\d+) in the morning or in the afternoon\? Please say \S+ am or \S+ pm\.", r"\1是上午还是下午？"),
    (r"“([^”]*)” leaves the day open\. Which day do you mean\?", "日期不明确。您指的是哪一天？"),
    (r"“([^”]*)” leaves the time open\. What time do you mean\?", "时间不明确。您指的是几点？"),
    (
        r"“([^”]*)” repeats, and I can only make single events\. Which day do you mean\?",
        "我只能安排单次日程，不能重复。您指的是哪一天？",
    ),
    (r"“([^”]*)” is not a date that exists\. Which day do you mean\?", "这个日期不存在。您指的是哪一天？"),
    (
        r"“([^”]*)” is today, and also a week from now\. Which day do you mean\?",
        "是今天，还是下一周的同一天？您指的是哪一天？",
    ),
    (r"“([^”]*)” is more than I can count\. Which day do you mean\?", "我算不出这个日期。您指的是哪一天？"),
    (r"“([^”]*)” is more than five years away\. Which day do you mean\?", "超过了五年。您指的是哪一天？"),
    (r"“([^”]*)” is too far away\. Which day do you mean\?", "太遥远了。您指的是哪一天？"),
    (r"“([^”]*)” is not a time of day\. What time do you mean\?", "没有这样的时间。您指的是几点？"),
    (r"“([^”]*)” is not in that part of the day\. What time do you mean\?", "“\\1”不在那个时段。您指的是几点？"),
    (r"“([^”]*)” ends before it begins\. What time do you mean\?", "结束早于开始。您指的是几点？"),
    (
        r"“([^”]*)” can be the start or the end of a day; please write 0:00 and the date\. What time do you mean\?",
        "半夜十二点是哪一天的？请写明日期和0:00。",
    ),
    (r"“([^”]*)” may be (.*?)\. Which day do you mean\?", "日期有两种读法。您指的是哪一天？"),
    (r"“([^”]*)” is another time zone; I only know (\S+)\. What time do you mean\?", r"我只知道时区\2。您指的是几点？"),
    (r"“([^”]*)” is not a length I can use\. How long should it take\?", "这个时长不可用。需要多长时间？"),
    (r"“([^”]*)” is not clear\. How long should it take\?", "不清楚何时结束。需要多长时间？"),
    (r"“([^”]*)” is not clear to me as its end\. How long should it be\?", "不清楚何时结束。需要多长时间？"),
    (
        r"I cannot make events without a time\. When does it start, and how long does it take\?",
        "我不能安排没有时间的日程。几点开始，需要多长时间？",
    ),
    (r"I cannot read “([^”]*)” as a (?:date|day|month)(?: or a time)?\.", r"我看不懂日期“\1”。"),
    (r"Please write it again, such as (\S+)\.", "请重新写一遍。"),
    (r"There is more than one time in that\. Which one do you mean\?", "里面有不止一个时间。您指的是哪一个？"),
    (r"Which day do you mean, and what time\?", "您指的是哪一天，几点？"),
    (r"Which day do you mean: (.*?)\?", r"您指的是哪一天：\1？"),
    (r"Which day do you mean\?", "您指的是哪一天？"),
    (r"Which date do you mean\?", "您指的是哪一天？"),
    (r"What time do you mean\?", "您指的是几点？"),
    (rf"({_DAY}) (\d+:\d+) has passed\. When do you mean\?", r"\1 \2已经过去了。您指的是什么时候？"),
    (r"is not after (\d+:\d+)\. When does it end\?", r"不晚于\1。几点结束？"),
    (r"Please ask me again with it\.", "请带上它再问我一次。"),
    (r"To which day and time should it move\?", "要改到哪一天、几点？"),
    (r"What should change\?", "要改什么？"),
    (r"How long should it be\?", "要多长时间？"),
    (r"Nothing would be left of it\.", "那样就没有时间了。"),
    (r"Should it be (.*?) earlier or later\? Please give the new time\.", r"要提前还是推迟\1？请给出新的时间。"),
    (r"I do that for one event at a time\. Which one do you mean\?", "我一次只处理一个日程。您指的是哪一个？"),
    (
        r"Which event do you mean by “(?:it|that|this)”\? Please give me its name, or its day and time\.",
        "您指的是哪个日程？请给出它的名字，或日期和时间。",
    ),
    (r"Which one do you mean: (.*)\?", r"您指的是哪一个：\1？"),
    (
        rf"I find no event for “(.*?)” ?(?:(?:on )?({_DAY})|in the next (\d+) days)\. Which event do you mean, "
        r"and on which day\?",
        r"没有找到日程“\1”。您指的是哪个日程，在哪一天？",
    ),
    (r"There is no calendar “(.*?)”\. Which one do you mean: (.*?)\?", r"没有日历“\1”。您指的是哪一个：\2？"),
    (r"Did you mean “(.*?)”\?", r"您的意思是“\1”吗？"),
    (
        r"You speak of (\S+) events\. Please give me a name, a day and a time for each of them\.",
        "请给出每个日程的名字、日期和时间。",
    ),
    (r"It was rejected: “(.*?)”\. What should it be instead\?", r"被拒绝了：“\1”。应该改成什么？"),
    (r"Not done, because it was rejected(?:: “(.*?)”)?: (.*)\.", r"没有执行，因为被拒绝了（\1）：\2。"),
    (r"That did not work(?: for (.*?))?: ", r"没有成功：\1 "),
    (r"That needs you to sign in first: (\S+) Then ask me again\.", r"需要先登录：\1 然后再问我一次。"),
    (r"I have no tool here to (.*?)\.", "这里没有能做这件事的工具。"),
    (r"There is nothing left to do\.", "没有别的要做了。"),
    (r"Create: ", "新建："),
    (r"Change: ", "更改："),
    (r"Delete: ", "删除："),
    (r"Book a room: ", "预订会议室："),
    (r"Done: ", "已安排："),
    (r"Changed: ", "已更改："),
    (r"Deleted: ", "已删除："),
    (r"Booked: ", "已预订："),
    (r"Your calendars: ", "您的日历："),
    (rf"(\d+) events? (?:on )?({_DAY}): ", r"\2有\1个日程："),
    (rf"(\d+) events? from ({_DAY}) to ({_DAY}): ", r"\2到\3有\1个日程："),
    (r"; and (\d+) more", r"；还有\1个"),
    (
        rf"Nothing(?: about “(.*?)”)? is in the calendar from ({_DAY}) to ({_DAY})(?: {_PART})?\.",
        r"\2到\3没有日程。",
    ),
    (
        rf"Nothing(?: about “(.*?)”)? is in the calendar (?:on )?({_DAY})(?: (\d+:\d+–\d+:\d+))?(?: {_PART})?\.",
        r"\2\3没有日程，有空。",
    ),
    (r"In the calendar: ", "已有日程："),
    (r"No (\d+ h|\d+ min|\d+ h \d+ min) are free then\.", r"那段时间没有\1的空闲。"),
    (r"On which other day, and at what time, should it be\?", "改在哪一天、几点？"),
    (r"((?:\d+ h ?)?(?:\d+ min)?) are free: ", r"以下时间有\1空闲："),
    (r"Free: ", "空闲时间："),
    (r"I only see your calendar\.", "我只能看到您的日历。"),
    (r"Which one should I take\?", "选哪一个？"),
    (r"The room: ", "会议室："),
    (r"You asked: “(.*)”", r"您的请求：“\1”"),
)
_WORDS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (
        rf"(?P<weekday>{'|'.join(_WEEKDAYS)}) (?P<day>\d{{1,2}}) (?P<month>{'|'.join(_MONTHS)})"
        r"(?: (?P<year>\d{4}))?",
        _date,
    ),
    (r"(?<![A-Za-z])(?i:today)(?![A-Za-z])", "今天"),
    (r"(?<![A-Za-z])(?i:tomorrow)(?![A-Za-z])", "明天"),
    (r"(?<![A-Za-z])(?i:yesterday)(?![A-Za-z])", "昨天"),
    (r"(?<=\d) min(?![a-z])", "分钟"), (r"(?<=\d) h(?![a-z])", "小时"),
)  # fmt: skip


def in_chinese(text: str) -> str:
    for pattern, chinese in _SENTENCES:
        text = re.sub(pattern, chinese, text, flags=re.DOTALL)
    for pattern, word in _WORDS:
        text = re.sub(pattern, word, text)
    return re.sub(r"(?<=[\u3000-\u303f\uff00-\uffef]) +", "", text)
