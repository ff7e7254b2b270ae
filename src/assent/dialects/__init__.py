"""How agents ask and what they must get back: one module per dialect, tried in order, the last one takes anything.

`recognise` reads a pending interrupt into a `Question`, `encode` turns a person's verdicts into the exact value that
the agent waits for, `decode` understands an answer that someone gave elsewhere, `check_resume` judges what a client
sends to the LangGraph API. All of it is pure.
"""

from assent.dialects.answers import Answer, InvalidAnswer, UnknownInterrupt, check_resume
from assent.dialects.dialect import Decoded, Dialect
from assent.dialects.registry import DIALECTS, decode, dialect_of, encode, feedback, negative, recognise

__all__ = [
    "DIALECTS",
    "Answer",
    "Decoded",
    "Dialect",
    "InvalidAnswer",
    "UnknownInterrupt",
    "check_resume",
    "decode",
    "dialect_of",
    "encode",
    "feedback",
    "negative",
    "recognise",
]
