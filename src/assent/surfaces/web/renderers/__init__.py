"""Renderers by item type: functions that turn an item's view into blocks, shown beside the exact arguments.

`renders` registers a renderer, in this package and in plugins alike; see docs/renderers.md.
"""

from assent.surfaces.web.renderers.blocks import (
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
from assent.surfaces.web.renderers.registry import rendered, renders, shown, sign, title, types
from assent.surfaces.web.renderers.values.reading import View, call, only

# Built-in renderers. The last registered is tried first.
from assent.surfaces.web.renderers import (  # isort: skip
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
    "shown",
    "sign",
    "title",
    "types",
]
