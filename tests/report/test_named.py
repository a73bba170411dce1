"""A page under the names that people gave."""

from dataclasses import replace

import torch

from tests.report.subjects import images, subject
from tusk.naming import Naming
from tusk.naming.edits import Hide, Merge, Rename
from tusk.naming.types import edited
from tusk.report.build import make_page
from tusk.report.named import name_predictions, plain_types
from tusk.report.page import write_page
from tusk.report.predictions import predict


def named(types):
    now = Naming(model="0" * 64, types=types)
    for edit in (Rename(type=0, name="<i>cell"), Merge(into=0, other=1)):
        now = edited(now, edit)
    return now


def test_predictions_follow_merges_and_hidden_types():
    about, shown = subject(), images()
    types = about.config.model.types
    centres = about.network.prototypes.centres().detach()
    raw = predict(about.network, shown.sample, 2)
    merged, page_types = name_predictions(raw, named(types), centres)
    assert (merged.label[(raw.label == 1) & raw.found] == 0).all()
    assert page_types.titles[0] == "<i>cell" and page_types.tag(2) is None and 1 not in page_types.shown
    assert page_types.centres.shape == centres.shape and bool(torch.isfinite(page_types.centres).all())
    kind = int(raw.label[raw.found][0])
    without, _ = name_predictions(raw, edited(Naming(model="0" * 64, types=types), Hide(type=kind)), centres)
    assert not bool((without.found & (raw.label == kind)).any())
    assert plain_types(types, centres).shown == tuple(range(types))


def test_a_page_shows_the_names(tmp_path):
    about, shown = subject(), images()
    about = replace(about, naming=named(about.config.model.types))
    write_page(tmp_path / "page.html", make_page(about, shown, plane=False))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "&lt;i&gt;cell" in text and "<i>cell" not in text
