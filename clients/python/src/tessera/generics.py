"""What handles of tasks are generic in: the result, and a piece of a streamed one.

Both are `Any` for the client that knows no service; generated clients say which they are.
"""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 13):
    from typing import TypeVar
else:
    from typing_extensions import TypeVar

R = TypeVar("R", default=Any)
P = TypeVar("P", default=Any)
