"""The relay of a sandboxed worker: forwards bytes between a port of its own loopback, where HTTP
clients look for a proxy, and the socket of the node's egress proxy, which decides about each
connection.

It has threads of its own: the loop of the worker may be busy, and so may its calls.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading

EGRESS_RELAY_PORT = 3128
MAX_RELAYED_BYTES = 64 * 1024
"""Bytes that are read at a time."""


def start_egress_relay(path: str) -> None:
    """Starts the relay, which ends with the process. Raises ``OSError`` if the port is taken."""
    # HTTP clients such as httpx refuse to work where it names a proxy that speaks SOCKS, unless
    # a package for that is installed; the one for HTTP is all that they need.
    for name in ("ALL_PROXY", "all_proxy"):
        proxy = os.environ.pop(name, None)
        if proxy is not None:
            os.environ["SOCKS_PROXY"] = proxy
    server = socket.create_server(("127.0.0.1", EGRESS_RELAY_PORT))
    threading.Thread(target=_accept, args=(server, path), name="egress", daemon=True).start()


def _accept(server: socket.socket, path: str) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:  # One connection could not be accepted.
            continue
        threading.Thread(target=_relay, args=(client, path), name="egress", daemon=True).start()


def _relay(client: socket.socket, path: str) -> None:
    with client, socket.socket(socket.AF_UNIX) as proxy:
        try:
            proxy.connect(path)
        except OSError:  # The node ends; the client sees its connection closed.
            return
        back = threading.Thread(target=_copy, args=(proxy, client), name="egress", daemon=True)
        back.start()
        _copy(client, proxy)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copies until the end of one direction, and tells the other side of it."""
    try:
        while data := source.recv(MAX_RELAYED_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # Whoever is left sees its connection closed.
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
