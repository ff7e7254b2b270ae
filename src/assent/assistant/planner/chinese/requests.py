"""Chinese requests as English ones: the verbs here, the times in `times`, all names in quotes.

What is not recognised is left as it is, so the planner asks about it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import datetime

from assent.assistant.planner.chinese import times
from assent.assistant.planner.replies import is_chinese

_QUOTES = re.compile(r"[「『《“\"]([^」』》”\"]+)[」』》”\"]")
_SPLIT = re.compile(r"[。；;!！\n]+|[，,]?\s*(?:然后|接着|并且|同时|另外|顺便)\s*")
_POLITE = re.compile(
    r"^(?:请问|请你|请您|请|麻烦你?您?|帮忙|帮我们?|帮|给我|替我|能不能|可不可以|可以|能否|劳驾|我想要?|我要|我们|我需要|我得|我|想要?|要|那就?|嗯|哦|好的?"
    r"|你好|您好|再|先|就|算了|不好意思|抱歉|等等|哎呀?|啊|[，,、\s])+(?=.)"
)
_ENDING = re.compile(
    r"(?:[，,\s]|一下|好吗|行吗|可以吗|好不好|谢谢你?|吧|哦|啊|呀|呗|了|帮我记一下|记一下|帮我?|[?？.。~～])+$"
)
_MAY = re.compile(r"能不能|可不可以|能否|可否")
_NEW_ENTRY = re.compile(
    r"^(?:加|添加|增加|新建|创建|建|新增|记)(?:一?个|一下|一条)?(?:日程|安排|活动|事件|行程)\s*[:：，,]\s*"
)
_JOINTS = re.compile(r"[、,，]|和|跟|与|及")

_TO = r"(?:改期?(?:到|成|为|在|至)|挪到|移到|调到|调整到|调整为|换到|换成|推迟到|延后到|延到|延期到|提前到|安排到|放到)"
_LATER, _EARLIER = r"(?:往后)?(?:推迟|延后|延迟|推后|后推|延期|往后推|往后延|顺延)", r"(?:提前|往前移|往前提|提早)"
_THE = r"(?:把|将)?(?P<ref>.+?)"
_NOUNS = (
    r"会议|会(?=$|[，,\s])|例会|面试|聚餐|聚会|吃饭|午饭|晚饭|早饭|午餐|晚餐|早餐|牙医|医生|体检|看病|看牙|健身|跑步|游泳|瑜伽|课|培训|讲座|电话|通话|讨论|评审|汇报|复盘"
    r"|航班|飞机|火车|高铁|电影|看电影|约会|见面|会面|拜访|生日|婚礼|派对|周报|演示|演出|音乐会|理发|剪头发|喝咖啡|咖啡|喝茶|下午茶|打球|篮球|足球|羽毛球|网球|考试|出差"
    r"|银行|医院|接孩子|接人|逛街|购物|搬家|聊|谈|开会|活动|值班|团建|答辩|路演|签约|复诊|打疫苗|家长会"
)
_MAKES = (
    r"安排|预约|约|创建|新建|新增|添加|增加|加|建立|建|订|预定|预订|设置|设定|设|定|记录|记|放|排|提醒我|提醒|叫我|开"
)
_SAYS_SOMETHING = re.compile(
    r"讨厌|喜欢|觉得|听说|为什么|怎么|好吗|是不是|还是|开得|昨天|刚才|已经|累|雨|雪|票|外卖|堵车|天气|笑话|新闻|应该|谁|只能|没空|很|太"
)
_GENERIC_NAMES = re.compile(r"(?:个|一个|一场|一次|两个|一下|的|新的|日程|事|事情|东西|活动|行程|安排|提醒)*")
_PERSON = r"[\u4e00-\u9fffA-Za-z]{1,4}?"
_WHO = (
    rf"(?:和|跟|与|同)(?P<who>{_PERSON}(?:[、和跟与]{_PERSON})*)"
    r"(?=一起|吃|开|讨论|见|聊|谈|喝|打|看|通话|会面|面谈|找|约|的|$|\s)"
)


def in_english(text: str, now: datetime) -> str:
    """The request in the planner's English. A text that is not Chinese stays as it is."""
    if not is_chinese(text):
        return text
    plain = unicodedata.normalize("NFKC", _QUOTES.sub(r"“\1”", text)).replace("\u201c", "“")
    return "; ".join(_clause(part.strip(), now) for part in _SPLIT.split(plain) if part.strip(" ,，、?？"))


def _clause(text: str, now: datetime) -> str:
    if choice := re.fullmatch(r"(?:就?选?)第([一二三四五六七八1-8])个?", text):
        return f"number {times.number(choice[1])}"
    for pattern, english in _COURTESIES:
        if re.fullmatch(rf"{pattern}[!！。.~\s吗呢?？]*", text):
            return english
    bare = _ENDING.sub("", _POLITE.sub("", _MAY.sub("", text))) or text
    bare = _NEW_ENTRY.sub("安排", bare)
    for pattern, make in _INTENTS:
        match = re.fullmatch(pattern, bare) or re.fullmatch(pattern, text)
        if match and (made := make(match, now)):
            return made
    when, rest = times.in_english(bare, now.date())
    return _created(bare, text, now) or (when if when and not rest.strip("，,的 ") else f"“{text}”")


def _event(match: re.Match[str], now: datetime) -> str:
    """How the event is called, and when it is: an English reference."""
    when, rest = times.in_english(match["ref"], now.date())
    name = re.sub(r"^(?:的|在|那个|这个|我的|我)+|(?:的|都|给|那个|这个)+$", "", rest.replace(" ", "")).strip("“”，, ")
    if re.search(r"所有|全部|每个|一切", match["ref"]):
        return "everything"
    if name in ("", "它", "那个", "这个", "会议", "会", "日程", "安排"):
        return f"the meeting {when}".strip() if when else "it"
    return f"“{name}” {when}".strip()


def _dropped(match: re.Match[str], now: datetime) -> str:
    """ "今晚不去健身了": the verb stands in the middle of the reference."""
    whole = re.fullmatch(r"(?P<ref>.*)", f"{match['when']}{match['what']}")
    return f"cancel {_event(whole, now)}" if whole else ""


def _moved(match: re.Match[str], now: datetime) -> str | None:
    when, rest = times.in_english(match["new"], now.date())
    if not when or rest.strip("的了吧，, "):
        return f"move {_event(match, now)}"
    return f"move {_event(match, now)} to {_bare(when)}"


def _shifted(verb: str, way: str) -> Callable[[re.Match[str], datetime], str | None]:
    def make(match: re.Match[str], now: datetime) -> str | None:
        amount = times.length(match["length"].strip("了吧 "))
        if amount:
            return f"{verb} {_event(match, now)} {way} by {amount}"
        when, _ = times.in_english(match["length"].removeprefix("到"), now.date())
        return f"move {_event(match, now)} to {_bare(when)}" if when else None

    return make


def _stretched(verb: str) -> Callable[[re.Match[str], datetime], str | None]:
    def make(match: re.Match[str], now: datetime) -> str | None:
        amount = times.length(match["length"])
        return f"{verb} {_event(match, now)} {'to' if match['to'] else 'by'} {amount}" if amount else None

    return make


def _new(template: str) -> Callable[[re.Match[str], datetime], str]:
    return lambda match, now: template.format(event=_event(match, now), new=match["new"].strip("“”的 "))


def _about(template: str) -> Callable[[re.Match[str], datetime], str]:
    return lambda match, now: template.format(event=_event(match, now))


def _invited(match: re.Match[str], now: datetime) -> str:
    who = " and ".join(f"“{name}”" for name in _JOINTS.split(match["who"].strip()) if name)
    return f"invite {who} to {_event(match, now)}"


def _corrected(match: re.Match[str], now: datetime) -> str | None:
    when, rest = times.in_english(match["new"], now.date())
    return f"i meant {_bare(when)}" if when and not rest.strip("的，, 了") else None


def _asked(template: str) -> Callable[[re.Match[str], datetime], str]:
    """A question about a time: without one, the planner has its own."""
    return lambda match, now: template.format(when=times.in_english(match[0], now.date())[0]).strip()


def _found(match: re.Match[str], now: datetime) -> str:
    when, _ = times.in_english(match[0], now.date())
    who = re.search(r"(?:和|跟|与|给)(?P<who>[\u4e00-\u9fffA-Za-z]{1,4}?)(?=找|约|安排|一起|都|在|的|\s|$)", match[0])
    people = f" with “{who['who']}”" if who and who["who"] != "我" else ""
    minutes = re.search(r"for ([0-9]+ minutes)", when)
    rest = when.replace(minutes[0], "") if minutes else when
    return f"find {minutes[1] if minutes else 'a free slot'}{people} {rest}".strip()


def _room(match: re.Match[str], now: datetime) -> str:
    when, rest = times.in_english(match[0], now.date())
    people = re.search(r"([0-9]+|[一二两三四五六七八九十]+)\s*个?(?:人|位)", rest)
    equipment = next((english for word, english in _EQUIPMENT.items() if word in rest), None)
    many = f" for {times.number(people[1])} people" if people else ""
    return f"book a room{many}{f' with a {equipment}' if equipment else ''} {when}".strip()


def _created(bare: str, text: str, now: datetime) -> str | None:
    """A new event, if a verb or a kind of event is known, and nothing is said about it."""
    when, rest = times.in_english(bare, now.date())
    verb = re.search(rf"^(?:\s|在|于|的|，|,)*(?:{_MAKES})|(?:，|,|\s)(?:{_MAKES})", rest)
    known = re.search(_NOUNS, rest)
    if verb and len(verb[0].strip("在于的，, ")) == 1 and not known:
        return None
    if _SAYS_SOMETHING.search(text) or not (verb or (known and when)) or re.search(r"[吗呢?？]\s*$", text):
        return None
    name, who, place = _parts(rest)
    pieces = ["schedule", f"“{name}”" if name else "an event", when]
    pieces += [f"at “{place}”"] * bool(place)
    pieces += [f"with {' and '.join(f'“{one}”' for one in who)}"] * bool(who)
    return " ".join(piece for piece in pieces if piece)


def _parts(rest: str) -> tuple[str, list[str], str | None]:
    """The name, the people and the place of a new event."""
    quoted = re.search(r"“([^”]+)”", rest)
    who = re.search(_WHO, rest)
    people = [name for name in _JOINTS.split(who["who"]) if name and name != "我"] if who else []
    at = re.search(r"在(?P<place>[^\s，,和跟]{{2,12}}?)(?=开会|讨论|见面|吃|喝|聊|面试|上课|开|举行|，|,|$)", rest)
    if quoted:
        return quoted[1], people, at["place"] if at else None
    left = rest.replace(at[0], " ") if at else rest
    called = re.search(r"(?:名为|叫做?|名叫|主题是|标题是|题目是)(?P<name>[^的，,\s]+)", left)
    if called:
        return called["name"], people, at["place"] if at else None
    left = (
        re.sub(rf"^[\s，,]*(?:在|于)?\s*(?:{_MAKES})(?=[^会]|会议|会$)", "", left.strip())
        if not _starts_event(left)
        else left
    )
    left = re.sub(
        r"^(?:[\s，,]|一下|[一两]?[个场次]|的|在|有|会要|我|要|去(?=看|吃|开)|是)+|(?:[\s，,]|的|帮|我|一下|日程$)+$",
        "",
        left,
    )
    left = re.sub(r"\s*[，,]\s*|\s+的?|(?<=\s)的", "", left)
    name = "" if _GENERIC_NAMES.fullmatch(left) else left
    return re.sub(r"^的|的$", "", name), people, at["place"] if at else None


def _starts_event(text: str) -> bool:
    """开会 and 约会 begin like verbs."""
    return bool(re.match(r"\s*(?:在|的)?\s*(?:开会|约会|记者|订婚|建党|加班|排练|放假|设计)", text))


def _bare(when: str) -> str:
    return re.sub(r"^(?:at|on)\s+", "", when)


_EQUIPMENT = {"白板": "whiteboard", "投影": "projector", "屏幕": "screen", "视频": "video", "摄像头": "camera"}

_COURTESIES = (
    (r"(?:你好|您好|嗨|哈喽|早上好|早安|早|上午好|下午好|晚上好|在吗|大家好)", "hello"),
    (r"(?:谢谢你?|多谢|感谢|辛苦了|收到|知道了|明白了?|再见|拜拜|没问题|不错|太好了)", "thanks"),
    (r"(?:好的?|是的?|对的?|行|可以|没错|就这个)", "yes"),
    (r"(?:你(?:能|会|可以)(?:帮我)?(?:做|干)(?:点|些)?(?:什么|啥)|你是谁|怎么用|帮助)", "what can you do?"),
    (r"(?:算了|不用了|没事了?|不必了|当我没说|没什么|不需要了)", "never mind"),
)
_INTENTS: tuple[tuple[str, Callable[[re.Match[str], datetime], str | None]], ...] = (
    (r"(?:不要|别|不用|先别|无需|不必|不许)(?P<ref>.+)", lambda match, now: f"don't touch “{match['ref']}”"),
    (r"(?:如果|要是|假如|万一|除非).+", lambda match, now: f"if “{match[0]}”"),
    (
        r"(?:(?:不对|不是|错了|说错了|搞错了)[，,。\s]*)?(?:应该是|我是说|我说的是|其实是|是|改成|改到|换成)(?P<new>.+)",
        _corrected,
    ),
    (r"取消|删除|删掉|取消掉|(?:取消|删掉|删除)(?:它|那个|这个)", lambda match, now: "cancel it"),
    (r"(?:取消|删除|删掉|去掉|移除|撤销|撤掉)掉?(?P<ref>.+)", _about("cancel {event}")),
    (rf"{_THE}(?:都|给)?(?:取消|删除|删掉|去掉|撤销|删)掉?", _about("cancel {event}")),
    (r"(?P<ref>.+?)(?:不开|不去|不上|不参加)", _about("cancel {event}")),
    (r"(?P<when>.*?)(?:不去|不参加|不上)(?P<what>.+)", _dropped),
    (
        rf"{_THE}(?:的(?:名字|名称|标题))?(?:改名|重命名|更名|改叫|(?<=名字)改|(?<=名称)改|(?<=标题)改)(?:为|成|叫)?(?P<new>.+)",
        _new("rename {event} to “{new}”"),
    ),
    (
        rf"{_THE}的?(?:地点|位置|地方)(?:改|换|设|定|设置|更改)(?:为|成|到|在)?(?P<new>.+)",
        _new("set the location of {event} to “{new}”"),
    ),
    (rf"{_THE}(?:延长|加长)(?P<to>到|至|为)?(?P<length>.+)", _stretched("extend")),
    (rf"{_THE}(?:缩短|减少)(?P<to>到|至|为)?(?P<length>.+)", _stretched("shorten")),
    (rf"{_THE}{_LATER}(?P<length>(?:到)?.+)", _shifted("push", "back")),
    (rf"{_THE}{_EARLIER}(?P<length>(?:到)?.+)", _shifted("bring", "forward")),
    (rf"{_THE}{_TO}(?P<new>.+)", _moved),
    (rf"{_THE}(?:推迟|延后|延期|改期|提前|挪一下|改一下|改个?时间|换个?时间)", _about("move {event}")),
    (r"(?:邀请|叫上|拉上|加上|请)(?P<who>.+?)(?:来|去)?(?:参加|加入|出席)(?P<ref>.+)", _invited),
    (r".*会议室.*", _room),
    (r".*(?:找|约|看看|安排|挑).*(?:空闲?时间|空档|空闲|的?空|都有空的?时间|时间)", _found),
    (
        r".*(?:什么时候|几点|哪天|哪个时间|何时).*(?:有空|空闲|有时间|方便).*|.*有(?:没有|哪些|什么)?(?:空闲|空档|空闲时间|空余时间).*",
        _asked("any gaps {when}"),
    ),
    (r".*(?:有空|有时间|空闲|忙不忙|忙|方便)(?:吗|么|没有?|不)?", _asked("am I free {when}")),
    (
        r"(?P<ref>.+?)(?:是|在|定在|安排在)(?:几点|什么时候|哪天|何时|哪一天|周几)(?:开始|开)?",
        _about("when is {event}"),
    ),
    (r"(?:什么时候|几点|何时|哪天)(?P<ref>.+)", _about("when is {event}")),
    (r"(?P<ref>.+?)(?:几点|什么时候|何时)(?:开始|开|举行)?", _about("when is {event}")),
    (r".*(?:哪些|什么|几个)日历.*", lambda match, now: "which calendars do I have"),
    (
        r".*(?:有什么|有啥|有哪些|有几个|有多少|看一下|看看|查看|查询|查一下|查查|查|显示|列出|列一下|告诉我|说说).*",
        _asked("what's on my calendar {when}"),
    ),
    (
        r".*(?:有|还有)(?:没有)?(?:事情?|会议?|安排|日程|活动|别的)(?:吗|么|没有?)?",
        _asked("what's on my calendar {when}"),
    ),
    (
        r"(?:.*(?:日程|行程)|.*的安排|.*安排(?=怎么样|呢|如何|是什么|是啥))(?:怎么样|呢|如何|是什么|是啥)?",
        _asked("what's on my calendar {when}"),
    ),
)
