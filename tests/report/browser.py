"""A page in a real browser, where there is one on the machine: what it measures after laying the page out."""

import html
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip

# The page stands in frames of the wanted widths: a window has a least width of its own. The page has no scripts.
_FRAME = '<iframe style="border:0" width="{width}" height="900" srcdoc="{page}"></iframe>'
_MEASURE = """
<pre id="measured"></pre><script>
function measure(page) {
  const outside = [];
  for (const drawing of page.querySelectorAll("svg.points")) {
    const frame = drawing.getBoundingClientRect(), slack = 1;
    for (const mark of drawing.querySelectorAll(".numbers text, .numbers rect, .total, .shade")) {
      const box = mark.getBoundingClientRect();
      if (box.left < frame.left - slack || box.top < frame.top - slack || box.right > frame.right + slack
          || box.bottom > frame.bottom + slack) outside.push(mark.textContent || mark.tagName);
    }
  }
  const high = name => page.querySelector("svg.points " + name).getBoundingClientRect().height;
  const letters = [...page.querySelectorAll("p, figcaption, li, dd, h1")].map(
    one => parseFloat(getComputedStyle(one).fontSize));
  return {
    wide: page.documentElement.scrollWidth, outside: outside, number: high(".numbers text"), total: high(".total"),
    smallest: Math.min(...letters), broken: [...page.images].filter(one => !one.naturalWidth).length,
    pictures: page.images.length, heading: page.querySelector("h1").textContent,
  };
}
addEventListener("load", () => {
  const frames = [...document.querySelectorAll("iframe")].map(
    frame => [frame.width, measure(frame.contentDocument)]);
  document.getElementById("measured").textContent = JSON.stringify(frames);
});
</script>
"""


def find_browser():
    """A Chromium or its like; None where there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name)) is not None), None)


def measure(browser, text, widths):
    """What the browser makes of a page at each of these widths, in pixels."""
    frames = "".join(_FRAME.format(width=width, page=html.escape(text)) for width in widths)
    with tempfile.TemporaryDirectory() as folder:
        harness = Path(folder) / "harness.html"
        harness.write_text(f'<!doctype html><meta charset="utf-8">{frames}{_MEASURE}', encoding="utf-8")
        command = [browser, *_QUIET, f"--user-data-dir={folder}/profile", "--window-size=2000,1000", "--dump-dom"]
        done = subprocess.run([*command, harness.as_uri()], capture_output=True, text=True, timeout=100)
    measured = re.search(r'<pre id="measured">(.*?)</pre>', done.stdout, re.S)
    assert measured is not None, done.stderr[-2000:]
    return {int(width): seen for width, seen in json.loads(html.unescape(measured[1]))}
