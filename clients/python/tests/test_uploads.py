"""Files that callers send keep their names, and files that functions return have their type."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest

from tessera import File, FileType, api, service
from tessera.sdk.executable import IncomingCall, IncomingFile
from tessera.sdk.uploads import MAX_NAME_BYTES, safe_name, upload_path
from tessera.testing import call_sync


@service
class Uploads:
    @api
    def named(self, path: Path) -> list[str]:
        return [path.name, path.suffix, path.read_text()]

    @api
    def all_named(self, paths: list[Path], file: File) -> list[str]:
        return [*(f"{path.name}={path.read_text()}" for path in paths), file.path.name]

    @api
    def sound(self, name: str) -> Annotated[File, FileType("audio/wav")]:
        return File.from_bytes(b"RIFF", name=name)

    @api
    def of_path(self, path: Path) -> Annotated[Path, FileType("application/x-own")]:
        return path

    @api
    def of_bytes(self) -> Annotated[bytes, FileType("audio/wav")]:
        return b"RIFF"

    @api
    def said(self) -> Annotated[File, FileType("audio/wav")]:
        return File.from_bytes(b"ID3", name="a.wav", content_type="audio/mpeg")

    @api
    def any_sound(self, name: str) -> Annotated[File, FileType("audio/*")]:
        return File.from_bytes(b"ID3", name=name)


@pytest.mark.parametrize(
    "name",
    [
        *("scan.png", "Größe 漢字.tar.gz", "данные.csv", ".hidden", "a b.c"),
        *("می\u200cکنیم.pdf", "क\u200d्ष.txt", "👩\u200d🔬.png"),
    ],
)
def test_a_path_has_the_name_that_the_caller_gave(name: str) -> None:
    file = File.from_bytes(b"text", name=name)
    assert call_sync(Uploads.named, path=file) == [name, Path(name).suffix, "text"]


def test_files_of_one_name_are_beside_each_other() -> None:
    files = [File.from_bytes(text, name="a.txt") for text in (b"1", b"2")]
    found = call_sync(Uploads.all_named, paths=files, file=File.from_bytes(b"", name="a.txt"))
    assert found == ["a.txt=1", "a.txt=2", "a.txt"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (None, "file"),
        ("", "file"),
        ("..", "file"),
        ("../../etc/passwd", "passwd"),
        ("C:\\scans\\a.png", "a.png"),
        ("a\0b\n.png", "a_b_.png"),
        ("\u202egnp.exe", "_gnp.exe"),
        ("half \ud800.txt", "half _.txt"),
        ("a\u2028b\u2029c.txt", "a_b_c.txt"),
    ],
)
def test_a_name_that_no_file_can_have_is_changed(sent: str | None, kept: str) -> None:
    assert safe_name(sent) == kept


@pytest.mark.parametrize("sent", ["漢" * 200 + ".png", "a" * 300 + ".png", "a." + "b" * 300])
def test_a_long_name_keeps_its_extension(sent: str) -> None:
    kept = safe_name(sent)
    assert len(kept.encode()) <= MAX_NAME_BYTES
    assert kept[0] == sent[0]
    assert sent.startswith(kept.rpartition(".")[0])
    assert kept.endswith(".png") or "." in kept


def test_a_file_on_disk_is_not_copied(tmp_path: Path) -> None:
    sent = tmp_path / "argument-0"
    sent.write_bytes(b"large")
    file = IncomingFile("image/png", "scan.png", 5, path=sent)
    call: Any = IncomingCall("e", "{}", [file], tmp_path, "t", 1, 0.0, outlet=None)  # type: ignore[arg-type]
    path = upload_path(call, 0)
    assert (path.name, path.stat().st_ino) == ("scan.png", sent.stat().st_ino)
    assert upload_path(call, 0) == path


@pytest.mark.parametrize(
    ("method", "arguments", "content_type"),
    [
        (Uploads.sound, {"name": "a.mp3"}, "audio/wav"),
        (Uploads.sound, {"name": "a"}, "audio/wav"),
        (Uploads.of_path, {"path": File.from_bytes(b"", name="a.txt")}, "application/x-own"),
        (Uploads.of_bytes, {}, "audio/wav"),
        (Uploads.said, {}, "audio/mpeg"),
        (Uploads.any_sound, {"name": "a.mp3"}, "audio/mpeg"),
        (Uploads.any_sound, {"name": "a.txt"}, "application/octet-stream"),
    ],
)
def test_a_declared_type_goes_before_a_guessed_one(
    method: Any, arguments: dict[str, Any], content_type: str
) -> None:
    assert call_sync(method, **arguments).content_type == content_type
