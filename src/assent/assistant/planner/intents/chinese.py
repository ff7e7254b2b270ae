"""Chinese around the times: politeness, particles, and the names of events, people and places, which have no spaces."""

from __future__ import annotations

import re
import unicodedata

from assent.assistant.planner.dates.chinese import number
from assent.assistant.planner.dates.dates import GAP
from assent.assistant.planner.dates.phrases import TOKEN
from assent.assistant.planner.intents.words import NOUNS_ZH

HAN = re.compile(r"[\u4e00-\u9fff]")
MAKES = (
    r"安排|预约|约|创建|新建|新增|添加|增加|加|建立|建|订|预定|预订|设置|设定|设|定|记录|记|放|排|提醒我|提醒|叫我|开"
)
SPLIT = re.compile(r"\s*(?:[。；;!！]|[，,]?\s*(?:然后|接着|并且|同时|另外|顺便))\s*")
_POLITE = re.compile(
    r"^(?:请问|请你|请您|请|麻烦你?您?|帮忙|帮我们?|帮|给我|替我|能不能|可不可以|可以|能否|劳驾|我想要?|我要|我们|我需要|我得|我|想要?|要|那就?|嗯|哦|好的?"
    r"|你好|您好|再|先|就|算了|不好意思|抱歉|等等|哎呀?|啊|[，,、\s])+(?=.)"
)
_ENDING = re.compile(
    r"(?:[，,\s]|一下|(?:加|放|记|写)(?:到|进|在)(?:我的?)?(?:日历|日程)[里上中]?|好吗|行吗|可以吗|好不好|谢谢你?|吧|哦|啊|呀|呗|了|帮我记一下|记一下|帮我?|[?？.。~～])+$"
)
_MAY = re.compile(r"能不能|可不可以|能否|可否")
_NEW_ENTRY = re.compile(
    r"^(?:加|添加|增加|新建|创建|建|新增|记)(?:一?个|一下|一条)?(?:日程|安排|活动|事件|行程|提醒)\s*[:：，,]\s*"
)
_JOINTS = re.compile(r"[、,，]|和|跟|与|及")
_SAYS_SOMETHING = re.compile(
    r"讨厌|喜欢|觉得|为什么|好吗|还是|开得|昨天|刚[才刚]|已经|累|雨|雪|票|外卖|堵车|天气|笑话|新闻|应该|谁|只能|很|太|闹钟"
    r"|不|没(?!问题)|别(?!墅)|说(?!明(?![天早晚日年]))|问(?!卷|题|诊)|告诉|转告|让(?!.+(?:参加|加入|出席))|(?:提醒|通知|叫)(?=[^我做上为一事：:，,\s明今后周下这])|[他她]们?|大家|怎|哪|几|是否|者|但|可是|除了|取消|删"
    r"|发(?:个|一|会议|邮件|消息|短信)|打开|关[上掉闭]|如果|要是|也许|可能"
)
_INVITES = re.compile(r"[请让叫邀].{1,16}(?:参加|加入|出席)")
_QUESTION = re.compile(r"[吗呢?？]\s*$")
_GENERIC = re.compile(r"(?:个|一个|一场|一次|两个|一下|的|新的|日程|事|事情|东西|活动|行程|安排|提醒)*")
_PERSON = rf"(?:[\u4e00-\u9fffA-Za-z]{{1,4}}?|{TOKEN})"
_NAME = re.compile(rf"[\u4e00-\u9fffA-Za-z·.]{{1,12}}|{TOKEN}")
_WHO = re.compile(
    rf"(?:和|跟|与|同)(?P<who>{_PERSON}(?:[、和跟与]{_PERSON})*)"
    rf"(?=一起|吃|聚|开|讨论|见|聊|谈|喝|打|看|通话|会面|面谈|找|约|的|$|\s|{GAP})"
)
_COMPANION = re.compile(r"(?:和|跟|与|给)(?P<who>[\u4e00-\u9fffA-Za-z]{1,4}?)(?=找|约|安排|一起|都|在|的|\s|$)")
_PLACE = re.compile(
    r"(?:在(?P<place>[^\s，,和跟]{2,12}?)(?=和|跟|与|开会|讨论|见面|吃|喝|聊|面试|上课|开|举行|，|,|$)"
    r"|[，,]\s*地点(?:是|在|为|:)?\s*(?P<venue>[^\s，,]+))"
)
_CALLED = re.compile(r"(?:名为|叫做?|名叫|主题是|标题是|题目是)(?P<name>[^的，,\s]+)")
_AT_FIRST = re.compile(
    r"^(?:[\s，,]|一下|[一两]?[个场次]|的|在|有|会要|我|要|去(?=看|吃|开)|是)+|(?:[\s，,]|的|帮|我|一下|日程$)+$"
)
_LIKE_A_VERB = re.compile(r"\s*(?:在|的)?\s*(?:开会|约会|记者|订婚|建党|加班|排练|放假|设计)")
"""Names that begin like a verb."""
_EQUIPMENT = {"白板": "whiteboard", "投影": "projector", "屏幕": "screen", "视频": "video", "摄像头": "camera"}
_AROUND_A_NAME = re.compile(r"^(?:的|在|那个|这个|我的|我)+|(?:的|都|给|那个|这个)+$")


def plain(text: str) -> str:
    """With the usual marks, and English quotes."""
    quoted = re.sub(r"[「『《“\"]([^」』》”\"]+)[」』》”\"]", r"“\1”", text)
    return unicodedata.normalize("NFKC", quoted)


def bare(clause: str) -> str:
    """Without politeness."""
    stripped = _ENDING.sub("", _POLITE.sub("", _MAY.sub("", clause))) or clause
    return _NEW_ENTRY.sub("安排 ", stripped)


def name(text: str) -> str:
    """Of an event that exists: without the particles around it."""
    return _AROUND_A_NAME.sub("", re.sub(rf"[\s{GAP}]", "", text)).strip("“”，, ")


def people(text: str) -> tuple[str, ...]:
    """The people that a list names; none if something else stands in it."""
    names = [name for name in _JOINTS.split(text.strip()) if name and name != "我"]
    return tuple(names) if all(_NAME.fullmatch(name) and not equipment(name) for name in names) else ()


def company(text: str) -> tuple[str, ...]:
    """The people after "with"."""
    match = _WHO.search(text)
    return people(match["who"]) if match else ()


def asks_for_an_event(clause: str, rest: str, *, timed: bool) -> bool:
    """A verb or a kind of event is known, and nothing is said about it."""
    if _INVITES.search(clause):
        return False
    verb = re.search(rf"^(?:\s|在|于|的|，|,)*(?:{MAKES})|(?:，|,|\s)(?:{MAKES})", rest)
    known = re.search(NOUNS_ZH, rest)
    if verb and len(verb[0].strip("在于的，, ")) == 1 and not known:
        return False
    return bool(verb or (known and timed)) and not tells(clause)


def tells(clause: str) -> bool:
    """Whether it asks or says something about an event: it is denied, over, another's words, or in doubt."""
    return bool(_SAYS_SOMETHING.search(clause)) or asks(clause)


def asks(clause: str) -> bool:
    return bool(_QUESTION.search(clause))


def take_place(text: str) -> tuple[str, str | None]:
    match = _PLACE.search(text)
    return (text.replace(match[0], " "), match["place"] or match["venue"]) if match else (text, None)


def new_name(text: str) -> str | None:
    """Of a new event: a quoted one, one after "called", or what is left without the verb and its particles."""
    if quoted := re.search(TOKEN, text):
        return quoted[0]
    if called := _CALLED.search(text):
        return called["name"]
    if not _LIKE_A_VERB.match(text):
        text = re.sub(rf"^[\s，,]*(?:在|于)?\s*(?:{MAKES})(?=[^会]|会议|会$)", "", text.strip())
    left = re.sub(r"\s*[，,]\s*|\s+的?|(?<=\s)的", "", _AT_FIRST.sub("", text))
    return None if _GENERIC.fullmatch(left) else re.sub(r"^的|的$", "", left)


def companions(text: str) -> tuple[str, ...]:
    """The people for whom a free time is looked for."""
    match = _COMPANION.search(text)
    return people(match["who"]) if match else ()


def headcount(text: str) -> int | None:
    match = re.search(r"(?P<count>[0-9]+|[一二两三四五六七八九十]+)\s*个?(?:人|位)", text)
    return number(match["count"]) if match else None


def equipment(text: str) -> str | None:
    return next((english for word, english in _EQUIPMENT.items() if word in text), None)
