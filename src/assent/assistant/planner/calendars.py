"""Results of calendar tools, and which of their events a person means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from assent.assistant.planner.goals import Event, Reference


def events(data: Any, zone: tzinfo | None) -> list[Event]:
    """The events in a result, in the planner's zone. Entries that are not events are left out."""
    listed = data.get("events", data.get("items")) if isinstance(data, Mapping) else data
    entries = listed if isinstance(listed, list) else []
    return [parsed for entry in entries if (parsed := event(entry, zone))]


def event(data: Any, zone: tzinfo | None) -> Event | None:
    """The event in a result, directly or under `event_details`."""
    if not isinstance(data, Mapping):
        return None
    inner = data.get("event_details", data.get("event"))
    start = _moment(data.get("start"), zone)
    if start is None:
        return event(inner, zone)
    return Event(
        event_id=str(data.get("event_id") or data.get("id") or ""),
        name=str(data.get("name") or data.get("title") or data.get("summary") or "Event"),
        start=start,
        end=_moment(data.get("end"), zone),
        location=str(data["location"]) if data.get("location") else None,
        people=tuple(map(str, data["attendees"])) if isinstance(data.get("attendees"), list) else (),
    )


def calendars(data: Any) -> dict[str, str]:
    """Names and ids."""
    listed = data.get("calendars") if isinstance(data, Mapping) else data
    entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
    named = [(entry.get("name"), entry.get("calendar_id") or entry.get("id")) for entry in entries]
    return {str(name): str(key) for name, key in named if name and key}


def matches(reference: Reference, known: Sequence[Event], now: datetime) -> list[Event]:
    """Events that the words fit and that are not over. The more said, the fewer."""
    ahead = [candidate for candidate in known if (candidate.end or candidate.start) > now]
    fitting = [candidate for candidate in ahead if _at(reference, candidate) and _named(reference, candidate)]
    exact = [candidate for candidate in fitting if candidate.name.casefold() == reference.text.casefold()]
    if reference.words or len(fitting) < 2:
        return exact or fitting
    text = words(reference.text)
    spoken = [candidate for candidate in fitting if any(word in text for word in words(candidate.name))]
    return spoken or fitting


def only_match(reference: Reference, known: Sequence[Event], now: datetime) -> Event | None:
    """The event that is meant, if it is only one, and if the words say anything: "the meeting" alone means none."""
    candidates = matches(reference, known, now)
    if len(candidates) != 1:
        return None
    spoken = set(words(candidates[0].name)) & set(words(reference.text))
    return candidates[0] if reference.words or not reference.when.empty or spoken else None


_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def words(text: str) -> list[str]:
    return re.findall(r"[\w&+#-]+", text.casefold())


def _at(reference: Reference, candidate: Event) -> bool:
    when, clock = reference.when, candidate.start.time()
    if when.day and candidate.start.date() != when.day:
        return False
    if when.dial:
        return (clock.hour % 12 or 12, clock.minute) == when.dial
    return when.clock is None or (clock.hour, clock.minute) == (when.clock.hour, when.clock.minute)


def _named(reference: Reference, candidate: Event) -> bool:
    """Chinese has no spaces, so a part of a name is a word there."""
    name = words(candidate.name)
    return all(
        word.casefold() in name or (_CHINESE.search(word) and word in candidate.name) for word in reference.words
    )


def _moment(value: Any, zone: tzinfo | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        return moment.astimezone(zone) if moment and moment.tzinfo else moment and moment.replace(tzinfo=zone)
    except (ValueError, OverflowError):
        return None
