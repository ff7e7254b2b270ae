"""The command line: one file per noun, over the same services as every other surface."""

import sys
from typing import Any, cast

# httpx brings its own command line along where it finds what that needs: megabytes of colours that no server uses.
cast(dict[str, Any], sys.modules).setdefault("httpx._main", None)
