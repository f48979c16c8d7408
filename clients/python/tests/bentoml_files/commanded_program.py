"""The command: a server of the standard library."""

from __future__ import annotations

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Says what it was asked."""

    def do_GET(self) -> None:
        """Answers as to all methods."""
        size = int(self.headers.get("content-length") or 0)
        said = f"{self.command} {self.path} {self.rfile.read(size)!r}".encode()
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("content-length", str(len(said)))
        self.send_header("x-own", "1")
        self.end_headers()
        self.wfile.write(said)

    do_POST = do_GET  # noqa: N815
    do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Says nothing."""


ThreadingHTTPServer(("127.0.0.1", int(os.environ["COMMANDED_PORT"])), Handler).serve_forever()
