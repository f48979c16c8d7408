"""Frames from the node, however the stream cuts them."""

from __future__ import annotations

import random

import pytest

from tessera.host.frames import ROOM_BYTES, Attachments, Frame, FrameReader, encode_frame

SIZES = (0, 3, 1_000, 70_000, ROOM_BYTES - 100, ROOM_BYTES, 3 * ROOM_BYTES)


@pytest.mark.parametrize("step", [777, 65_536, ROOM_BYTES, 10 * ROOM_BYTES])
def test_arrive_as_they_were_sent(step: int) -> None:
    numbers = random.Random(step)
    sent: list[list[bytes]] = []
    stream = b""
    for size in [*SIZES, *reversed(SIZES)]:
        attachments = Attachments()
        parts = [numbers.randbytes(size), b"short"]
        stream += encode_frame({"parts": [attachments.add(part) for part in parts]}, attachments)
        sent.append(parts)
    read: list[list[bytes]] = []
    reader = FrameReader(
        lambda frame: read.append([frame.bytes_of(part) for part in frame.header["parts"]])
    )
    while stream:
        room = reader.room()
        size = min(len(room), step, len(stream))
        assert size > 0
        room[:size], stream = stream[:size], stream[size:]
        reader.filled(size)
    assert read == sent


def test_stay_when_others_have_come() -> None:
    frames: list[Frame] = []
    reader = FrameReader(frames.append)
    for text in ("first", "second"):
        attachments = Attachments()
        frame = encode_frame({"text": attachments.add(text)}, attachments)
        reader.room()[: len(frame)] = frame
        reader.filled(len(frame))
    assert [frame.text_of(frame.header["text"]) for frame in frames] == ["first", "second"]
