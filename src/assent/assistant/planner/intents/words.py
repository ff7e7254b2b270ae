"""The words that are known: verbs by what they ask for, and kinds of events, in English and in Chinese."""

from __future__ import annotations

import re
from difflib import get_close_matches

_EVENT = r"(?:event|meeting|appointment)"
NOUNS = (
    r"1[:\-]1|1-on-1|one[- ]on[- ]one|all[- ]hands|anniversary|appointment|appt|audit|bbq|barbecue"
    r"|birthday|breakfast|briefing|brunch|call|catch[- ]?up|ceremony|chat|check[- ]?in|check[- ]?up|cinema"
    r"|class|coffee|concert|conference|course|debrief|demo|dentist|dinner|discussion|doctor|drinks|event"
    r"|exam|exhibition|film|flight|football|game|gym|haircut|handover|hike|interview|kick[- ]?off|lecture"
    r"|lesson|lunch|match|massage|meal|meet[- ]?up|meeting|movie|offsite|party|phone\s+call|physio|picnic"
    r"|pilates|planning|practice|presentation|rehearsal|reservation|retro|retrospective|review|run|seminar"
    r"|session|show|sprint|stand[- ]?up|supper|swim|swimming|sync|talk|tea|tennis|test|therapy|theat(?:re"
    r"|er)|training|vet|video\s+call|viewing|visit|walk|webinar|wedding|workout|workshop|yoga|zoom"
)
NOUNS_ZH = (
    r"会议|会(?=$|[，,\s])|例会|面试|聚餐|聚会|吃饭|午饭|晚饭|早饭|午餐|晚餐|早餐|牙医|医生|体检|看病|看牙|健身|跑步|游泳|瑜伽|课|培训|讲座|电话|通话|讨论|评审|汇报|复盘"
    r"|航班|飞机|火车|高铁|电影|看电影|约会|见面|会面|拜访|生日|婚礼|派对|周报|演示|演出|音乐会|理发|剪头发|喝咖啡|咖啡|喝茶|下午茶|打球|篮球|足球|羽毛球|网球|考试|出差"
    r"|银行|医院|接孩子|接人|逛街|购物|搬家|聊|谈|开会|活动|值班|团建|答辩|路演|签约|复诊|打疫苗|家长会"
)

VERBS: dict[str, dict[str, str]] = {
    "create": {
        **dict.fromkeys(
            ("schedule", "create", "pencil in", "add", "plan", "arrange", "organise", "organize", "fix up"), ""
        ),
        **dict.fromkeys(("set up", "put", "block", "block off", "block out", "enter", "reserve"), ""),
        "book": r"(?!\s+club)(?:\s+(?:me|us)\s+in(?:\s+for)?)?",
        "make": r"(?!\s+(?:sure|it|that|do)\b)",
        "set": r"(?!\s+(?:the|my)\b)",
        "remind me": r"(?:\s+(?:to|of|about))?(?!\s+(?:what|when|where|who|why|how|if|whether|which)\b)",
        "have": rf"(?=\s+(?:an?\b|another|{NOUNS})\b(?!\s+(?:nice|great|good|lovely|safe|fun|wonderful)\b))",
        "new": rf"(?=\s+{_EVENT})",
        **dict.fromkeys(
            ("i", "we"), rf"(?:\s+have(?:\s+got)?|['’]ve(?:\s+got)?)(?=\s+(?:an?|another|my|our|the|{NOUNS})\b)"
        ),
    },
    "move": {
        **dict.fromkeys(("move", "reschedule", "shift", "postpone", "push", "delay", "bring", "change", "put off"), ""),
        "put": r"(?=\s+.+\s(?:back|forward)\b)",
        **dict.fromkeys(("swap", "switch", "bump"), r"(?=\s+.+\sto\b)"),
        "set": r"(?=\s+(?:the|my)\b.*\bto\b)",
    },
    "delete": dict.fromkeys(
        ("cancel", "delete", "remove", "unschedule", "drop", "scrap", "erase", "clear", "call off", "get rid of"), ""
    ),
    "length": dict.fromkeys(("extend", "lengthen", "prolong", "shorten"), ""),
    "rename": dict.fromkeys(("rename", "retitle"), ""),
    "invite": {"invite": ""},
    "look": dict.fromkeys(
        (
            *("find", "search", "look up", "show me", "list", "tell me", "give me", "what['’]?s", "what is", "what do"),
            *("where['’]?s", "where is", "when is", "how do", "how far", "directions", "am i"),
        ),
        "",
    ),
}
"""Each verb with what has to follow it. The Chinese verbs stand in the patterns of the table."""

LOOSE = ("put", "make", "set", "have", "plan", "enter", "i", "we")
"""Verbs of everyday life: "put the kettle on" is no event."""


def verb(*kinds: str) -> str:
    """A pattern for the verbs of these kinds, the longest first."""
    known = [(word, after) for kind in kinds for word, after in VERBS[kind].items()]
    known.sort(key=lambda entry: -len(entry[0]))
    return "(?:" + "|".join(word.replace(" ", r"\s+") + after for word, after in known) + ")"


_SPELLED = [word for kind in VERBS if kind != "look" for word in VERBS[kind] if len(word) > 3 and word not in LOOSE]
_ALIKE = 0.75
_PARTICLES = r"(?:an?|the|in|on|up|out|off|back|for|to|with|at|of|from|by)\b"
_ACTIVITIES = r"(?:meet|visit|phone|call|pick\s+up|drop\s+off)\s+(?!me\b|you\b|it\b|off\b)"
_APPOINTMENT = re.compile(
    rf"(?:{_ACTIVITIES}.+|(?:(?!{_PARTICLES})[\w&/.-]+(?:['’]s?)?\s+){{0,3}}?(?:{NOUNS})s?"
    r"(?:\s+(?:(?:with|at|in|for|of|about|to|and|on|re)\b|w/|&).*)?)",
    re.IGNORECASE,
)
_SAYS_SOMETHING = re.compile(
    r"\b(?:is|isn['’]?t|was|wasn['’]?t|were|are|am|be|been|will|won['’]?t|would|can(?:['’]?t|not)?|could|should|must|has|have|had"
    r"|does|did|do|don['’]?t|not|never|off|no|cancel\w*|moved?|leaves?|starts?|hates?|loves?|likes?|only|but|or|meant|mean"
    r"|i|you|he|she|they|who|why|what|which|how|if|said|says|thinks?|was|because|instead|swap|free|busy|every|each)\b"
    r"|->|=>|→|[?<>=]",
    re.IGNORECASE,
)


def misspelt_verb(text: str) -> str | None:
    """The verb that the first word is nearly."""
    word = text.split(" ", 1)[0].lower()
    if any(word in words for words in VERBS.values()) or re.fullmatch(rf"(?:{NOUNS})s?", word):
        return None
    return next(iter(get_close_matches(word, _SPELLED, 1, _ALIKE)), None)


def is_appointment(name: str) -> bool:
    """Whether it names a kind of event that is known, and says nothing about it."""
    return bool(_APPOINTMENT.fullmatch(name)) and not _SAYS_SOMETHING.search(name) and not misspelt_verb(name)
