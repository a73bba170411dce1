"""The task's figures while a run goes on."""

import numpy as np

from tests.evaluation.test_evaluate import LAYERS, model
from tusk.data.dataset import Truth
from tusk.data.datasets.tetrominoes import Tetrominoes
from tusk.training.figures import task_figures
from tusk.training.run import sample_validation_images


class Squares:
    """Pictures of two squares, a red and a blue one, with masks; the colour of a pixel tells which it is."""

    name = "squares"
    class_names = ()

    def __len__(self):
        return 4

    def image(self, index):
        image = np.zeros((32, 32, 3), np.uint8)
        image[4:12, 4 + index : 12 + index], image[20:28, 20:28] = (255, 0, 0), (0, 0, 255)
        return image

    def truth(self, index):
        image = self.image(index)
        return Truth(mask=((image[..., 0] > 0) + 2 * (image[..., 2] > 0)).astype(np.uint8))


def test_figures_while_training_know_masks_and_attributes():
    stored = model(**LAYERS)
    held = sample_validation_images(Tetrominoes(count=4))
    config = stored.config.model_copy(update={"data": stored.config.data.model_copy(update={"size": 35})})
    figures = task_figures(stored.network, config, held.images, held.truths, held.class_count)
    assert set(figures) == {"ari_foreground", "mean_iou", "shape", "color", "matched"}
    assert all(0 <= value <= 1 or name == "ari_foreground" for name, value in figures.items())
    squares = sample_validation_images(Squares())
    assert set(task_figures(stored.network, config, squares.images, squares.truths, 0)) == {
        "ari_foreground",
        "mean_iou",
    }
    assert task_figures(model().network, model().config, squares.images, squares.truths, 0) == {}
