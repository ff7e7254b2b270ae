"""The table of intents: the tool that serves each, what is asked for if it is missing, how people say it in English and
in Chinese, how a clause is read, and examples, which the tests run. A pattern is of a whole clause without politeness.
The first row that matches a clause and makes something of it counts; without any, the planner asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assent.assistant.planner.dates import lengths
from assent.assistant.planner.goals import Goal, Remark, Unclear
from assent.assistant.planner.intents import changes, creates, lookups
from assent.assistant.planner.intents.slots import Clause
from assent.assistant.planner.intents.words import verb
from assent.assistant.planner.replies import say
from assent.assistant.planner.tools import Role

Reads = Callable[[Clause], Sequence[Goal]]


@dataclass(frozen=True, slots=True)
class Intent:
    name: str
    tool: Role | None
    needs: str
    says: tuple[re.Pattern[str], ...]
    reads: Reads
    examples: tuple[str, ...]

    def goals(self, text: str, clause: Callable[[re.Match[str]], Clause]) -> Sequence[Goal]:
        matches = (pattern.fullmatch(text) for pattern in self.says)
        return next((goals for match in matches if match and (goals := self.reads(clause(match)))), ())


def patterns(*texts: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(rf"\s*(?:{text})\s*[.!?。！？~]*\s*", re.IGNORECASE) for text in texts)


def _row(name: str, tool: Role | None, needs: str, says: tuple[str, ...], reads: Reads, *examples: str) -> Intent:
    return Intent(name, tool, needs, patterns(*says), reads, examples)


def _remark(key: str) -> Reads:
    return lambda said: [Remark(say(key, said=said.shown))]


def _ask(key: str) -> Reads:
    return lambda said: [Unclear(say(key, said=said.shown[:200]))]


_REF, _NEW, _LENGTH = r"(?P<ref>.+?)", r"(?P<new>.+?)", rf"(?P<length>{lengths.LENGTH})"
_LONGER = rf"(?P<verb>{verb('length')})"
_EVENTS = r"(?:calendar|agenda|schedule|diary|events?|meetings?|appointments?)"
_FREE_TIME = (
    r"(?:(?:free|spare|open|empty)\s+(?:time|slots?|hours?|half\s+hour|minutes?|moments?|mornings?|afternoons?)"
    r"|gaps?|slots?|openings?)"
)
_HELLO = (
    r"(?:hi|hello|hey|good\s+(?:morning|afternoon|evening|day)|help|what\s+can\s+you\s+do|who\s+are\s+you"
    r"|what\s+are\s+you|how\s+are\s+you)(?:\s+(?:there|assistant|all|today|doing|for\s+me))*"
)
_THANKS = (
    r"(?:thanks?|thank\s+you|thx|cheers|great|ok(?:ay)?|cool|perfect|bye|goodbye|yes|sure|nice"
    r"|that['’]?s\s+(?:great|perfect|fine|all))(?:\s+(?:you|a\s+lot|so\s+much|very\s+much|bye|please))*"
)
_THE = r"(?:把|将)?(?P<ref>.+?)"
_LONG = r"\s*for\s(?P<length>[0-9]+\sminutes)"
_LATER = r"(?:往后)?(?:推迟|延后|延迟|推后|后推|延期|往后推|往后延|顺延)"
_EARLIER = r"(?:提前|往前移|往前提|提早)"
_TO = r"(?:改期?(?:到|成|为|在|至)|挪到|移到|调到|调整到|调整为|换到|换成|推迟到|延后到|延到|延期到|提前到|安排到|放到)"
_SHOW = r"有什么|有啥|有哪些|有几个|有多少|看一下|看看|查看|查询|查一下|查查|查|显示|列出|列一下|告诉我|说说"

INTENTS = (
    _row("greeting", None, "",
         (rf"{_HELLO}(?:[\s,!.?]+{_HELLO})*",
          r"(?:你好|您好|嗨|哈喽|早上好|早安|早|上午好|下午好|晚上好|在吗|大家好)[\s吗呢]*",
          r"(?:你(?:能|会|可以)(?:帮我)?(?:做|干)(?:点|些)?(?:什么|啥)|你是谁|怎么用|帮助)[\s吗呢]*"),
         _remark("hello"), "hello", "good morning, how are you?", "what can you do?", "你好", "你能做什么？"),
    _row("thanks", None, "",
         (rf"{_THANKS}(?:[\s,!.]+{_THANKS})*",
          r"(?:谢谢你?|多谢|感谢|辛苦了|收到|知道了|明白了?|再见|拜拜|没问题|不错|太好了)",
          r"(?:好的?|是的?|对的?|行|可以|没错|就这个)"),
         _remark("welcome"), "thanks!", "Thank you very much", "谢谢"),
    _row("leave", None, "",
         (r"never\s?mind|forget\s+(?:it|about\s+it|that)|nothing|no(?:pe)?(?:,?\s+thanks?)?|leave\s+it",
          r"(?:算了|不用了|没事了?|不必了|当我没说|没什么|不需要了)"),
         _remark("nothing"), "never mind", "no", "算了"),
    _row("keep", None, "",
         (r"(?:do\s*n[o'’]t|don['’]?t|do\s+not|never|no\s+need|stop|not)\b.*",
          r"(?:不要|别|不用|先别|无需|不必|不许).+"),
         _remark("kept"), "don't cancel the dentist", "不要取消牙医"),
    _row("condition", None, "",
         (r"(?:.*[\s,])?(?<!tell\sme\s)(?<!check\s)(?<!see\s)(?<!know\s)(?<!wonder\s)"
          r"(?:if(?!\s+(?:possible|you\s+(?:can|could|don|please|like|would|have)|that\s+works))|unless|in\s+case|provided|assuming)\s+.+",
          r"(?:once|whenever|should\s+(?:i|we)|shall\s+(?:i|we)|may\s+i)\s+.+",
          r"(?:如果|要是|假如|万一|除非).+"),
         _ask("depends"), "if Bob agrees, book lunch tomorrow at noon", "should I schedule the demo at 3pm?",
         "如果小王同意，明天中午订午饭"),
    _row("retracted", None, "",
         (r".+[\s,;.!?–-](?:don['’]?t|do\s+not|never\s?mind|forget\s+(?:it|that)|scratch\s+that|no,?\s+wait\b.*"
          r"|leave\s+it(?:\s+.*)?|not\s+any\s?more|keep\s+it(?:\s+.*)?)",
          r".+[，,。？?\s](?:还是)?(?:算了|不要了|不用了|不必了|别了|不用|不要)(?:[，,\s].*)?"),
         _ask("unclear"), "book the dentist tomorrow at 7am, actually don't", "明天下午三点开会，算了"),
    _row("replace", None, "",
         (r"(?:cancel|delete|remove|drop)\s+.+(?:\band|\bthen|,)\s+(?:re)?(?:book|schedule|put|make|add|create)"
          r"\s+(?:it|that)\b.*",),
         _ask("replace"), "cancel the dentist and book it for Sunday at 9am"),
    _row("correct", Role.UPDATE, "event",
         (r"(?:i\s+(?:meant?|wanted|said)|(?:make|let['’]?s\s+make)\s+(?:it|that)|it['’]?s|it\s+should\s+be|should\s+be"
          rf"|rather)\s+{_NEW}(?:\s+instead)?",
          r"(?:(?:不对|不是|错了|说错了|搞错了)[，,。\s]*)?(?:应该是|我是说|我说的是|其实是|是|改成|改到|换成)(?P<new>.+)"),
         changes.correct, "sorry, I meant 5pm", "make it 5pm instead", "不对，是下午五点"),
    _row("delete", Role.DELETE, "event",
         (rf"{verb('delete')}\s+{_REF}(?:\s+(?:from|in|on|off)\s+(?:my|the)\s+calendar)?",
          rf"{_REF}\s+(?:is|was|got|has\s+been|are)\s+(?:off|cancell?ed|not\s+happening|called\s+off)",
          r"(?:i['’]?m|i\s+am|we['’]?re|we\s+are)\s+(?:not|no\s+longer)\s+(?:going\s+to|attending|coming\s+to)\s+"
          r"(?P<ref>(?!be\b).+)",
          r"take\s+(?P<ref>.+?)\s+(?:off|out\s+of|from)\s+(?:my|the)\s+(?:calendar|diary|agenda)",
          rf"(?:i|we)\s+no\s+longer\s+need\s+{_REF}",
          r"(?:取消|删除|删掉|取消掉)(?:它|那个|这个)?",
          r"(?:取消|删除|删掉|去掉|移除|撤销|撤掉)掉?(?P<ref>.+)",
          rf"{_THE}(?:都|给)?(?:取消|删除|删掉|去掉|撤销|删)掉?",
          r"(?P<ref>.+?)(?:不开|不去|不上|不参加)",
          r"(?P<when>.*?)(?:不去|不参加|不上)(?P<what>.+)"),
         changes.delete, "cancel the dentist", "Gym at 6pm is off", "delete my haircut on Saturday from my calendar",
         "取消明天的牙医", "今晚不去健身了"),
    _row("invite", Role.UPDATE, "event",
         (rf"(?:invite|include)\s+(?P<who>.+?)\s+(?:to|for|in)\s+{_REF}",
          r"add\s+(?P<who>(?-i:[A-ZÀ-Þ]).+?|\S+@\S+)\s+to\s+(?P<ref>(?:the|my|our|tomorrow['’]?s)\s+"
          r"(?!(?:\w+\s+)?calendar\b).+?)",
          r"(?:邀请|叫上|拉上|加上|请|让)(?P<who>.+?)(?:来|去|也)*(?:参加|加入|出席)(?P<ref>.+)",
          r"(?P<ref>.+?)(?:加上|叫上|邀请)(?P<who>.+)"),
         changes.invite, "invite Dana to the dentist", "邀请小张参加牙医"),
    _row("rename", Role.UPDATE, "event",
         (rf"{verb('rename')}\s+{_REF}\s+(?:to|as|into)\s+{_NEW}",
          rf"change\s+the\s+(?:name|title)\s+of\s+{_REF}\s+to\s+{_NEW}",
          rf"{_THE}(?:的(?:名字|名称|标题))?(?:改名|重命名|更名|改叫|(?<=名字)改|(?<=名称)改|(?<=标题)改)(?:为|成|叫)?"
          r"(?P<new>.+)"),
         changes.rename, "rename the dentist to Doctor", "把牙医改名为医生"),
    _row("relocate", Role.UPDATE, "event",
         (rf"(?:change|move|set)\s+the\s+(?:location|place|room|venue)\s+of\s+{_REF}\s+to\s+{_NEW}",
          rf"{_THE}的?(?:地点|位置|地方)(?:改|换|设|定|设置|更改)(?:为|成|到|在)?(?P<new>.+)"),
         changes.relocate, "set the location of the dentist to Room 12", "牙医的地点改为三号楼"),
    _row("stretch", Role.UPDATE, "event",
         (rf"{_LONGER}\s+{_REF}\s+by\s+{_LENGTH}", rf"make\s+{_REF}\s+{_LENGTH}\s+(?P<verb>longer|shorter)",
          rf"(?P<verb>add)\s+{_LENGTH}\s+to\s+{_REF}",
          rf"{_THE}(?P<verb>延长|加长|缩短|减少){_LONG}"),
         changes.stretch, "extend the dentist by 30 minutes", "make the dentist 15 minutes longer", "把牙医延长半小时"),
    _row("length", Role.UPDATE, "event",
         (rf"{_LONGER}\s+{_REF}\s+to\s+{_LENGTH}", rf"make\s+{_REF}\s+(?:last\s+)?{_LENGTH}(?:\s+long)?",
          rf"{_REF}\s+(?:should|must|has\s+to|needs\s+to)\s+(?:last|take|be)\s+{_LENGTH}(?:\s+long)?",
          rf"{_THE}(?:延长|加长|缩短|减少)(?:到|至|为){_LONG}"),
         changes.lengthen, "make the dentist two hours long", "牙医延长到两个小时"),
    _row("until", Role.UPDATE, "event", (rf"{_LONGER}\s+{_REF}\s+(?:to|until|till)\s+{_NEW}",), changes.until,
         "extend the dentist until 17:00"),
    _row("longer", Role.UPDATE, "event, length",
         (rf"{_LONGER}\s+{_REF}", rf"make\s+{_REF}\s+(?P<verb>longer|shorter)"),
         changes.unsaid_length, "make the dentist longer"),
    _row("shift", Role.UPDATE, "event",
         (rf"(?P<verb>{verb('move')}|make|start)\s+(?:(?P<early>back|forward|up|out)\s+)?{_REF}\s+"
          rf"(?:(?P<way>back|forward|up|out|earlier|later)\s+)?(?:by\s+)?{_LENGTH}"
          r"(?:\s+(?P<late>earlier|later|back|forward|ahead))?",
          rf"{_THE}(?:(?P<later>{_LATER})|(?P<sooner>{_EARLIER}))(?:了|吧)?{_LONG}"),
         changes.shift, "push the dentist back by half an hour", "把牙医推迟半小时", "牙医提前15分钟"),
    _row("move", Role.UPDATE, "event, start",
         (rf"(?:{verb('move', 'rename')}|make(?=.*\b(?:longer|shorter|long)\b))\b.*",),
         changes.move, "move the dentist to 4pm", "reschedule the dentist to Sunday, same time"),
    _row("move", Role.UPDATE, "event, start",
         (rf"{_THE}(?:{_TO}|{_LATER}到?|{_EARLIER}到?)(?P<new>.+)",
          rf"{_THE}(?:推迟|延后|延期|改期|提前|挪一下|改一下|改个?时间|换个?时间)"),
         changes.retime_or_ask, "把牙医改到下午四点", "把牙医改个时间"),
    _row("moved", Role.UPDATE, "event",
         (rf"(?:do|have|hold|start|make)\s+{_REF}\s+(?=at\b|on\b){_NEW}\s+(?:instead|rather)(?:\s+(?:of|than)\s+.+)?",
          rf"(?:do(?=\s+(?:the|my|our)\b)|(?:i|we)(?:['’]d|\s+would)\s+rather\s+(?:have|do))\s+{_REF}\s+(?=at\b|on\b){_NEW}",
          rf"(?:can|could)\s+{_REF}\s+(?:start|begin|be)\s+(?=at\b|on\b){_NEW}\s+(?:instead|rather)(?:\s+(?:of|than)\s+.+)?",
          rf"{_REF}\s+(?:has|have|is|was|got)\s+(?:been\s+)?(?:moved|rescheduled|pushed|postponed)\s+to\s+{_NEW}"),
         changes.retime, "could we do the dentist at 3pm instead of 2pm?", "the dentist has moved to Sunday"),
    _row("book a room", Role.ROOM, "start",
         (r".*\b(?P<room>(?:book|reserve|get|need|find|schedule)\s+(?:me\s+|us\s+)?(?:an?\s+|the\s+)?"
          r"(?:meeting\s+|conference\s+)?room)\b.*",
          r".*(?:订|定|预约|安排|要|借|找|约|留).*会议室.*"),
         creates.booking, "book a room tomorrow at 3pm", "reserve a meeting room for four people tomorrow at 3pm",
         "预订一个明天下午两点的会议室，6个人"),
    _row("find a time", Role.EVENTS, "slot",
         (rf"(?P<find>find)\s+(?:me\s+|us\s+)?(?:an?\s+|some\s+|any\s+)?(?:{lengths.LENGTH}\s+)?"
          rf"(?:(?:{_FREE_TIME}|time)\b.*|(?<=\s)(?:for|with|to|on|this|next|tomorrow|today)\b.*)",
          r"(?P<find>(?:when|what\s+time)\s+can\s+(?:i|we)\s+(?:fit\s+in|meet|see|have)"
          r"|what['’]?s\s+the\s+earliest\s+(?:i|we)\s+(?:can|could)\s+(?:meet|see))\b.*",
          r".*(?P<find>找|约|看看|安排|挑).*(?:空闲?时间|空档|空闲|的?空|都有空的?时间|时间)"),
         lookups.slots, "find 30 minutes for Bob and me this week",
         "when can I fit in an hour of writing tomorrow afternoon?", "这周帮我和小王找个30分钟的空"),
    _row("free times", Role.EVENTS, "",
         (rf"(?:what|which|do|have|are|is|any|when|show|list|where)\b.*\b{_FREE_TIME}\b.*|any\s+{_FREE_TIME}\b.*",
          r"(?:when|what\s+time)\s+(?:am\s+i|are\s+we)\s+(?:free|available)\b.*",
          r".*(?:什么时候|几点|哪天|哪个时间|何时).*(?:有空|空闲|有时间|方便).*",
          r".*有(?:没有|哪些|什么)?(?:空闲|空档|空闲时间|空余时间).*"),
         lookups.slots, "any gaps tomorrow?", "when am I free on Friday?", "明天下午什么时候有空？"),
    _row("free", Role.EVENTS, "",
         (r"(?:am\s+i|are\s+we|is\s+my\s+calendar|do\s+(?:i|we)\s+have\s+time)\b(?P<before>.*?)"
          r"\b(?:free|busy|available|time)\b(?P<rest>.*)",
          r".*(?:有空|有时间|空闲|忙不忙|忙|方便)(?:吗|么|没有?|不)?"),
         lookups.free, "am I free tomorrow at 3pm?", "明天上午九点我有空吗？"),
    _row("when", Role.EVENTS, "",
         (r"(?:when(?:['’]?s|\s+is|\s+are|\s+do\s+(?:i|we)\s+have|\s+does)|what\s+time(?:['’]?s|\s+is))\s+(?P<ref>.+?)",
          r"when\s+(?:do|am|will)\s+(?:i|we)\s+(?:meet|meeting|see|seeing)\s+(?P<ref>.+?)",
          r"(?:what\s+time|(?:which|what)\s+day|when)\s+(?:does|is|will)\s+(?P<ref>.+?)(?:\s+(?:start|begin|end|be))?",
          r"how\s+long\s+(?:does|will)\s+(?P<ref>.+?)\s+(?:last|be)",
          r"(?:(?:tell|check|see|know)\s+(?:me\s+)?(?:if|whether)|is|are)\s+(?P<ref>(?:the|my)\s+.+?)\s+(?:is\s+)?"
          r"(?=(?:on|at)\b).+\bor\b.+",
          r"(?P<ref>.+?)(?:是|在|定在|安排在)(?:几点|什么时候|哪天|何时|哪一天|周几)(?:开始|开)?",
          r"(?:什么时候|几点|何时|哪天)(?P<ref>.+)",
          r"(?P<ref>.+?)(?:几点|什么时候|何时)(?:开始|开|举行)?"),
         lookups.when_is, "when is the dentist?", "what time is the dentist?", "牙医是几点？"),
    _row("list calendars", Role.CALENDARS, "",
         (r".*\b(?:which|what|list|show)\b.*\bcalendars\b.*", r".*(?:哪些|什么|几个)日历.*"),
         lookups.named_calendars, "which calendars do I have?", "我有哪些日历"),
    _row("list", Role.EVENTS, "",
         (rf"(?:what(?:['’]?s|\s+is|\s+are|\s+do|\s+have|\s+does)?|how\s+many)\b.*"
          rf"\b(?:{_EVENTS}|on|up|next|planned|coming|i\s+have|happening|today|tomorrow)\b.*",
          r"what\s+(?:does|do)\s+.*\blook\s+like\b.*",
          rf"(?:show|list|tell|give|read|check)\b.*\b(?:{_EVENTS}|\w*day|week|weekend|month|tomorrow)\b.*",
          rf"(?:do|have)\s+(?:i|we)\s+(?:have|got)\b.*|(?:any|anything)\b.*\b(?:on|{_EVENTS}|planned)\b.*",
          r"(?:is\s+(?:there\s+)?(?:anything|something)|are\s+there\s+any\s+(?:events|meetings|appointments))\b.*",
          r"(?:who\s+am\s+i|who\s+are\s+we)\s+(?:meeting|seeing|having)\b.*",
          r"how\s+busy\b.*|how\s+does\s+my\s+\w+\s+look\b.*|(?:my\s+)?(?:calendar|agenda)\b.*|my\s+schedule\b.*",
          rf".*(?:{_SHOW}).*",
          r".*(?:有|还有)(?:没有)?(?:事情?|会议?|安排|日程|活动|别的)(?:吗|么|没有?)?",
          r"(?:.*(?:日程|行程)|.*的安排|.*安排(?=怎么样|呢|如何|是什么|是啥))(?:怎么样|呢|如何|是什么|是啥)?"),
         lookups.listing, "what's on my calendar tomorrow?", "Is there anything after 5pm today?",
         "list my events this weekend", "明天有什么安排？", "周六有事吗"),
    _row("directions", Role.DIRECTIONS, "origin, destination",
         (r"(?:(?:give|show|get|find|tell)\s+(?:me\s+)?)?(?:the\s+)?(?:directions|route|way|navigate|take\s+me"
          r"|how\s+(?:do|can|would)\s+(?:i|we)\s+(?:get|go|walk|drive|cycle|travel)|how\s+to\s+(?:get|go|walk|drive)"
          r"|how\s+(?:far|long)\s+(?:is|does|to)\b(?:\s+it)?(?:\s+(?:the\s+)?(?:way|walk|drive|take))?(?:\s+take)?)"
          r"\b(?P<rest>.*)",),
         lookups.way, "directions from the station to the harbour", "how do I get to the museum from the station?"),
    _row("places", Role.PLACES, "query",
         (r"(?:(?:i['’]?m|i\s+am|we['’]?re)\s+looking\s+for|(?:find|search(?:\s+for)?|look\s+(?:up|for)|show|suggest"
          r"|recommend)(?:\s+(?:me|us))?|where(?:['’]?s|\s+is|\s+are|\s+can\s+(?:i|we)\s+(?:find|get|eat|drink|buy))"
          r"|is\s+there\s+an?|are\s+there\s+any)\s+(?P<query>.+)",),
         lookups.places, "find a café near the station", "where is the nearest pharmacy?"),
    _row("create", Role.CREATE, "name, start", (rf"{verb('create')}\b.*",), creates.events,
         "book a meeting with Priya tomorrow at 2pm", "remind me to call mum at 6pm", "schedule something"),
    _row("create", Role.CREATE, "name, start", (r".*[\u4e00-\u9fff].*",), creates.chinese_events,
         "帮我安排一个明天上午十点的会议", "明天下午三点开会"),
    _row("appointment", Role.CREATE, "name, start", (r".+",), creates.appointment,
         "lunch with mum on Sunday at 1pm", "call Ana tomorrow at 5pm"),
)  # fmt: skip
WHOLE = ("greeting", "thanks", "condition", "retracted", "replace")
"""Intents that a whole request is tried for, before it is split into clauses."""

GIVES_UP = (
    *next(intent.says for intent in INTENTS if intent.name == "leave"),
    *patterns(r"cancel(?:\s+(?:it|that))?|stop|skip\s+(?:it|that)|abort|drop\s+it", r"取消|删除|删掉|不要了?"),
)
"""Answers that end the request."""
