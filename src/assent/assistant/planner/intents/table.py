"""The table of intents: the tool that serves each, what is asked for if it is missing, how people say it, how a clause
is read, and examples, which the tests run. The first row that matches a clause and makes something of it counts;
without any, the planner asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assent.assistant.planner.goals import Goal, Remark, Unclear
from assent.assistant.planner.intents import changes, creates, lookups, patterns
from assent.assistant.planner.intents.clauses import Clause
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


def _row(name: str, tool: Role | None, needs: str, says: tuple[str, ...], reads: Reads, *examples: str) -> Intent:
    compiled = tuple(re.compile(rf"\s*(?:{pattern})\s*[.!?]*\s*", re.IGNORECASE) for pattern in says)
    return Intent(name, tool, needs, compiled, reads, examples)


def _remark(key: str) -> Reads:
    return lambda said: [Remark(say(key, said=said.quotes.show(said.text).removeprefix("don't touch ")))]


def _ask(key: str) -> Reads:
    return lambda said: [Unclear(say(key, said=said.quotes.show(said.text)[:200]))]


INTENTS = (
    _row("greeting", None, "", patterns.GREETING, _remark("hello"),
         "hello", "good morning, how are you?", "what can you do?", "你好", "你能做什么？"),
    _row("thanks", None, "", patterns.THANKS, _remark("welcome"), "thanks!", "Thank you very much", "谢谢"),
    _row("leave", None, "", patterns.LEAVE, _remark("nothing"), "never mind", "no", "算了"),
    _row("keep", None, "", patterns.KEEP, _remark("kept"),
         "don't cancel the dentist", "不要取消牙医"),
    _row("condition", None, "", patterns.CONDITION,
         _ask("depends"),
         "if Bob agrees, book lunch tomorrow at noon", "should I schedule the demo at 3pm?",
         "如果小王同意，明天中午订午饭"),
    _row("replace", None, "", patterns.REPLACE, _ask("replace"),
         "cancel the dentist and book it for Sunday at 9am"),
    _row("correct", Role.UPDATE, "event", patterns.CORRECT, changes.correct,
         "sorry, I meant 5pm", "make it 5pm instead", "不对，是下午五点"),
    _row("delete", Role.DELETE, "event", patterns.DELETE, changes.delete,
         "cancel the dentist", "Gym at 6pm is off", "delete my haircut on Saturday from my calendar", "取消明天的牙医",
         "今晚不去健身了"),
    _row("invite", Role.UPDATE, "event", patterns.INVITE, changes.invite,
         "invite Dana to the dentist", "邀请小张参加牙医"),
    _row("rename", Role.UPDATE, "event", patterns.RENAME, changes.rename,
         "rename the dentist to Doctor", "把牙医改名为医生"),
    _row("relocate", Role.UPDATE, "event", patterns.RELOCATE, changes.relocate,
         "set the location of the dentist to Room 12", "牙医的地点改为三号楼"),
    _row("stretch", Role.UPDATE, "event", patterns.STRETCH, changes.stretch,
         "extend the dentist by 30 minutes", "make the dentist 15 minutes longer", "把牙医延长半小时"),
    _row("length", Role.UPDATE, "event", patterns.LENGTH, changes.lengthen,
         "make the dentist two hours long", "牙医延长到两个小时"),
    _row("until", Role.UPDATE, "event", patterns.UNTIL, changes.until, "extend the dentist until 17:00"),
    _row("longer", Role.UPDATE, "event, length", patterns.LONGER, changes.unsaid_length, "make the dentist longer"),
    _row("shift", Role.UPDATE, "event", patterns.SHIFT, changes.shift,
         "push the dentist back by half an hour", "把牙医推迟半小时", "牙医提前15分钟"),
    _row("move", Role.UPDATE, "event, start", patterns.MOVE, changes.move,
         "move the dentist to 4pm", "reschedule the dentist to Sunday, same time", "把牙医改到下午四点"),
    _row("moved", Role.UPDATE, "event", patterns.MOVED, changes.retime,
         "could we do the dentist at 3pm instead of 2pm?", "the dentist has moved to Sunday"),
    _row("book a room", Role.ROOM, "start", patterns.BOOK_A_ROOM, creates.booking,
         "book a room tomorrow at 3pm", "reserve a meeting room for four people tomorrow at 3pm",
         "预订一个明天下午两点的会议室，6个人"),
    _row("find a time", Role.EVENTS, "slot", patterns.FIND_A_TIME, lookups.slots,
         "find 30 minutes for Bob and me this week", "when can I fit in an hour of writing tomorrow afternoon?",
         "这周帮我和小王找个30分钟的空"),
    _row("free times", Role.EVENTS, "", patterns.FREE_TIMES, lookups.slots,
         "any gaps tomorrow?", "when am I free on Friday?", "明天下午什么时候有空？"),
    _row("free", Role.EVENTS, "", patterns.FREE, lookups.free, "am I free tomorrow at 3pm?", "明天上午九点我有空吗？"),
    _row("when", Role.EVENTS, "", patterns.WHEN, lookups.when_is,
         "when is the dentist?", "what time is the dentist?", "牙医是几点？"),
    _row("list calendars", Role.CALENDARS, "", patterns.CALENDARS, lookups.named_calendars,
         "which calendars do I have?", "我有哪些日历"),
    _row("list", Role.EVENTS, "", patterns.LIST, lookups.listing,
         "what's on my calendar tomorrow?", "Is there anything after 5pm today?", "list my events this weekend",
         "明天有什么安排？", "周六有事吗"),
    _row("directions", Role.DIRECTIONS, "origin, destination", patterns.DIRECTIONS, lookups.way,
         "directions from the station to the harbour", "how do I get to the museum from the station?"),
    _row("places", Role.PLACES, "query", patterns.PLACES, lookups.places,
         "find a café near the station", "where is the nearest pharmacy?"),
    _row("create", Role.CREATE, "name, start", patterns.CREATE, creates.events,
         "book a meeting with Priya tomorrow at 2pm", "remind me to call mum at 6pm", "schedule something",
         "帮我安排一个明天上午十点的会议", "明天下午三点开会"),
    _row("appointment", Role.CREATE, "name, start", patterns.APPOINTMENT, creates.appointment,
         "lunch with mum on Sunday at 1pm", "call Ana tomorrow at 5pm"),
)  # fmt: skip
