"""Draws the scanned pages in ``samples``: text on grey paper, a little turned, with dust.

    python make_samples.py

Its output is the same every time: the font is Pillow's own, and the dust is seeded.
"""

import random
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter, ImageFont

FOLDER = Path(__file__).parent / "samples"
SIZE = (900, 640)
MARGIN = 60
PAPER, INK = 236, 40
GREYS = 16
"""Of the saved picture; more would make the files larger, and the text no easier to read."""

PAGES = {
    "invoice": (
        ["Invoice 2047", "Harbour Lamps Ltd", "12 brass lenses    480.00",
         "3 wicks, cotton    7.50", "Total due    487.50"],
        0.8,
    ),
    "letter": (
        ["Dear Mrs Fenwick,", "the lamp of your lighthouse is repaired.",
         "It burns again since Tuesday evening.", "Please send the boat on 14 March.",
         "Yours, Albert Moss"],
        -1.2,
    ),
    "sign": (["HARBOUR OFFICE", "Open 8:30 to 16:00", "Ring the bell twice"], 0.0),
}  # fmt: skip


def draw(lines: list[str], degrees: float, seed: int) -> Image.Image:
    dust = random.Random(seed)
    page = Image.new("L", SIZE, PAPER)
    pen = ImageDraw.Draw(page)
    font = ImageFont.load_default(34)
    for row, line in enumerate(lines):
        pen.text((MARGIN, MARGIN + row * 90), line, fill=INK, font=font)
    for _ in range(400):
        pen.point((dust.randrange(SIZE[0]), dust.randrange(SIZE[1])), fill=dust.randrange(90, 200))
    page = page.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=PAPER)
    return page.filter(ImageFilter.GaussianBlur(0.6)).quantize(GREYS)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    scans = [draw(*PAGES[name], seed).convert("L") for seed, name in enumerate(("sign", "letter"))]
    scans[0].save(FOLDER / "scans.pdf", save_all=True, append_images=scans[1:], resolution=150)
    for seed, (name, (lines, degrees)) in enumerate(PAGES.items()):
        draw(lines, degrees, seed).save(FOLDER / f"{name}.png", optimize=True)
