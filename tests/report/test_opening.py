"""What a reader who counts cells meets: the counts first, a legend, a line for every figure, at any width."""

import re
from dataclasses import replace

import pytest
import torch

from tests.report.browser import find_browser, measure
from tests.report.reader import read_page
from tests.report.subjects import images, subject
from tusk.report.build import make_page
from tusk.report.opening import make_opening
from tusk.report.page import render_page
from tusk.report.predictions import predict


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A page with every kind of figure on it."""
    logs = tmp_path_factory.mktemp("logs")
    (logs / "metrics.jsonl").write_text('{"step": 1, "info_nce": 2.5}\n{"step": 2, "info_nce": 1.5}\n')
    (logs / "results.csv").write_text("step,agreement,reconstruction_error\n1,0.5,0.2\n2,0.6,0.1\n")
    about = replace(subject(model={"decode": "layers", "background": "colour"}), logs=logs, least_gain=0.0)
    given = images("attributes")
    return about, given, render_page(make_page(about, given))


def test_a_page_opens_with_what_was_found(shown):
    about, given, text = shown
    page = read_page(text)
    predictions = predict(about.network, given.sample, 0, about.settings)
    counts = predictions.counts(4).tolist()
    opened = page.text.partition("How it is doing")[2].partition("How it is doing")[0]  # after the links
    assert f"Found {sum(counts):,} things in 40 pictures" in opened
    assert opened.index("Found ") < opened.index("of type") < opened.index("Colour and number of each type")
    for number, count in enumerate(counts):
        assert not count or f"{count} of type {number}" in opened
    legend = text.partition('<ul class="counts card">')[2].partition("</ul>")[0]
    assert [int(number) for number in re.findall(r">(\d+)</i>", legend)] == [0, 1, 2, 3]
    assert [int(count) for count in re.findall(r"<b>(\d+)</b>", legend)] == counts
    limited = int(predictions.limits.at_limit)
    assert (f"{limited} of 40 pictures used all 3 keypoints" in opened) == (limited > 0) and limited


def test_every_figure_has_a_line_of_explanation(shown):
    text = shown[2]
    for section in text.split("<section ")[1:]:
        assert re.search(r'</h2><p class="soft">[^<]{20,}</p>', section), section[:80]
    for chart in text.split('<figure class="chart card">')[1:]:
        assert re.search(r'</h3><p class="soft">[^<]{20,}</p>', chart), chart[:80]
    figures = text.partition('<div class="figures">')[2].partition('<div class="overview">')[0]
    assert all(len(words) > 15 for words in re.findall(r'<span class="soft">(.*?)</span>', figures))
    captions = re.findall(r"<figcaption>([a-z, ]+)", text)
    explained = " ".join(re.findall(r"<dt>(.*?)</dt>", text))
    for caption in ("points", "image", "score map", "reconstruction", "masks, by type"):
        assert any(words.startswith(caption) for words in captions) and caption in explained
    assert "A keypoint should be recognised in the other view among all keypoints of the batch. Lower" in text


def test_many_types_and_none():
    about, given = subject(model={"types": 300}), images("nothing", 5)
    predictions = predict(about.network, given.sample, 0)
    opening = make_opening(predictions, 300, tiles=True)
    assert opening.heading.startswith("Found ") and opening.heading.endswith(" in 5 tiles")
    assert opening.legend.count("<li") == 41 and "and 260 more types" in opening.legend
    used = [number for number, count in enumerate(predictions.counts(300).tolist()) if count]
    assert all(f">{number}</i>" in opening.legend for number in used)
    nothing = make_opening(replace(predictions, found=torch.zeros_like(predictions.found)), 300)
    assert nothing.heading == "Found 0 things in 5 pictures" and nothing.words == ""


def test_numbers_and_the_count_lie_inside_the_pictures(shown):
    """From the page's text, so that it is checked on every machine."""
    drawings = re.findall(r'<svg class="points" viewBox="0 0 ([\d.]+) ([\d.]+)".*?</svg>', shown[2], re.S)
    assert len(drawings) == 12
    boxes = re.findall(r'<rect[^>]* x="(-?[\d.]+)" y="(-?[\d.]+)" width="([\d.]+)" height="([\d.]+)"', shown[2])
    assert len(boxes) > 12, "a field for each count, and some for numbers"
    width, height = map(float, drawings[0])
    for left, top, wide, high in (map(float, box) for box in boxes):
        assert left >= 0 and top >= 0 and left + wide <= width + 0.2 and top + high <= height + 0.2
    assert shown[2].count(" found</text>") == 12


@pytest.mark.slow
def test_in_a_browser_nothing_is_cut_at_any_width(shown):
    """Where no browser is installed, the tests above have read the same page by its structure."""
    browser = find_browser()
    if browser is None:
        assert read_page(shown[2]).ids
        return
    for width, seen in measure(browser, shown[2], (400, 1000, 1800)).items():
        assert seen["wide"] <= width, "nothing to scroll sideways"
        assert seen["outside"] == [], "numbers are not cut"
        assert seen["number"] >= 10 and seen["total"] >= 10 and seen["smallest"] >= 11, seen
        assert seen["broken"] == 0 and seen["pictures"] > 40 and seen["heading"].startswith("Found ")
