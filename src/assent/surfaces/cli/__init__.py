"""The command line: one file per noun, over the same services as every other surface."""

import sys
from typing import Any, cast

# httpx imports its own command line if rich is installed: megabytes that no server uses.
cast(dict[str, Any], sys.modules).setdefault("httpx._main", None)
