"""How items look by type: functions that turn an item's view into blocks, beside the exact arguments.

`renders` registers one, in our own modules and in those of other packages alike; docs/renderers.md shows how.
"""

from assent.web.renderers.blocks import (
    Block,
    Caution,
    Code,
    Diff,
    Fact,
    Facts,
    File,
    Files,
    Heading,
    Link,
    Markdown,
    Money,
    Rendering,
    Table,
    Text,
    Value,
)
from assent.web.renderers.reading import View, call, only
from assent.web.renderers.registry import rendered, renders, sign, types

# Ours, registered like any other; what comes later is asked first.
from assent.web.renderers import (  # isort: skip
    tool_call as tool_call,
    question as question,
    form as form,
    login_link as login_link,
    code as code,
    sql as sql,
    money as money,
    calendar_event as calendar_event,
    email_draft as email_draft,
    config_change as config_change,
    knowledge_upload as knowledge_upload,
    workspace_review as workspace_review,
)

__all__ = [
    "Block",
    "Caution",
    "Code",
    "Diff",
    "Fact",
    "Facts",
    "File",
    "Files",
    "Heading",
    "Link",
    "Markdown",
    "Money",
    "Rendering",
    "Table",
    "Text",
    "Value",
    "View",
    "call",
    "only",
    "rendered",
    "renders",
    "sign",
    "types",
]
