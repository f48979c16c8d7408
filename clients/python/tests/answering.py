"""An HTTP server that answers whatever a test wants, as proxies and other programs do."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Reply:
    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


HTML = Reply(200, "<!doctype html><title>Shop</title>", {"content-type": "text/html"})


class Answering:
    """Answers each request with the next reply, and with the last one from then on."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        left = list(replies)
        self.requests: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        seen = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                seen.requests.append(f"{self.command} {self.path}")
                seen.headers.append({name.lower(): text for name, text in self.headers.items()})
                reply = left.pop(0) if len(left) > 1 else left[0]
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(reply.body.encode())))
                self.end_headers()
                self.wfile.write(reply.body.encode())

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
