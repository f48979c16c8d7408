"""Writes the files in ``samples``: small ones of several types, whose names do not tell which.

python make_samples.py
"""

import struct
import zipfile
import zlib
from pathlib import Path

FOLDER = Path(__file__).parent / "samples"

TEXTS = {
    "forecast": """\
import csv
import sys
from collections import defaultdict


def totals(path: str) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            sums[row["harbour"]] += float(row["hours"])
    return dict(sums)


if __name__ == "__main__":
    for name, hours in totals(sys.argv[1]).items():
        print(f"{name}: {hours:.1f}")
""",
    "lamps": """\
harbour,lamp,lit,hours
Northness,3,2026-03-01,11.5
Northness,4,2026-03-02,11.4
Eastbay,1,2026-03-01,11.2
Eastbay,1,2026-03-02,11.1
Gull Rock,7,2026-03-01,11.9
Gull Rock,7,2026-03-02,11.8
""",
    "settings": """\
{
  "harbour": "Northness",
  "lamps": [{"id": 3, "colour": "white"}, {"id": 4, "colour": "red"}],
  "interval_seconds": 12,
  "automatic": true
}
""",
    "notice": """\
<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Notice to keepers</title>
    <link rel="stylesheet" href="/harbour.css">
  </head>
  <body class="notice">
    <h1>Notice to keepers</h1>
    <p>Trim the wick <em>before</em> dusk, and note the hour in the book.</p>
    <table>
      <tr><th>Harbour</th><th>Lamp</th></tr>
      <tr><td>Northness</td><td>3</td></tr>
      <tr><td>Eastbay</td><td>1</td></tr>
    </table>
    <a href="/keepers">All notices</a>
    <script src="/clock.js"></script>
  </body>
</html>
""",
    "deploy": """\
#!/bin/sh
set -eu
for lamp in north east gull; do
  echo "lighting $lamp"
  curl --fail --silent "http://$lamp.example/on" >/dev/null || exit 1
done
""",
}


def picture() -> bytes:
    """A PNG picture of 32 by 32 pixels, from dark to light."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    side = 32
    rows = b"".join(b"\0" + bytes((x + y) * 4 for x in range(side)) for y in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in TEXTS.items():
        (FOLDER / name).write_text(text, newline="\n")
    (FOLDER / "emblem").write_bytes(picture())
    with zipfile.ZipFile(FOLDER / "parcel", "w") as archive:
        for name in ("lamps", "settings"):
            # Without the time of now, so that the file is the same every time.
            entry = zipfile.ZipInfo(f"{name}.txt", (2026, 3, 1, 12, 0, 0))
            archive.writestr(entry, TEXTS[name], zipfile.ZIP_DEFLATED)
