"""Reads the text on pictures of pages, with the models of RapidOCR, whose wheel carries them."""

import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from pydantic import BaseModel, Field
from rapidocr_onnxruntime import RapidOCR
from tessera import BadInput, Context, File, FileType, api, counter, service, task

FORMATS = ("PNG", "JPEG", "TIFF", "WEBP")
MAX_PAGES = 200
MAX_PAGE_BYTES = 20_000_000
MAX_PAGE_PIXELS = 40_000_000
"""A sheet of A4 at 600 dots per inch has 35 million."""

MAX_DOCUMENT_BYTES = 200_000_000
DOTS_PER_INCH = 150
DRAWING_SECONDS = 60
"""For one page, which poppler draws."""

Document = Annotated[File, FileType("application/pdf", max_bytes=MAX_DOCUMENT_BYTES)]
Scan = Annotated[File, FileType("image/*", max_bytes=MAX_PAGE_BYTES)]

pages_read = counter("ocr_pages_read", help="Pages that were read.")


class Line(BaseModel):
    """A line of text, and where it stands."""

    text: str
    confidence: float = Field(description="From 0 to 1.")
    box: list[tuple[float, float]] = Field(
        description="The corners in pixels, clockwise from the top left one."
    )


class Page(BaseModel):
    filename: str | None
    width: int = Field(description="In pixels, upright.")
    height: int
    text: str = Field(description="All lines, from top to bottom.")
    lines: list[Line]


@service(name="ocr", metrics=[pages_read], packages=["poppler-utils"], processes=8)
class Ocr:
    """Reads the text on pictures of pages, PNG, JPEG, TIFF or WebP, and on those of a PDF."""

    def setup(self) -> None:
        self.models = RapidOCR()
        # RapidOCR keeps what it works on in itself, so that it reads one page at a time.
        self.turn = threading.Lock()

    @api(timeout="60s", concurrency=1)
    def read(self, image: Scan) -> Page:
        """Reads one picture."""
        return self.page(image)

    @task(timeout="1h", retries=2)
    def read_pages(
        self, pages: Annotated[list[Scan], Field(min_length=1, max_length=MAX_PAGES)], ctx: Context
    ) -> list[Page]:
        """Reads many, and tells its progress page by page."""
        read = []
        for number, scan in enumerate(pages, 1):
            ctx.check()
            read.append(self.page(scan))
            ctx.progress(number / len(pages), f"page {number} of {len(pages)}")
        return read

    @task(timeout="2h", retries=2)
    def read_document(self, document: Document, ctx: Context) -> list[Page]:
        """Reads the pages of a PDF as they look, also where they are scans."""
        count = pages_of(document)
        read = []
        for number, drawn in enumerate(draw(document, count), 1):
            ctx.check()
            read.append(self.page(File.from_path(drawn, content_type="image/png")))
            ctx.progress(number / count, f"page {number} of {count}")
        return read

    def page(self, scan: File) -> Page:
        picture = decode(scan)
        # RapidOCR takes blue, green, red.
        pixels = np.asarray(picture)[:, :, ::-1]
        with self.turn:
            found, _ = self.models(pixels)
        lines = [
            Line(text=text, confidence=round(float(confidence), 3), box=box)
            for box, text, confidence in found or []
        ]
        pages_read.inc()
        return Page(
            filename=scan.name,
            width=picture.width,
            height=picture.height,
            text="\n".join(line.text for line in lines),
            lines=lines,
        )


def pages_of(document: File) -> int:
    """How many pages a PDF has."""
    name = document.name or "the document"
    asked = subprocess.run(
        ["pdfinfo", str(document.path)], capture_output=True, text=True, timeout=DRAWING_SECONDS
    )
    found = re.search(r"^Pages:\s+(\d+)$", asked.stdout, re.MULTILINE)
    if found is None:
        raise BadInput(f"{name} is no PDF that poppler reads")
    count = int(found[1])
    if count > MAX_PAGES:
        raise BadInput(f"{name} has {count} pages; at most {MAX_PAGES} are read")
    return count


def draw(document: File, count: int) -> Iterator[Path]:
    """Pictures of the pages, one after the other, each there until the next is asked for."""
    name = document.name or "the document"
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder, "page")
        for number in range(1, count + 1):
            only = ["-f", str(number), "-l", str(number), "-singlefile"]
            command = ["pdftoppm", "-png", "-r", str(DOTS_PER_INCH), *only]
            done = subprocess.run(
                [*command, str(document.path), str(drawn)],
                capture_output=True,
                timeout=DRAWING_SECONDS,
            )
            if done.returncode != 0:
                raise BadInput(f"page {number} of {name} is damaged")
            yield drawn.with_suffix(".png")


def decode(scan: File) -> Image.Image:
    """The picture upright and in colour, on white where it is transparent."""
    name = scan.name or "the picture"
    try:
        with scan.open() as opened, Image.open(opened, formats=FORMATS) as picture:
            if picture.width * picture.height > MAX_PAGE_PIXELS:
                raise BadInput(
                    f"{name} has {picture.width} x {picture.height} pixels; "
                    f"at most {MAX_PAGE_PIXELS:,} are read"
                )
            upright = ImageOps.exif_transpose(picture).convert("RGBA")
    except UnidentifiedImageError:
        raise BadInput(f"{name} is no PNG, JPEG, TIFF or WebP picture") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise BadInput(f"{name} is damaged: {error}") from None
    paper = Image.new("RGBA", upright.size, "white")
    return Image.alpha_composite(paper, upright).convert("RGB")
