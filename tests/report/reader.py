"""Reads a page as a strict browser would."""

import re
from html.parser import HTMLParser

_VOID = {"meta", "link", "img", "br"}
# Shapes of SVG that close themselves.
_SHAPES = {"path", "polyline", "image", "rect", "circle"}


class PageReader(HTMLParser):
    """Every tag that is opened is closed in its turn; all that a page would load is remembered."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.loads, self.ids, self.classes, self.words = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.stack == [], self.stack

    def handle_starttag(self, tag, attrs):
        self._note(attrs)
        if tag not in _VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in _SHAPES, tag
        self._note(attrs)

    def handle_endtag(self, tag):
        assert self.stack and self.stack[-1] == tag, (tag, self.stack)
        self.stack.pop()

    def handle_data(self, data):
        if self.stack and self.stack[-1] not in ("style", "script"):
            self.words.append(data)

    def _note(self, attrs):
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action", "poster", "xlink:href"):
                self.loads.append(value)
            assert not name.startswith("on"), name
            if name == "id":
                self.ids.append(value)
            if name == "class":
                self.classes.append(value)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def read_page(text):
    """The page, after making sure that it is complete."""
    assert text.startswith("<!doctype html>") and text.endswith("</html>\n")
    assert len(text.encode()) < 10_000_000
    assert "<script" not in text and "@import" not in text and "url(" not in text
    page = PageReader(text)
    assert all(load.startswith(("data:", "#")) for load in page.loads)
    links = [load[1:] for load in page.loads if load.startswith("#")]
    assert links == page.ids, "every part can be gone to"
    return page
