"""Who else is looking at an item right now. Known to this process only, and for half a minute: it is a courtesy, and
decides nothing. Who works on an item claims it, and that every process knows."""

from __future__ import annotations

import time
from collections import defaultdict

from assent.domain.access import Principal

STAYS = 30.0
_MOST_ITEMS = 10_000


class Presence:
    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)

    def look(self, caller: Principal, item_id: str) -> list[str]:
        """Notes that the caller looks, and says who else does."""
        if len(self._seen) > _MOST_ITEMS:
            self._seen.clear()
        here, now = self._seen[caller.tenant, item_id], time.monotonic()
        for actor in [actor for actor, at in here.items() if now - at > STAYS]:
            del here[actor]
        here[caller.actor] = now
        return sorted(actor for actor in here if actor != caller.actor)
