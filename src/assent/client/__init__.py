"""The Python client of Assent's inbox, for services that create items and wait for decisions, and for the command line.

It imports nothing of the server, so that it is cheap to import.
"""

from assent.client.blocking import Inbox
from assent.client.connection import Connection
from assent.client.inbox import AsyncInbox
from assent.client.views import Change, Comment, Event, Item, ItemPage

__all__ = ["AsyncInbox", "Change", "Comment", "Connection", "Event", "Inbox", "Item", "ItemPage"]
