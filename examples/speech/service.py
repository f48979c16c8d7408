"""Finds where people speak in recordings: ffmpeg reads them, Silero's model listens."""

import json
import subprocess
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from tessera import BadInput, Context, File, FileType, counter, service, task

RATE = 16_000
"""Samples per second that the model listens to."""
WINDOW = 512
"""Samples that it judges at a time: 32 ms."""
CONTEXT = 64
"""Samples before them that it sees as well."""
BEGINS = 0.5
"""Speech begins where the model is as sure as this."""
ENDS = 0.35
"""It ends where the model has been less sure for `MIN_SILENCE_S`."""
MIN_SILENCE_S = 0.3
MIN_SPEECH_S = 0.25
MAX_RECORDING_BYTES = 500_000_000
MAX_PART_S = 24 * 3_600
PROBE_TIMEOUT_S = 30

Recording = Annotated[
    File, FileType(max_bytes=MAX_RECORDING_BYTES)
]

seconds_heard = counter("speech_seconds_heard", help="Seconds of recordings that were listened to.")


class Part(BaseModel):
    """A part of a recording in which somebody speaks."""

    start: float = Field(description="In seconds from the start of the recording.")
    end: float


class Speech(BaseModel):
    filename: str | None
    seconds: float = Field(description="How long the recording is.")
    spoken: float = Field(description="Seconds of it in which somebody speaks.")
    parts: list[Part]


@service(name="speech", metrics=[seconds_heard], packages=["ffmpeg"], processes=16)
class Finder:
    """Finds where people speak, in what ffmpeg reads: MP3, M4A, WAV, FLAC, Opus, MP4, Matroska, …"""

    def setup(self) -> None:
        # Its package is not imported, for it wants torch; only the model in its wheel is used.
        wheel = distribution("silero-vad")
        model = Path(str(wheel.locate_file("silero_vad/data/silero_vad_16k_op15.onnx")))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.model = onnxruntime.InferenceSession(model.read_bytes(), options)

    @task(timeout="1h", retries=2, concurrency=2)
    def find(self, recording: Recording, ctx: Context) -> Speech:
        """Tells where somebody speaks, and how far it has listened."""
        length = length_of(recording)
        parts = Parts()
        heard = 0.0
        for likely in self.listen(samples_of(recording)):
            ctx.check()
            parts.add(likely)
            heard = len(parts) * WINDOW / RATE
            if length > 0:
                ctx.progress(min(heard / length, 1), f"{heard:.0f} of {length:.0f} s")
        seconds_heard.inc(heard)
        found = parts.all()
        return Speech(
            filename=recording.name,
            seconds=round(max(length, heard), 2),
            spoken=round(sum(part.end - part.start for part in found), 2),
            parts=found,
        )

    def listen(self, blocks: Iterator[NDArray[np.float32]]) -> Iterator[list[float]]:
        """How sure the model is of speech in each window, for a block of samples at a time."""
        state = np.zeros((2, 1, 128), np.float32)
        context = np.zeros(CONTEXT, np.float32)
        rate = np.array(RATE, np.int64)
        for block in blocks:
            likely = []
            for start in range(0, len(block) - WINDOW + 1, WINDOW):
                window = np.concatenate([context, block[start : start + WINDOW]])
                context = window[-CONTEXT:]
                sure, state = self.model.run(None, {"input": window[None], "state": state, "sr": rate})
                likely.append(float(sure.item()))
            yield likely


class Parts:
    """Makes parts of what the model says of each window."""

    def __init__(self) -> None:
        self.windows: list[float] = []

    def add(self, likely: list[float]) -> None:
        self.windows += likely

    def __len__(self) -> int:
        return len(self.windows)

    def all(self) -> list[Part]:
        found: list[Part] = []
        start: float | None = None
        silent_from: float | None = None
        for number, sure in enumerate([*self.windows, *[0.0] * int(MIN_SILENCE_S * RATE / WINDOW + 2)]):
            at = number * WINDOW / RATE
            if sure >= BEGINS:
                start = at if start is None else start
                silent_from = None
            elif start is not None and sure < ENDS:
                silent_from = at if silent_from is None else silent_from
                if at - silent_from >= MIN_SILENCE_S:
                    if silent_from - start >= MIN_SPEECH_S:
                        found.append(Part(start=round(start, 2), end=round(silent_from, 2)))
                    start = silent_from = None
        return found


def length_of(recording: File) -> float:
    """The length in seconds, as the file says it; 0 where it does not."""
    command = ["ffprobe", "-v", "error", "-of", "json", "-show_entries"]
    shown = ["format=duration:stream=codec_type", f"file:{recording.path}"]
    asked = subprocess.run([*command, *shown], capture_output=True, timeout=PROBE_TIMEOUT_S)
    if asked.returncode != 0:
        raise BadInput(f"{recording.name or 'the recording'} is nothing that ffmpeg reads")
    said = json.loads(asked.stdout)
    if not any(stream["codec_type"] == "audio" for stream in said.get("streams", [])):
        raise BadInput(f"{recording.name or 'the recording'} has no sound")
    return min(float(said["format"].get("duration", 0)), MAX_PART_S)


def samples_of(recording: File) -> Iterator[NDArray[np.float32]]:
    """The sound as ffmpeg reads it, ten seconds at a time: one channel, `RATE` samples a second."""
    command = ["ffmpeg", "-v", "error", "-nostdin", "-i", f"file:{recording.path}", "-vn"]
    output = ["-ac", "1", "-ar", str(RATE), "-t", str(MAX_PART_S), "-f", "f32le", "-"]
    block = 4 * WINDOW * (10 * RATE // WINDOW)
    with subprocess.Popen([*command, *output], stdout=subprocess.PIPE) as reader:
        try:
            assert reader.stdout is not None
            while read := reader.stdout.read(block):
                yield np.frombuffer(read[: len(read) // 4 * 4], np.float32)
        finally:
            # A call that is cancelled leaves no ffmpeg behind.
            reader.kill()
