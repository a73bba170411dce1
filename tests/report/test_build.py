"""The whole page of small subjects: its parts, its counts, and what making it leaves alone."""

import re

import numpy as np
import pytest
import torch

from tests.report.reader import read_page
from tests.report.subjects import Squares, images, subject
from tusk.data.dataset import Truth
from tusk.data.synthetic.faces.shape import LANDMARKS
from tusk.report.build import make_page, training_pages
from tusk.report.page import render_page
from tusk.report.predictions import predict
from tusk.report.sample import sample_of
from tusk.report.subject import Images
from tusk.training.run import TrainingState

ALWAYS = ["state", "run", "images", "types"]
LAYERS = {"decode": "layers", "background": "colour"}


@pytest.fixture(scope="module")
def rendered():
    pages = {
        "classes": (subject(), images("class")),
        "attributes and layers": (subject(model=LAYERS), images("attributes")),
        "windowed layers, nothing known": (
            subject(model={"decode": "layers", "layer_window": 16}),
            images("nothing", 7),
        ),
        "one image": (subject(), images("nothing", 1)),
    }
    return {name: (*given, read_page(render_page(make_page(*given)))) for name, given in pages.items()}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("classes", [*ALWAYS, "plane", "confusion"]),
        ("attributes and layers", [*ALWAYS, "layers", "plane", "confusion"]),
        ("windowed layers, nothing known", [*ALWAYS, "layers"]),
        ("one image", ALWAYS),
    ],
)
def test_each_subject_has_its_parts(rendered, name, parts):
    assert rendered[name][2].ids == parts


def test_counts_are_those_of_a_slow_count(rendered):
    for about, shown, page in rendered.values():
        counts = [0] * about.config.model.types
        with torch.no_grad():
            for image in shown.sample.images:
                output = about.network(image[None].float() / 255, missing="empty")
                for label, found in zip(output.label[0].tolist(), output.found[0].tolist(), strict=True):
                    counts[label] += found
        shown_counts = [int(count) for count in re.findall(r"([\d,]+) found,", page.text)]
        assert shown_counts == counts
        shares = re.findall(r"found, ([\d.]+%)", page.text)
        assert shares == [f"{count / max(1, sum(counts)):.1%}" for count in counts]
        assert f"{sum(count > 0 for count in counts)} of {len(counts)}" in page.text


def test_every_image_and_type_is_drawn(rendered):
    for _, shown, page in rendered.values():
        assert sum("example " in kind for kind in page.classes) == min(12, len(shown.sample))
        assert sum(kind.startswith("type card") for kind in page.classes) == 4
        assert sum("chart" in kind for kind in page.classes) == 0, "there are no logs"
    assert sum("layered" in kind for kind in rendered["attributes and layers"][2].classes) == 4


def test_confusion_adds_up_to_all_keypoints(rendered):
    about, shown, page = rendered["classes"]
    table = page.text.partition("Types and class")[2].partition("How it learnt")[0]
    cells = re.split(r"type \d", table)[1:]
    total = sum(int(number) for cell in cells for number in re.findall(r"\b\d+\b", cell.partition("Written")[0]))
    assert total == int(predict(about.network, shown.sample, 0).found.sum())


@pytest.mark.parametrize("model", [{}, LAYERS])
def test_network_and_random_numbers_are_left_alone(model):
    about, shown = subject(model=model), images("class", 5)
    network = about.network.train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    make_page(about, shown)
    assert network.training and torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_the_same_subject_gives_the_same_page():
    assert render_page(make_page(subject(), images())) == render_page(make_page(subject(), images()))


def test_training_refreshes_a_light_page_and_ends_with_a_full_one(tmp_path):
    about, shown = subject(), images()
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "contrast": 2.5}\n{"step": 2, "contrast": 1.5}\n{"st')
    write = training_pages(tmp_path / "report.html", about.config, shown, "tusk train x")
    write(about.network, TrainingState(10, 90.0, False, None))
    page = read_page((tmp_path / "report.html").read_text())
    assert "not finished" in page.text and "after 10 steps (50%)" in page.text and "1.5 minutes" in page.text
    assert "plane" not in page.ids and "curves" in page.ids
    write(about.network, TrainingState(20, 120.0, True, None))
    page = read_page((tmp_path / "report.html").read_text())
    assert "not finished" not in page.text and "plane" in page.ids and "tusk train x" in page.text
    assert {file.name for file in tmp_path.iterdir()} == {"metrics.jsonl", "report.html"}


def test_many_types_and_keypoints_stay_within_the_limit():
    about = subject(model={"types": 300, "keypoints": 12})
    page = read_page(render_page(make_page(about, images("nothing", 60), plane=False)))
    assert "120 most used of 300 types" in page.text
    assert sum(kind.startswith("type card") for kind in page.classes) == 120


class Landmarks(Squares):
    """Squares whose truth is five landmarks of one face."""

    def __init__(self):
        super().__init__("class", 20)
        self.class_names = LANDMARKS

    def truth(self, index):
        x, y = self.drawn(index)[0][0]
        return Truth(points=np.array([[x, y], [x + 6, y], [x + 3, y + 3], [x, y + 6], [x + 6, y + 6]], np.float32))


def test_landmark_data_is_told_by_its_landmark_error():
    sample = sample_of(Landmarks(), 20)
    page = read_page(render_page(make_page(subject(), Images(sample, "of faces"), plane=False)))
    assert "landmark error, as a share of the distance between the eyes; the mean guess has" in page.text
    assert "One linear layer reads the true landmarks off the points with an error of" in page.text
    assert "things found" not in page.text and "of the things" not in page.text.partition("How it is doing")[0]


def test_the_verdict_stands_above_everything_else():
    page = make_page(subject(), images("nothing"), plane=False)
    text = render_page(page)
    assert page.verdict is not None and page.verdict.level in ("warn", "bad"), "the network knows nothing"
    assert text.index('class="verdict') < text.index('class="lead"')
    assert "The training was short" not in text, "nothing is known of its training"


def test_a_training_is_told_what_its_page_says(tmp_path):
    about = subject()
    write = training_pages(tmp_path / "report.html", about.config, images("nothing", 8), "tusk train x")
    said = write(about.network, TrainingState(20, 120.0, True, None))
    assert said is not None and said in read_page((tmp_path / "report.html").read_text()).text
    assert "The training was short (20 steps" in read_page((tmp_path / "report.html").read_text()).text
