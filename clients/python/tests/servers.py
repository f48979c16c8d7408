"""Servers as processes of their own: `tessera serve` with the service of the tests."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SERVICE = ROOT / "test" / "e2e" / "clients" / "service.ts"
TOKEN = "a-token-for-clients"

_COMMAND = os.environ.get("TESSERA_COMMAND", f"node {ROOT / 'bin' / 'tessera.js'}")


class Server:
    """One server; `url` when it has started."""

    def __init__(self, *flags: str, service: Path = SERVICE, port: int = 0) -> None:
        command = [*shlex.split(_COMMAND), "serve", str(service), "--port", str(port), *flags]
        self._process = subprocess.Popen(
            [*command, "--workers", "1"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "TESSERA_LOG_LEVEL": "error"},
        )
        self.port = self._read_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _read_port(self) -> int:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r" on http://\S+:(\d+)$", line.rstrip()):
                return int(found[1])
        raise RuntimeError(f"the server ended with {self._process.wait()}")
