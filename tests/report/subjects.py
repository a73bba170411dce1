"""Small things to report on: squares of two colours, with and without truth, and untrained networks."""

import numpy as np

from tests.training.test_trainer import configured
from tusk.data.dataset import Attribute, Truth
from tusk.model.network import seeded_network
from tusk.report.sample import sample_of
from tusk.report.subject import Images, Subject

COLOURS = ((230, 40, 40), (40, 60, 240))


class Squares:
    """Three squares of 6 pixels, red or blue, in images of 32; the truth says as much as `known` does."""

    name = "squares"

    def __init__(self, known="class", count=40):
        self.known, self.count = known, count
        self.class_names = ("red", "blue") if known == "class" else ()

    def __len__(self):
        return self.count

    def drawn(self, index):
        rng = np.random.default_rng(index)
        return rng.integers(1, 25, (3, 2)), rng.integers(0, 2, 3)

    def image(self, index):
        image = np.zeros((32, 32, 3), np.uint8)
        for (x, y), kind in zip(*self.drawn(index), strict=True):
            image[y : y + 6, x : x + 6] = COLOURS[kind]
        return image

    def truth(self, index):
        if self.known == "nothing":
            return None
        corners, kinds = self.drawn(index)
        corners = corners.astype(np.float32)
        boxes = np.concatenate([corners, corners + 6], 1)
        if self.known == "class":
            return Truth(points=corners + 2.5, classes=kinds.astype(np.int64), boxes=boxes)
        mask = np.zeros((32, 32), np.uint8)
        for number, (x, y) in enumerate(corners.astype(int)):
            mask[y : y + 6, x : x + 6] = number + 1
        color = Attribute(kinds.astype(np.int64), ("red", "blue"))
        return Truth(points=corners + 2.5, boxes=boxes, mask=mask, attributes={"color": color})


def subject(**parts):
    config = configured(**parts)
    return Subject(seeded_network(config.model, 0).eval(), config)


def images(known="class", count=40):
    sample = sample_of(Squares(known, count), count)
    return Images(sample, "of squares that it did not learn from")
