"""Writes what is sent: a file and a picture of about 200 kB, into the folder that is named."""

import sys
from io import BytesIO
from pathlib import Path

import numpy
from PIL import Image

SIZE = 200_000

folder = Path(sys.argv[1])
numbers = numpy.random.default_rng(1)
(folder / "file").write_bytes(numbers.bytes(SIZE))
picture = BytesIO()
side = 0
while picture.tell() < SIZE:
    side += 40
    grain = numbers.integers(0, 256, (side // 8, side // 8, 3), dtype=numpy.uint8)
    picture = BytesIO()
    Image.fromarray(grain).resize((side, side)).save(picture, "jpeg", quality=90)
(folder / "picture").write_bytes(picture.getvalue())
