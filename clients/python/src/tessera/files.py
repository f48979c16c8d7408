"""Files of calls and of results. Both are streamed, never held in memory as a whole."""

from __future__ import annotations

import contextlib
import mimetypes
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from typing import IO, BinaryIO

from .errors import BadArguments

CHUNK_BYTES = 256 * 1024

Content = os.PathLike[str] | str | bytes | bytearray | memoryview | IO[bytes]


class Upload:
    """A file argument with its own name or content type.

    `name` is the name that the function sees; default: that of the path or file object.
    `content_type` is guessed from the name by default.
    """

    def __init__(
        self, content: Content, *, name: str | None = None, content_type: str | None = None
    ) -> None:
        self.content = content
        self.name = name
        self.content_type = content_type


class ResultFile(os.PathLike[str]):
    """A file that a function returned, as a temporary file.

    It works wherever a path does, also as an argument of another call. The temporary
    file is deleted when this object is closed or no longer used; `save` keeps it.
    """

    def __init__(self, path: str, *, name: str | None, content_type: str) -> None:
        self.path = path
        self.name = name
        """As the function called it; None when it did not. Without any folder."""
        self.content_type = content_type
        self._remove = weakref.finalize(self, _remove_file, path)

    @property
    def size(self) -> int:
        """In bytes."""
        return os.path.getsize(self.path)

    def open(self) -> BinaryIO:
        return open(self.path, "rb")

    def read(self) -> bytes:
        """Reads the whole file into memory."""
        with self.open() as file:
            return file.read()

    def save(self, path: str | os.PathLike[str]) -> str:
        """Moves the file to a path, or into a folder under its own name; returns the path."""
        target = os.fspath(path)
        if os.path.isdir(target):
            target = os.path.join(target, self.name or os.path.basename(self.path))
        self._remove.detach()
        self.path = shutil.move(self.path, target)
        return target

    def close(self) -> None:
        """Removes the temporary file, unless it was saved."""
        self._remove()

    def __enter__(self) -> ResultFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"ResultFile({self.path!r}, name={self.name!r}, content_type={self.content_type!r})"


def _remove_file(path: str) -> None:
    # Its owner may have moved it away.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


class Spool:
    """A temporary file during the download; becomes a `ResultFile` or is deleted."""

    def __init__(self) -> None:
        descriptor, self._path = tempfile.mkstemp(prefix="tessera-")
        self._file = os.fdopen(descriptor, "wb")

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)

    def finish(self, *, name: str | None, content_type: str) -> ResultFile:
        self._file.close()
        return ResultFile(self._path, name=name, content_type=content_type)

    def discard(self) -> None:
        self._file.close()
        _remove_file(self._path)


class Source:
    """The source of an upload's bytes; read again for every repetition."""

    def __init__(self, content: Upload | ResultFile | Content) -> None:
        name: str | None = None
        content_type: str | None = None
        if isinstance(content, Upload):
            name, content_type, content = content.name, content.content_type, content.content
        elif isinstance(content, ResultFile):
            name, content_type = content.name, content.content_type
        self._start = 0
        self._path: str | None = None
        self._bytes: bytes | memoryview | None = None
        self._file: IO[bytes] | None = None
        self.length: int | None
        if isinstance(content, (bytes, bytearray, memoryview)):
            # A file that changes while it is sent would not match its length, or a repetition.
            self._bytes = content if isinstance(content, bytes) else bytes(content)
            self.length = len(self._bytes)
        elif isinstance(content, (str, os.PathLike)):
            self._path = os.fspath(content)
            if os.path.isdir(self._path):
                raise BadArguments(f"{self._path} is a folder: give the path of a file")
            self.length = os.stat(self._path).st_size
            name = name or os.path.basename(self._path)
        else:
            self._file = content
            own_name = getattr(content, "name", None)
            name = name or (os.path.basename(own_name) if isinstance(own_name, str) else None)
            self.length = self._measure(content)
        self.name = name or "file"
        guessed = mimetypes.guess_type(self.name)[0] or "application/octet-stream"
        self.content_type = content_type or guessed

    @property
    def repeatable(self) -> bool:
        return self._file is None or self.length is not None

    def chunks(self) -> Iterator[bytes]:
        if self._bytes is not None:
            yield bytes(self._bytes)
        elif self._path is not None:
            with open(self._path, "rb") as file:
                yield from self._read(file)
        elif self._file is not None:
            if self.length is not None:
                self._file.seek(self._start)
            yield from self._read(self._file)

    def _measure(self, file: IO[bytes]) -> int | None:
        """Bytes from the current position to the end; None for pipes and the like."""
        try:
            self._start = file.tell()
            end = file.seek(0, os.SEEK_END)
            file.seek(self._start)
        except (AttributeError, OSError):
            return None
        return end - self._start

    def _read(self, file: IO[bytes]) -> Iterator[bytes]:
        left = self.length
        while left is None or left > 0:
            chunk = file.read(CHUNK_BYTES if left is None else min(CHUNK_BYTES, left))
            if not isinstance(chunk, bytes):
                raise BadArguments(f"the file {self.name} gives text: open it with mode 'rb'")
            if not chunk:
                break
            left = None if left is None else left - len(chunk)
            yield chunk
        if left:
            raise BadArguments(f"the file {self.name} became shorter while it was sent")
