"""The formats of questions and answers: one module per dialect, tried in order; the last one accepts anything.

`recognise` parses a pending interrupt into a `Question`, `encode` turns a person's verdicts into the exact value that
the agent expects, `decode` parses an answer from outside the inbox, `check_resume` validates the resume value of a
LangGraph client. All functions are pure.
"""

from assent.review.dialects.answers import Answer, UnknownInterrupt, check_resume
from assent.review.dialects.asked import question_of
from assent.review.dialects.dialect import Decoded, Dialect
from assent.review.dialects.registry import (
    DIALECTS,
    approves,
    decode,
    dialect_of,
    encode,
    feedback,
    heard_with,
    negative,
    recognise,
    with_text,
)

__all__ = [
    "DIALECTS",
    "Answer",
    "Decoded",
    "Dialect",
    "UnknownInterrupt",
    "approves",
    "check_resume",
    "decode",
    "dialect_of",
    "encode",
    "feedback",
    "heard_with",
    "negative",
    "question_of",
    "recognise",
    "with_text",
]
