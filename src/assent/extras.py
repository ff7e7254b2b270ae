"""Optional dependencies: what needs one names the extra that installs it."""

from importlib.util import find_spec

from assent.errors import NotInstalled

_MODULES = {
    "assistant": "fastmcp",
    "caldav": "caldav",
    "graphql": "strawberry",
    "import": "aiosqlite",
    "triage": "textual",
}


def require(extra: str, purpose: str) -> None:
    """Raises an error with the command that installs the extra, unless it is installed."""
    if find_spec(_MODULES[extra]) is None:
        raise NotInstalled(
            f"{purpose} needs the extra {extra!r}, which is not installed",
            hint=f"pip install 'assent[{extra}]', or in a clone: make extras",
            extra=extra,
        )
