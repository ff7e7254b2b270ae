"""The people who view an item right now. In memory of this process and for 30 seconds only: it is informational. Claims
are stored and visible to every process."""

from __future__ import annotations

import time
from collections import defaultdict

from assent.identity.model.access import Principal

STAYS = 30.0
_MOST_ITEMS = 10_000


class Presence:
    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)

    def look(self, caller: Principal, item_id: str) -> list[str]:
        """Records the caller as a viewer and returns the other viewers."""
        if len(self._seen) > _MOST_ITEMS:
            self._seen.clear()
        here, now = self._seen[caller.tenant, item_id], time.monotonic()
        for actor in [actor for actor, at in here.items() if now - at > STAYS]:
            del here[actor]
        here[caller.actor] = now
        return sorted(actor for actor in here if actor != caller.actor)
