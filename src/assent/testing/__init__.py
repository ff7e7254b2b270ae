"""For the tests of agent authors, and for ours: an inbox in memory, builders, and a clock that can be moved.

Nothing in here is a fake. The inbox is `LocalInbox`, with the server's own rules and transactions.
"""

from assent.testing.builders import gated_call, judged, policy, rule
from assent.testing.clock import Clock
from assent.testing.inbox import Inbox

__all__ = ["Clock", "Inbox", "gated_call", "judged", "policy", "rule"]
