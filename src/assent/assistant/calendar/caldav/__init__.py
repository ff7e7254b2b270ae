"""A calendar on a CalDAV server: `store` has the operations, `connection` the protocol, `documents` the
iCalendar texts, `collections` the choice of a calendar.

It needs the extra `caldav`, and is imported only where the settings name such a server.
"""
