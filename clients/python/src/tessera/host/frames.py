"""Length-prefixed frames between a node and a worker, version 2 of the host protocol.

A frame is the length of its body, then the body: the format (1), the length of the header, the
header as JSON text in UTF-8, and the attachments, one after the other. Numbers are 32 bits and
little-endian. A header names bytes of its attachments as ``{"$": [offset, length]}``, counted
from the first byte after the header.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from struct import Struct
from typing import Any

FORMAT = 1
PREFIX = Struct("<IBI")
"""Length of the body, format, length of the header."""
LENGTH_BYTES = 4
PREFIX_REST_BYTES = PREFIX.size - LENGTH_BYTES

ROOM_BYTES = 256 * 1024
"""What is read of a stream at a time."""

MAX_HEADER_TEXT_CHARACTERS = 256
"""Text that stands in the header of its message; a longer one is an attachment."""

_encode_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_decode_json = json.JSONDecoder().decode


class Attachments:
    """The attachments of a frame that is being written."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, part: str | bytes) -> dict[str, list[int]]:
        """Adds bytes, or a text as UTF-8, and returns what stands for them in the header."""
        data = part.encode("utf-8", "replace") if isinstance(part, str) else bytes(part)
        reference = {"$": [self.size, len(data)]}
        self.parts.append(data)
        self.size += len(data)
        return reference

    def text(self, text: str) -> str | dict[str, list[int]]:
        """What stands in the header for a text: itself, if it is short."""
        return text if len(text) <= MAX_HEADER_TEXT_CHARACTERS else self.add(text)


def encode_frame(header: Any, attachments: Attachments | None = None) -> bytes:
    """A frame with this header, a value that survives JSON unchanged."""
    # What is no Unicode, as in names of files, must not fail a message.
    text = _encode_json(header).encode("utf-8", "replace")
    size = attachments.size if attachments else 0
    prefix = PREFIX.pack(PREFIX_REST_BYTES + len(text) + size, FORMAT, len(text))
    if attachments is None:
        return prefix + text
    return b"".join((prefix, text, *attachments.parts))


class Frame:
    """A frame that has come: its header, and the attachments that this names."""

    __slots__ = ("_attachments", "header")

    def __init__(self, header: Any, attachments: memoryview) -> None:
        self.header = header
        self._attachments = attachments

    def bytes_of(self, reference: Any) -> bytes:
        """A copy of the named bytes."""
        offset, length = reference["$"]
        return bytes(self._attachments[offset : offset + length])

    def text_of(self, value: Any) -> str:
        """A text, which stands in the header itself or is named there."""
        if isinstance(value, str):
            return value
        offset, length = value["$"]
        return str(self._attachments[offset : offset + length], "utf-8")


class FrameReader:
    """Reads frames from a stream that writes into ``room``, and gives them to ``take`` in their
    order.

    A frame that is larger than the usual room has memory of its own, into which the rest of it is
    written: nobody copies it. The node's frames are not bounded, as it is the node that limits what
    is sent.
    """

    def __init__(self, take: Callable[[Frame], None]) -> None:
        self._take = take
        self._usual = memoryview(bytearray(ROOM_BYTES))
        self._room = self._usual
        self._filled = 0
        self._needed = PREFIX.size

    def room(self) -> memoryview:
        """Where the next bytes of the stream go."""
        return self._room[self._filled :]

    def filled(self, size: int) -> None:
        """So many bytes have come."""
        self._filled += size
        if self._filled < self._needed:
            return
        room, end, at = self._room, self._filled, 0
        self._needed = PREFIX.size
        while end - at >= PREFIX.size:
            length, form, header_length = PREFIX.unpack_from(room, at)
            if form != FORMAT:
                raise ValueError(f"a frame in format {form}")
            frame_end = at + LENGTH_BYTES + length
            if frame_end > end:
                self._needed = frame_end - at
                break
            begin = at + PREFIX.size
            attachments = begin + header_length
            header = _decode_json(str(room[begin:attachments], "utf-8"))
            rest = room[attachments:frame_end]
            at = frame_end
            # The usual room is written again.
            self._take(Frame(header, memoryview(bytes(rest)) if room is self._usual else rest))
        begun = room[at:end]
        is_large = self._needed > ROOM_BYTES
        self._room = memoryview(bytearray(self._needed)) if is_large else self._usual
        self._room[: begun.nbytes] = begun
        self._filled = begun.nbytes
