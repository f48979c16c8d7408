"""What handles of tasks are generic in: the result, and a piece of a streamed one.

Both are `Any` for the client that knows no service; generated clients say which they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Bundled with type checkers; only they need the defaults.
    from typing_extensions import TypeVar

    R = TypeVar("R", default=Any)
    P = TypeVar("P", default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R")
    P = TypeVar("P")
