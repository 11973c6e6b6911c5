"""Runs a real browser, headless Chromium, for the tests of HTML pages."""

import html
import re
import shutil
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium") or shutil.which("google-chrome")
MODES = ("light", "dark")


def browse(address, *options, mode="light", screenshot=None, size=(1200, 2100)):
    """Loads the document at an address or in a file, without a network. Returns the document after its scripts have run, and their console output.

    mode: the preferred colour scheme. screenshot: a PNG file to write.
    """
    if isinstance(address, Path):
        address = address.absolute().as_uri()
    if screenshot:
        Path(screenshot).parent.mkdir(parents=True, exist_ok=True)
        options = (*options, f"--screenshot={Path(screenshot).absolute()}", "--hide-scrollbars")
    with tempfile.TemporaryDirectory() as profile:
        result = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
             "--enable-logging=stderr", "--proxy-server=127.0.0.1:9", f"--window-size={size[0]},{size[1]}", "--dump-dom",
             f"--blink-settings=preferredColorScheme={0 if mode == 'dark' else 1}", *options, address],
            capture_output=True, text=True, timeout=120, check=True)
    return result.stdout, [line for line in result.stderr.splitlines() if "CONSOLE" in line]


def probe(page, expression, **arguments):
    """Returns, as text, the value of a JavaScript expression in a page that has loaded."""
    copy = page.with_name(f"probe-{page.name}")
    script = f'<script>addEventListener("load", () => document.body.setAttribute("data-probe", {expression}))</script>'
    copy.write_text(page.read_text().replace("</body>", f"{script}</body>"))
    try:
        document, _ = browse(copy, "--virtual-time-budget=5000", **arguments)
    finally:
        copy.unlink()
    return html.unescape(re.search(r'data-probe="([^"]*)"', document)[1])


def brightness(picture, rows=300):
    """Returns the mean of the samples in the first rows of a PNG file from Chromium: 0 (black) to 255."""
    data = Path(picture).read_bytes()
    width, height, depth, colours = struct.unpack(">IIBB", data[16:26])
    assert depth == 8 and colours in (2, 6), "not a picture of Chromium"
    start, packed = 8, b""
    while start < len(data):
        length, kind = struct.unpack(">I4s", data[start:start + 8])
        packed += data[start + 8:start + 8 + length] if kind == b"IDAT" else b""
        start += length + 12
    step = 3 if colours == 2 else 4
    stride = width * step
    rows = min(rows, height)
    lines = zlib.decompressobj().decompress(packed, rows * (stride + 1))
    above, total = bytearray(stride), 0
    for row in range(rows):
        method, line = lines[row * (stride + 1)], bytearray(lines[row * (stride + 1) + 1:(row + 1) * (stride + 1)])
        for i in range(stride) if method else ():
            left, corner = (line[i - step], above[i - step]) if i >= step else (0, 0)
            line[i] = line[i] + predicted(method, left, above[i], corner) & 255
        above = line
        total += sum(line)
    return total / (rows * stride)


def predicted(method, left, above, corner):
    """Returns the value that PNG's filters 1 to 4 predict for a sample."""
    if method < 4:
        return (left, above, (left + above) // 2)[method - 1]
    guess = left + above - corner
    return min((left, above, corner), key=lambda sample: abs(guess - sample))
