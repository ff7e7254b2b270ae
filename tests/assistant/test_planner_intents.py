"""The table of intents: every example is recognised by its own row, and leads to its tool or to a question."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from assent.assistant.planner.dates.chinese import in_english
from assent.assistant.planner.intents.requests import intents
from assent.assistant.planner.intents.table import INTENTS, Intent
from assent.assistant.planner.replies import is_chinese
from assent.assistant.planner.tools import Role
from tests.assistant.planner_talk import NOW, TOOLS, Talk, at, event, names, question, schema

MORE = {"attendees": {"type": "array", "items": {"type": "string"}}}
DELETE = schema("delete_event", "Delete an event.", ["event_id"], calendar_id={}, event_id={})
EVENTS = [event("Dentist", at(20, 8)), event("牙医", at(17, 8)), event("健身", at(16, 18))]
EVENTS += [event("Haircut", at(21, 11)), event("Gym", at(16, 18))]
ASKS = {"schedule something", "make the dentist longer"}
ASKS |= {"sorry, I meant 5pm", "make it 5pm instead", "不对，是下午五点", "把牙医改个时间"}
"""Examples in which something is missing."""
EXAMPLES = [(intent, example) for intent in INTENTS for example in intent.examples]


def tools() -> list[dict[str, Any]]:
    changed = []
    for tool in TOOLS:
        function = tool["function"]
        more = MORE if function["name"] in ("create_event", "update_event") else {}
        properties = {**function["parameters"]["properties"], **more}
        changed.append(schema(function["name"], function["description"], [], **properties))
    return [*changed, DELETE]


def talk(*events: dict[str, Any]) -> Talk:
    return Talk(events=[dict(one) for one in events or EVENTS], tools=tools())


@pytest.mark.parametrize(("intent", "example"), EXAMPLES, ids=[f"{row[0].name}: {row[1]}" for row in EXAMPLES])
def test_example_belongs_to_its_intent(intent: Intent, example: str) -> None:
    [(recognised, goals)] = intents(example, NOW)
    assert recognised is not None
    assert recognised.name == intent.name
    assert goals
    conversation = talk()
    used = {*names(conversation.say(example)), *(name for name, _ in conversation.executed)}
    if intent.tool is None:
        assert used <= {"request_clarification"}
    else:
        assert (intent.tool if example not in ASKS else Role.CLARIFY) in used


@pytest.mark.parametrize(
    "sentence",
    [
        *("mov the dentist to 4pm", "crate a meeting tomorrow at 3pm", "the meeting at 10am was awful"),
        *("Bob can only do 3pm on Tuesday", "dentist -> friday 9am", "my train leaves at 7:40 tomorrow"),
        *("sorry, I meant 5pm", "If Bob agrees, book lunch on Tuesday at 1pm", "I hate calls at 9am tomorrow"),
        *("the quarterly frobnication tomorrow at 3pm", "cancel everything tomorrow", "我讨厌明天早上九点开会"),
        *("明天下午三点天气怎么样", "周二九点还是十点开会好？"),
    ],
)
def test_text_without_a_known_verb_or_kind_of_event_is_asked_about(sentence: str) -> None:
    assert names(talk().say(sentence)) == ["request_clarification"]


def test_a_misspelt_verb_is_offered_and_a_yes_takes_it() -> None:
    conversation = talk(event("Dentist", at(20, 8)))
    assert question(conversation.say("mov the dentist to 4pm")) == "Did you mean “move the dentist to 4pm”?"
    [call] = conversation.answer("yes").tool_calls
    assert (call["name"], call["args"]["start"]) == ("update_event", "2026-11-20T16:00:00+01:00")


def test_a_correction_after_a_booking_changes_it() -> None:
    conversation = talk()
    conversation.say("book a coffee with Jo tomorrow at 4pm")
    conversation.approve()
    [call] = conversation.say("sorry, I meant 5pm").tool_calls
    assert call["name"] == "update_event"
    assert (call["args"]["event_id"], call["args"]["start"]) == ("id-coffee-with-jo", "2026-11-17T17:00:00+01:00")


def test_a_weekday_in_another_week_than_the_event_is_asked_about() -> None:
    conversation = talk(event("Review", at(26, 9)))
    asked = question(conversation.say("move the review to Friday"))
    assert "Which day do you mean: Friday 20 November or Friday 27 November?" in asked
    [call] = conversation.answer("Friday 27 November").tool_calls
    assert call["args"]["start"] == "2026-11-27T09:00:00+01:00"
    [call] = talk(event("Review", at(19, 9))).say("move the review to Friday").tool_calls
    assert call["args"]["start"] == "2026-11-20T09:00:00+01:00"


def test_deleting_names_one_event() -> None:
    [call] = talk().say("Gym at 6pm is off").tool_calls
    assert (call["name"], call["args"]) == ("delete_event", {"calendar_id": "primary", "event_id": "id-gym"})
    both = talk().say("delete the dentist and the haircut").tool_calls
    assert [call["args"]["event_id"] for call in both] == ["id-dentist", "id-haircut"]
    twice = talk(event("Standup", at(17, 9)), {**event("Standup", at(18, 9)), "event_id": "two"})
    assert "Which one do you mean" in question(twice.say("cancel the standup"))


def test_an_answer_about_another_event_does_not_change_the_first() -> None:
    conversation = talk()
    assert "To which day and time" in question(conversation.say("move the dentist"))
    [call] = conversation.answer("cancel the haircut").tool_calls
    assert (call["name"], call["args"]["event_id"]) == ("delete_event", "id-haircut")


def test_proposal_says_what_was_understood() -> None:
    assert talk().say("move the dentist to 4pm").content == (
        "Change: Dentist, Friday 20 November 8:00–8:30 → Dentist, Friday 20 November 16:00–16:30."
    )
    assert talk().say("lunch with Ann and Bob at noon").content == (
        "Create: Lunch with Ann and Bob, today 12:00–12:30 (Ann, Bob)."
    )
    assert talk().say("cancel the gym").content == "Delete: Gym, today 18:00–18:30."
    assert talk().say("取消健身").content == "删除：健身，今天 18:00–18:30。"


def test_people_are_attendees() -> None:
    [call] = talk().say("schedule a call with Ann and bob@example.com tomorrow at 4pm").tool_calls
    assert call["args"]["attendees"] == ["Ann", "bob@example.com"]


def test_an_invitation_keeps_those_who_are_invited() -> None:
    [call] = talk({**event("Dentist", at(20, 8)), "attendees": ["Ann"]}).say("invite Dana to the dentist").tool_calls
    assert call["args"]["attendees"] == ["Ann", "Dana"]


def test_equipment_without_a_field_is_a_note() -> None:
    [call] = talk().say("schedule Planning tomorrow at 3pm with a projector").tool_calls
    assert (call["args"]["name"], call["args"]["description"]) == ("Planning", "Equipment: projector")


class TestFreeTimes:
    BUSY = (event("Morning", at(17, 9), 180), event("Afternoon", at(17, 13), 240))

    def test_gaps_are_told(self) -> None:
        said = talk(*self.BUSY).say("any gaps tomorrow?").content
        assert said == "Free: tomorrow 12:00–13:00; tomorrow 17:00–18:00."

    def test_a_full_day_has_none(self) -> None:
        assert "No 2 h are free" in str(talk(*self.BUSY).say("find a free slot of 2 hours tomorrow").content) or (
            "No 2 h are free" in question(talk(*self.BUSY).say("find 2 hours for Bob and me tomorrow"))
        )

    def test_a_chosen_slot_becomes_an_event(self) -> None:
        conversation = talk(*self.BUSY)
        asked = question(conversation.say("find 30 minutes for Bob and me tomorrow"))
        assert "1. tomorrow 12:00–12:30 / 2. tomorrow 17:00–17:30. I only see your calendar." in asked
        [call] = conversation.answer("the second one").tool_calls
        assert call["args"] == {
            "start": "2026-11-17T17:00:00+01:00",
            "name": "Meeting with Bob",
            "duration_minutes": 30,
            "attendees": ["Bob"],
        }

    def test_what_is_past_today_is_not_offered(self) -> None:
        conversation = Talk(now=NOW + timedelta(hours=7, minutes=5), tools=tools())
        assert conversation.say("any gaps today?").content == "Free: today 17:15–18:00."


class TestChinese:
    @pytest.mark.parametrize(
        ("said", "english"),
        [
            ("明天下午三点开会", "tomorrow at 3:00 pm 开会"),
            ("把牙医改到下午四点", "把牙医改到 at 4:00 pm"),
            ("12月3号上午9点到11点半开产品评审会", "on 3 December from 9:00 am to 11:30"),
            ("两小时后提醒我打电话", "in 120 minutes"),
            ("下周三14:00面试", "next Wednesday at 14:00"),
            ("后天晚上七点一刻聚餐", "the day after tomorrow at 7:15 pm"),
            ("大后天中午十二点聚餐一个半小时", "in 3 days at 12:00 pm 聚餐 for 90 minutes"),
            ("下个月5号下午三点半去银行", "on 5 December 2026 at 3:30 pm"),
            ("安排一下周四下午三点开会", "安排一下 Thursday at 3:00 pm 开会"),
            ("取消周五的牙医", "取消 Friday 的牙医"),
        ],
    )
    def test_times_are_put_into_english(self, said: str, english: str) -> None:
        assert english in in_english(said, NOW.date())

    def test_english_with_a_chinese_name_stays(self) -> None:
        assert not is_chinese("schedule 开会 tomorrow at 3pm")
        assert talk().say("schedule 开会 tomorrow at 3pm").tool_calls[0]["args"]["name"] == "开会"

    def test_a_conversation_is_held_in_chinese(self) -> None:
        conversation = talk()
        assert question(conversation.say("明天三点开会")) == "“开会”：3:00是上午还是下午？"
        [call] = conversation.answer("下午").tool_calls
        assert call["args"] == {"start": "2026-11-17T15:00:00+01:00", "name": "开会"}
        assert conversation.approve().content == "已安排：开会，明天 15:00–15:30。"

    def test_an_offered_event_is_chosen_in_chinese(self) -> None:
        conversation = talk(event("项目评审", at(17, 9)), event("产品评审", at(18, 9)))
        assert "您指的是哪一个：1. 项目评审" in question(conversation.say("取消评审"))
        [call] = conversation.answer("第二个").tool_calls
        assert (call["name"], call["args"]["event_id"]) == ("delete_event", "id-产品评审")

    def test_a_rejection_in_chinese_is_corrected(self) -> None:
        conversation = talk()
        conversation.say("明天下午三点开会")
        [call] = conversation.approve("时间不对，改到下午四点").tool_calls
        assert call["args"]["start"] == "2026-11-17T16:00:00+01:00"

    @pytest.mark.parametrize(
        "said",
        [
            *("安排个会", "明天开会", "牙医推迟到下周", "11月31号上午九点开会", "把牙医改一下", "取消和市长的会议"),
            *("明天有什么安排？", "明天上午九点我有空吗？", "明天什么时候有空", "你好", "谢谢", "今天天气怎么样"),
            *("这周帮我和小王找个30分钟的空", "每天早上七点叫我起床", "不要取消牙医", "算了", "周一上午九点开会"),
            *("预订会议室", "明天25点开会", "明天下午三点开会", "把牙医改到下午四点", "取消牙医"),
        ],
    )
    def test_replies_are_in_chinese(self, said: str) -> None:
        message = talk().say(said)
        asked = "request_clarification" in names(message)
        text = f"{message.content} {question(message) if asked else ''}"
        outside_quotes = re.sub(r"“[^”]*”|[A-Z][a-z]+(?= |,)|Equipment", "", text)
        assert not re.findall(r"[A-Za-z]{3,}", re.sub(r"Dentist|Haircut|Gym", "", outside_quotes)), text
