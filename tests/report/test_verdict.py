"""The verdict on real networks: yes to a model that comes with tusk, no to the same one with its weights shaken."""

import copy

import pytest
import torch

from tusk.report.build import make_page
from tusk.report.subject import Subject, open_images, open_subject

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tetrominoes():
    subject = open_subject("tetrominoes")
    return subject, open_images(subject.config, None, 24)


def verdict(subject, images):
    page = make_page(subject, images, plane=False)
    return page.verdict, {remark.fact: remark.level for remark in page.remarks}


def test_yes_to_a_shipped_model(tetrominoes):
    said, lines = verdict(*tetrominoes)
    assert said.level == "ok" and said.sentence.startswith("These points look sound: "), lines
    assert "bad" not in lines.values()


def test_no_to_a_network_that_knows_nothing(tetrominoes):
    subject, images = tetrominoes
    network = copy.deepcopy(subject.network)
    generator = torch.Generator().manual_seed(0)
    for value in network.parameters():
        value.data = value.data[torch.randperm(len(value), generator=generator)]
    shaken = Subject(network, subject.config)  # no least gain: every keypoint counts
    said, lines = verdict(shaken, images)
    assert said.level == "bad" and said.sentence.startswith("Do not trust these points yet: "), lines
