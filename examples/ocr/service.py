"""Reads the text on pictures of pages, with the models of RapidOCR, whose wheel carries them."""

import threading
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


@service(name="ocr", metrics=[pages_read])
class Ocr:
    """Reads the text on pictures of pages: PNG, JPEG, TIFF or WebP."""

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
