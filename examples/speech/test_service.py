"""The service without a server: `python -m pytest examples/speech`. It needs ffmpeg."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from tessera import BadInput, File
from tessera.testing import Told, call_sync

from service import Finder, Parts

SAMPLES = Path(__file__).parent / "samples"


def test_finds_the_two_sentences_and_tells_how_far_it_is() -> None:
    told = Told()
    found = call_sync(Finder.find, recording=SAMPLES / "two-voices.mp3", told=told)
    first, second = found["parts"]
    assert first["start"] == pytest.approx(1.5, abs=0.2)
    assert first["end"] == pytest.approx(4.0, abs=0.4)
    assert second["start"] == pytest.approx(6.4, abs=0.2)
    assert second["end"] == pytest.approx(9.6, abs=0.4)
    assert found["spoken"] == pytest.approx(5.5, abs=0.5)
    assert (found["filename"], found["seconds"]) == ("two-voices.mp3", 11.02)
    done, message = told.progress[-1]
    assert done == pytest.approx(1, abs=0.02)
    assert message == "11 of 11 s"


def test_refuses_what_is_no_recording() -> None:
    text = File.from_bytes(b"Ring the bell twice.", name="note.mp3")
    with pytest.raises(BadInput, match="note.mp3 is nothing that ffmpeg reads"):
        call_sync(Finder.find, recording=text)


def test_reads_no_other_file_that_a_recording_names() -> None:
    playlist = b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"
    with pytest.raises(BadInput, match="is nothing that ffmpeg reads"):
        call_sync(Finder.find, recording=File.from_bytes(playlist, name="list.m3u8"))


def test_a_short_noise_is_no_speech_and_a_short_silence_ends_none() -> None:
    parts = Parts()
    parts.add([0.9] * 4 + [0.0] * 20 + [0.9] * 20 + [0.1] * 5 + [0.9] * 20)
    (part,) = parts.all()
    assert (part.start, part.end) == (0.77, 2.21)
