"""The service without a server: `python -m pytest examples/filetype`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from tessera import File
from tessera.testing import call_sync

from service import Filetype

SAMPLES = Path(__file__).parent / "samples"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("deploy", "shell"),
        ("emblem", "png"),
        ("forecast", "python"),
        ("lamps", "csv"),
        ("notice", "html"),
        ("parcel", "zip"),
        ("settings", "json"),
    ],
)
def test_tells_the_type_whatever_the_name(name: str, label: str) -> None:
    file = File.from_bytes((SAMPLES / name).read_bytes(), name="thing.exe")
    kind = call_sync(Filetype.identify, file=file)
    assert (kind["filename"], kind["label"]) == ("thing.exe", label)
    assert kind["score"] > 0.5


def test_tells_an_empty_file() -> None:
    assert call_sync(Filetype.identify, file=File.from_bytes(b""))["label"] == "empty"
