"""Files that callers sent, on disk under the names that they gave them."""

from __future__ import annotations

import os
import shutil
import unicodedata
from pathlib import Path

from .executable import IncomingCall

FOLDER_NAME = "uploads"
MAX_NAME_BYTES = 255
"""What file systems take for one name."""
_SEPARATORS = "/\\"
_NO_LETTERS = frozenset(["Cc", "Cf", "Cs", "Zl", "Zp"])
_JOINERS = "\u200c\u200d"
"""Between letters of Persian and of India's languages, and in emoji, they are part of the word."""


def upload_path(call: IncomingCall, index: int) -> Path:
    """A file of a call on disk, until the call has ended. What is there already is not copied.

    Each has a folder of its own, because callers may give two files one name.
    """
    file = call.files[index]
    uploads = call.folder / FOLDER_NAME
    folder = uploads / str(index)
    path = folder / safe_name(file.filename)
    if path.exists():
        return path
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    call.temporary.append(uploads)
    if file.path is None:
        path.write_bytes(file.data or b"")
        return path
    try:
        os.link(file.path, path)
    except OSError:  # On another file system, or a file of somebody else.
        shutil.copyfile(file.path, path)
    return path


def safe_name(sent: str | None) -> str:
    """The last part of the name that a caller sent, with letters of all alphabets.

    What no file can be called is replaced; one that is too long keeps its extension.
    """
    name = sent or ""
    for separator in _SEPARATORS:
        name = name.rpartition(separator)[2]
    # Controls, breaks of lines, what is half of a letter, and what turns the direction of reading.
    name = "".join(
        "_" if unicodedata.category(each) in _NO_LETTERS and each not in _JOINERS else each
        for each in name
    )
    if name in ("", ".", ".."):
        return "file"
    stem, extension = os.path.splitext(name)
    extension = _cut(extension, MAX_NAME_BYTES // 2)
    return _cut(stem, MAX_NAME_BYTES - len(extension.encode())) + extension


def _cut(text: str, most: int) -> str:
    """The beginning of a text, in at most so many bytes."""
    return text.encode()[:most].decode(errors="ignore")
