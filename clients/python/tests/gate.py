"""A gate in the ways of functions, which tests open."""

from __future__ import annotations

import queue
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Gate:
    """Where the function of `gated` waits before each of its steps until the test lets it go on."""

    def __init__(self) -> None:
        self._arrived: queue.Queue[tuple[int, queue.Queue[str]]] = queue.Queue()
        arrived = self._arrived

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer: queue.Queue[str] = queue.Queue()
                pid = parse_qs(urlsplit(self.path).query)["pid"][0]
                arrived.put((int(pid), answer))
                text = answer.get(timeout=60).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def arrival(self) -> int:
        """Waits for the function and leaves it there; returns the process of its worker."""
        pid, _ = self._arrived.get(timeout=60)
        return pid

    def open(self, text: str) -> None:
        """Lets the next function that comes go on with this text."""
        self._arrived.get(timeout=60)[1].put(text)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
