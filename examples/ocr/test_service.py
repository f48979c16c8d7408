"""The service without a server: `python -m pytest examples/ocr`."""

import io
import sys
from pathlib import Path

import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))

from tessera import BadInput, File
from tessera.testing import Told, call_sync

from service import Ocr

SAMPLES = Path(__file__).parent / "samples"


def letters(text: str) -> str:
    return "".join(text.split())


def test_reads_a_page_with_its_boxes() -> None:
    page = call_sync(Ocr.read, image=SAMPLES / "sign.png")
    assert letters(page["text"]) == "HARBOUROFFICEOpen8:30to16:00Ringthebelltwice"
    assert (page["filename"], page["width"], page["height"]) == ("sign.png", 900, 640)
    for line in page["lines"]:
        assert line["confidence"] > 0.9
        assert len(line["box"]) == 4
        assert all(0 <= x <= 900 and 0 <= y <= 640 for x, y in line["box"])


def test_reads_pages_in_their_order_and_tells_each() -> None:
    told = Told()
    pages = [SAMPLES / "sign.png", SAMPLES / "invoice.png"]
    read = call_sync(Ocr.read_pages, pages=pages, told=told)
    assert [page["filename"] for page in read] == ["sign.png", "invoice.png"]
    assert told.progress == [(0.5, "page 1 of 2"), (1.0, "page 2 of 2")]


def test_finds_nothing_on_an_empty_and_transparent_page() -> None:
    drawn = io.BytesIO()
    Image.new("RGBA", (300, 200), (0, 0, 0, 0)).save(drawn, "PNG")
    image = File.from_bytes(drawn.getvalue(), name="blank.png")
    page = call_sync(Ocr.read, image=image)
    assert (page["text"], page["lines"]) == ("", [])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"hello", "page.png is no PNG, JPEG, TIFF or WebP picture"),
        ((SAMPLES / "sign.png").read_bytes()[:3000], "page.png is damaged: "),
    ],
)
def test_refuses_what_is_no_picture(content: bytes, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        call_sync(Ocr.read, image=File.from_bytes(content, name="page.png"))


def test_refuses_a_picture_with_too_many_pixels() -> None:
    drawn = io.BytesIO()
    Image.new("1", (10_000, 5_000)).save(drawn, "PNG")
    with pytest.raises(BadInput, match="10000 x 5000 pixels; at most 40,000,000"):
        call_sync(Ocr.read, image=File.from_bytes(drawn.getvalue(), name="wall.png"))


def test_reads_the_pages_of_a_document_and_tells_each() -> None:
    told = Told()
    read = call_sync(Ocr.read_document, document=SAMPLES / "scans.pdf", told=told)
    sign, letter = (letters(page["text"]) for page in read)
    assert "Ringthebelltwice" in sign
    assert "lighthouse" in letter
    assert told.progress == [(0.5, "page 1 of 2"), (1.0, "page 2 of 2")]


def test_refuses_what_is_no_document() -> None:
    text = File.from_bytes(b"%PDF-1.7\nnothing more", name="note.pdf")
    with pytest.raises(BadInput, match="note.pdf is no PDF that poppler reads"):
        call_sync(Ocr.read_document, document=text)
