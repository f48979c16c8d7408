"""A service that is a command with a port of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import bentoml

PROGRAM = Path(__file__).with_name("commanded_program.py")


@bentoml.service(
    cmd=[sys.executable, str(PROGRAM)],
    http={"proxy_port": int(os.environ.get("COMMANDED_PORT", "8000"))},
    endpoints={"livez": "/alive"},
)
class Commanded:
    """Answers by its command."""
