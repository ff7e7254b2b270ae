"""How people say each intent: patterns of a whole clause, without the politeness around it."""

from __future__ import annotations

from assent.assistant.planner.dates import lengths
from assent.assistant.planner.intents import changes, creates

_LENGTH = rf"(?P<length>{lengths.LENGTH})"
_REF, _NEW = r"(?P<ref>.+?)", r"(?P<new>.+?)"
_LONGER = r"(?P<verb>extend|lengthen|prolong|shorten)"
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

GREETING = (rf"{_HELLO}(?:[\s,!.?]+{_HELLO})*",)
THANKS = (rf"{_THANKS}(?:[\s,!.]+{_THANKS})*",)
LEAVE = (r"never\s?mind|forget\s+(?:it|about\s+it|that)|nothing|no(?:pe)?|leave\s+it",)
KEEP = (r"(?:do\s*n[o'’]t|don['’]?t|do\s+not|never|no\s+need|stop|not)\b.*",)
CONDITION = (
    r"(?:.*[\s,])?(?<!tell\sme\s)(?<!check\s)(?<!see\s)(?<!know\s)(?<!wonder\s)"
    r"(?:if(?!\s+(?:possible|you|that\s+works))|unless|in\s+case|provided|assuming)\s+.+",
    r"(?:once|whenever|should\s+(?:i|we)|shall\s+(?:i|we)|may\s+i)\s+.+",
)
REPLACE = (
    r"(?:cancel|delete|remove|drop)\s+.+(?:\band|\bthen|,)\s+(?:re)?(?:book|schedule|put|make|add|create)\s+(?:it|that)\b.*",
)
CORRECT = (
    rf"(?:i\s+(?:meant?|wanted|said)|(?:make|let['’]?s\s+make)\s+(?:it|that)|it['’]?s|it\s+should\s+be|should\s+be"
    rf"|rather)\s+{_NEW}(?:\s+instead)?",
)
DELETE = (
    r"(?:cancel|delete|remove|drop|scrap|erase|clear|call\s+off|get\s+rid\s+of)\s+(?P<ref>.+?)"
    r"(?:\s+(?:from|in|on|off)\s+(?:my|the)\s+calendar)?",
    r"(?P<ref>.+?)\s+(?:is|was|got|has\s+been|are)\s+(?:off|cancell?ed|not\s+happening|called\s+off)",
    r"(?:i['’]?m|i\s+am|we['’]?re|we\s+are)\s+(?:not|no\s+longer)\s+(?:going\s+to|attending|coming\s+to)\s+"
    r"(?P<ref>(?!be\b).+)",
)
INVITE = (
    rf"invite\s+(?P<who>.+?)\s+(?:to|for)\s+{_REF}",
    r"add\s+(?P<who>(?-i:[A-ZÀ-Þ]).+?|\S+@\S+)\s+to\s+(?P<ref>(?:the|my|our|tomorrow['’]?s)\s+"
    r"(?!(?:\w+\s+)?calendar\b).+?)",
)
RENAME = (
    rf"(?:rename|retitle)\s+{_REF}\s+(?:to|as|into)\s+{_NEW}",
    rf"change\s+the\s+(?:name|title)\s+of\s+{_REF}\s+to\s+{_NEW}",
)
RELOCATE = (rf"(?:change|move|set)\s+the\s+(?:location|place|room|venue)\s+of\s+{_REF}\s+to\s+{_NEW}",)
STRETCH = (rf"{_LONGER}\s+{_REF}\s+by\s+{_LENGTH}", rf"make\s+{_REF}\s+{_LENGTH}\s+(?P<verb>longer|shorter)")
LENGTH = (rf"{_LONGER}\s+{_REF}\s+to\s+{_LENGTH}", rf"make\s+{_REF}\s+(?:last\s+)?{_LENGTH}(?:\s+long)?")
UNTIL = (rf"{_LONGER}\s+{_REF}\s+(?:to|until|till)\s+{_NEW}",)
LONGER = (rf"{_LONGER}\s+{_REF}", rf"make\s+{_REF}\s+(?P<verb>longer|shorter)")
SHIFT = (
    rf"(?P<verb>{changes.MOVE}|make)\s+(?:(?P<early>back|forward|up|out)\s+)?{_REF}\s+"
    rf"(?:(?P<way>back|forward|up|out|earlier|later)\s+)?(?:by\s+)?{_LENGTH}"
    r"(?:\s+(?P<late>earlier|later|back|forward|ahead))?",
)
MOVE = (rf"(?:{changes.MOVE}|rename|retitle|make(?=.*\b(?:longer|shorter|long)\b))\b.*",)
MOVED = (
    rf"(?:do|have|hold|start|make)\s+{_REF}\s+(?=at\b|on\b){_NEW}\s+(?:instead|rather)(?:\s+(?:of|than)\s+.+)?",
    rf"{_REF}\s+(?:has|have|is|was|got)\s+(?:been\s+)?(?:moved|rescheduled|pushed|postponed)\s+to\s+{_NEW}",
)
BOOK_A_ROOM = (
    r".*\b(?P<room>(?:book|reserve|get|need|find|schedule)\s+(?:me\s+|us\s+)?(?:an?\s+|the\s+)?"
    r"(?:meeting\s+|conference\s+)?room)\b.*",
)
FIND_A_TIME = (
    rf"(?P<find>find)\s+(?:me\s+|us\s+)?(?:an?\s+|some\s+|any\s+)?(?:{lengths.LENGTH}\s+)?"
    rf"(?:(?:{_FREE_TIME}|time)\b.*|(?<=\s)(?:for|with|to|on|this|next|tomorrow|today)\b.*)",
    r"(?P<find>(?:when|what\s+time)\s+can\s+(?:i|we)\s+(?:fit\s+in|meet|see|have)"
    r"|what['’]?s\s+the\s+earliest\s+(?:i|we)\s+(?:can|could)\s+(?:meet|see))\b.*",
)
FREE_TIMES = (
    rf"(?:what|which|do|have|are|is|any|when|show|list|where)\b.*\b{_FREE_TIME}\b.*|any\s+{_FREE_TIME}\b.*",
    r"(?:when|what\s+time)\s+(?:am\s+i|are\s+we)\s+(?:free|available)\b.*",
)
FREE = (
    r"(?:am\s+i|are\s+we|is\s+my\s+calendar|do\s+(?:i|we)\s+have\s+time)\b(?P<before>.*?)"
    r"\b(?:free|busy|available|time)\b(?P<rest>.*)",
)
WHEN = (
    r"(?:when(?:['’]?s|\s+is|\s+are|\s+do\s+(?:i|we)\s+have|\s+does)|what\s+time(?:['’]?s|\s+is))\s+(?P<ref>.+?)",
    r"when\s+(?:do|am|will)\s+(?:i|we)\s+(?:meet|meeting|see|seeing)\s+(?P<ref>.+?)",
    r"(?:(?:tell|check|see|know)\s+(?:me\s+)?(?:if|whether)|is|are)\s+(?P<ref>(?:the|my)\s+.+?)\s+(?:is\s+)?"
    r"(?=(?:on|at)\b).+\bor\b.+",
)
CALENDARS = (r".*\b(?:which|what|list|show)\b.*\bcalendars\b.*",)
LIST = (
    rf"(?:what(?:['’]?s|\s+is|\s+are|\s+do|\s+have|\s+does)?|how\s+many)\b.*"
    rf"\b(?:{_EVENTS}|on|up|next|planned|coming|i\s+have|happening|today|tomorrow)\b.*",
    r"what\s+(?:does|do)\s+.*\blook\s+like\b.*",
    rf"(?:show|list|tell|give|read|check)\b.*\b(?:{_EVENTS}|day|week|weekend|month|today|tomorrow)\b.*",
    rf"(?:do|have)\s+(?:i|we)\s+(?:have|got)\b.*|(?:any|anything)\b.*\b(?:on|{_EVENTS}|planned)\b.*",
    r"(?:is\s+there\s+(?:anything|something)|are\s+there\s+any\s+(?:events|meetings|appointments))\b.*",
    r"(?:who\s+am\s+i|who\s+are\s+we)\s+(?:meeting|seeing|having)\b.*",
    r"how\s+busy\b.*|how\s+does\s+my\s+\w+\s+look\b.*|(?:my\s+)?(?:calendar|agenda)\b.*|my\s+schedule\b.*",
)
DIRECTIONS = (
    r"(?:(?:give|show|get|find|tell)\s+(?:me\s+)?)?(?:the\s+)?(?:directions|route|way|navigate|take\s+me"
    r"|how\s+(?:do|can|would)\s+(?:i|we)\s+(?:get|go|walk|drive|cycle|travel)|how\s+to\s+(?:get|go|walk|drive)"
    r"|how\s+(?:far|long)\s+(?:is|does|to)\b(?:\s+it)?(?:\s+(?:the\s+)?(?:way|walk|drive|take))?(?:\s+take)?)"
    r"\b(?P<rest>.*)",
)
PLACES = (
    r"(?:(?:i['’]?m|i\s+am|we['’]?re)\s+looking\s+for|(?:find|search(?:\s+for)?|look\s+(?:up|for)|show|suggest"
    r"|recommend)(?:\s+(?:me|us))?|where(?:['’]?s|\s+is|\s+are|\s+can\s+(?:i|we)\s+(?:find|get|eat|drink|buy))"
    r"|is\s+there\s+an?|are\s+there\s+any)\s+(?P<query>.+)",
)
CREATE = (rf"{creates.VERB}\b.*",)
APPOINTMENT = (r".+",)
