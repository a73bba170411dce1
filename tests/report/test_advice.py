"""Advice and verdict: a sound run gets a yes, and each fault its own line; advice never contradicts gains or limit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.model.test_unet import SIZED
from tests.report.subjects import Squares, images, subject
from tusk.config import Config
from tusk.evaluation.repeatability import RepeatabilityFigures
from tusk.presets import merge
from tusk.report.advice import remarks
from tusk.report.curves import Chart, Curve
from tusk.report.evidence import Evidence, TrainingLength, gather_evidence, training_length
from tusk.report.point_advice import size_advice
from tusk.report.predictions import predict
from tusk.report.remark import Remark, verdict_of
from tusk.training.validation import ValidationFigures, mean_image_error

FINE = ValidationFigures(4, 0.3, 0.9, 0.8, 0.01, 0.9, 0.8)
AGAIN = RepeatabilityFigures(0.97, 0.01, 100)
LONG = TrainingLength(5000, 80_000, 5000, 0.01)
ABOUT = subject()


class Apart(Squares):
    """Three squares that do not touch."""

    def drawn(self, index):
        rng = np.random.default_rng(index)
        return np.array([[2, 2], [22, 3], [12, 20]]) + rng.integers(0, 4, (3, 2)), rng.integers(0, 2, 3)


def found_at_centres():
    """Predictions as of a network that finds all squares."""
    sample = replace(
        images("nothing").sample,
        images=torch.from_numpy(np.stack([Apart().image(index) for index in range(40)])).permute(0, 3, 1, 2),
    )
    predictions = predict(ABOUT.network, sample, 0)
    centres = np.stack([Apart().truth(index).points for index in range(40)])
    types = torch.arange(120).view(40, 3) * 7 // 3 % 4
    return replace(
        predictions,
        xy=torch.as_tensor(centres, dtype=torch.float32),
        label=types,
        found=torch.ones_like(types, dtype=torch.bool),
        gain=torch.full(types.shape, 3.0),
        error=predictions.error * 0,
    )


def evidence_of(predictions, **parts):
    """Its own, with what a stub network cannot have in the place of the network's."""
    own = gather_evidence(ABOUT.network, predictions)
    return replace(own, **{"repeated": AGAIN, "learnt": LONG, "places": 0.0, "at_limit": 0.0} | parts)


def lines(predictions, validation=FINE, **parts):
    return remarks(predictions, ABOUT.config, validation, evidence_of(predictions, **parts))


def faults(predictions, validation=FINE, **parts):
    return {remark.words: remark.level for remark in lines(predictions, validation, **parts) if not remark.well}


def moved(predictions, slots, place=(31.0, 31.0)):
    """The same with the points of these slots in a corner, where there is nothing."""
    xy = predictions.xy.clone()
    xy[:, slots] = torch.tensor(place)
    return replace(predictions, xy=xy)


@pytest.fixture(scope="module")
def sound():
    return found_at_centres()


def test_a_sound_run_gets_a_yes_and_no_advice(sound):
    assert faults(sound) == {}
    verdict = verdict_of(lines(sound))
    assert verdict.level == "ok" and verdict.sentence == "These points look sound: 11 of 11 checks passed."


@pytest.mark.parametrize(
    ("change", "validation", "words"),
    [
        ({"label": torch.full((40, 3), 2)}, FINE, "3 of 4 types are hardly used (0, 1, 3): ask for fewer (--types 1)"),
        ({"label": torch.full((40, 3), 2)}, FINE, "Type 2 takes 100%"),
        ({}, replace(FINE, spread=0.01), "nearly all alike"),
        ({}, replace(FINE, agreement=0.1), "another type in another view"),
        ({"found": torch.zeros(40, 3, dtype=torch.bool)}, FINE, "No point was found in any image"),
    ],
)
def test_faults_of_types_and_descriptors(sound, change, validation, words):
    assert any(words in line for line in faults(replace(sound, **change), validation))


def test_a_poor_reconstruction_warns_and_none_is_bad(sound):
    whole = mean_image_error(sound.sample.images)
    half = faults(replace(sound, error=sound.error + 0.7 * whole))
    assert "warn" in half.values() and any("explains 30% of the variance" in words for words in half)
    nothing = faults(replace(sound, error=sound.error + whole))
    assert any("no better than the mean image" in words and level == "bad" for words, level in nothing.items())


def test_points_that_move_when_the_image_is_warped_are_not_trusted(sound):
    shaky = faults(sound, repeated=RepeatabilityFigures(0.7, 0.02, 100))
    assert list(shaky.values()) == ["bad"] and "30% of the points are not found again" in next(iter(shaky))
    assert list(faults(sound, repeated=RepeatabilityFigures(0.8, 0.02, 100)).values()) == ["warn"]
    verdict = verdict_of(lines(sound, repeated=RepeatabilityFigures(0.7, 0.02, 100)))
    assert verdict.level == "bad" and verdict.sentence.startswith("Do not trust these points yet: 30% of the points")


def test_points_on_nothing_are_bad_only_where_another_sign_agrees(sound):
    aside = moved(sound, [0])
    assert {words: level for words, level in faults(aside).items() if "on no thing" in words}.popitem()[1] == "warn"
    shaky = faults(aside, repeated=RepeatabilityFigures(0.8, 0.02, 100))
    assert [level for words, level in shaky.items() if "33% of the points lie on no thing" in words] == ["bad"]


def test_background_is_what_lies_on_nothing_and_matters_little(sound):
    label = sound.label % 3
    label[:, 0] = 3
    aside = replace(moved(sound, [0]), label=label)
    assert not any("background" in words for words in faults(aside)), "its gain says that it stands for something"
    gain = aside.gain.clone()
    gain[:, 0] = 0.0
    named = [words for words in faults(replace(aside, gain=gain)) if "background" in words]
    assert len(named) == 1 and "mostly of type 3, which is background: leave that out" in named[0]


def test_plain_discs_with_a_gain_are_not_empty_where_the_foreground_is_unclear(sound):
    """Large discs of one colour: uniform around their middle, which was taken for background."""
    from tusk.report.point_advice import empty_keypoints, points_on_nothing

    large = torch.zeros_like(sound.sample.images)
    large[:, 1, 2:30, 2:30] = 150
    inside = replace(moved(sound, [0, 1, 2], (16.0, 16.0)), sample=replace(sound.sample, images=large))
    unclear = evidence_of(inside, things=None, idle=torch.zeros_like(inside.found))
    assert empty_keypoints(inside, 7).all()
    assert not points_on_nothing(inside, ABOUT.config, unclear).any()


def fewer(found):
    return [words for words in found if "ask for fewer (--keypoints" in words]


def test_fewer_keypoints_are_advised_only_below_the_limit_and_where_no_thing_is_missed(sound):
    gain = sound.gain.clone()
    gain[:, 0] = 0.0
    idle = replace(moved(sound, [0]), gain=gain)
    complete = replace(evidence_of(idle).things, missed=0.0)
    assert len(fewer(faults(idle, things=complete))) == 2  # on nothing, and idle
    assert "(--keypoints 2)" in fewer(faults(idle, things=complete))[0]
    assert fewer(faults(idle, things=complete, at_limit=0.9)) == []
    assert fewer(faults(idle)) == [], "a third of the squares has no point"


def test_more_keypoints_are_advised_where_things_are_missed_at_the_limit(sound):
    full = faults(sound, things=replace(evidence_of(sound).things, missed=0.4), at_limit=0.9)
    assert list(full.items()) == [
        (
            "40% of the things have no point, and 90% of the images use all 3 keypoints: ask for more (--keypoints 4).",
            "warn",
        )
    ]


def test_idle_and_doubled_points_and_places(sound):
    doubled = faults(sound, things=replace(evidence_of(sound).things, doubled=0.5))
    assert list(doubled.values()) == ["bad"] and "--model.window" in next(iter(doubled))
    half = torch.zeros_like(sound.found)
    half[:20] = True
    assert "bad" in faults(sound, idle=half).values()
    places = faults(sound, places=0.6)
    assert list(places.values()) == ["warn"] and "places on one thing" in next(iter(places))


def test_a_short_training_is_mentioned(sound):
    short = faults(sound, learnt=TrainingLength(150, 2400, 2800, 0.0))
    assert any("150 steps, 2,400 images, of 2,800 steps planned" in words for words in short)
    assert any("still falling" in words for words in faults(sound, learnt=replace(LONG, still_falling=0.2)))
    assert not any("training" in remark.words for remark in lines(sound, learnt=None))


def test_the_length_is_read_from_the_logs():
    loss = Chart("Loss: reconstruction", (Curve("weighted loss", tuple(range(10)), (*([1.0] * 8), 0.5, 0.5)),))
    length = training_length(100, ABOUT.config, [loss])
    assert (length.step, length.images, length.still_falling) == (100, 50 * ABOUT.config.training.batch, 0.5)
    assert training_length(100, ABOUT.config, []).still_falling == 0
    assert training_length(None, ABOUT.config, [loss]) is None


def test_the_verdict_counts_lines():
    ok, warn, bad = Remark("ok", "Fine"), Remark("warn", "Types are few", "ask for more"), Remark("bad", "All wrong")
    assert verdict_of([warn, ok]).level == "warn"
    assert verdict_of([warn, ok]).sentence == "Use these points with care: types are few. Ask for more."
    minor = verdict_of([replace(warn, minor=True), ok])
    assert minor.level == "ok" and "1 of 2 checks passed. A minor one did not: types are few." in minor.sentence
    assert verdict_of([bad, warn]).sentence == "Do not trust these points yet: all wrong."


def test_gathering_measures_what_it_is_given(sound):
    own = gather_evidence(ABOUT.network, sound)
    assert isinstance(own, Evidence) and own.at_limit == 1 and own.things is not None
    assert own.things.on_nothing == 0 and own.things.doubled == 0 and not own.idle.any()
    assert own.repeated is not None and own.repeated.points > 50
    assert gather_evidence(ABOUT.network, replace(sound, found=torch.zeros_like(sound.found))).things is None


def test_advice_speaks_of_the_setting_that_the_network_has():
    plain, sized = subject(), subject(model=SIZED)
    assert "--model.window" in size_advice(plain.config) and "--thing-size" in size_advice(sized.config)


def test_what_is_set_already_is_not_advised_and_one_type_needs_no_descriptors():
    def spread(**parts):
        config = Config.model_validate(merge(ABOUT.config.model_dump(), parts))
        alike = replace(FINE, spread=0.01)
        found = found_at_centres()
        (remark,) = (one for one in remarks(found, config, alike, evidence_of(found)) if "nearly all alike" in one.fact)
        return remark

    plain = spread(model={"descriptor_space": "unit"}, losses={"info_nce": {"weight": 0.0}})
    assert "--model.descriptor-space" in plain.advice and "--losses.info-nce.weight 0.03" in plain.advice
    half = spread(model={"descriptor_space": "standardised"}, losses={"info_nce": {"weight": 0.0}})
    assert "--model.descriptor-space" not in half.advice and "--losses.info-nce.weight 0.03" in half.advice
    both = spread(model={"descriptor_space": "standardised"}, losses={"info_nce": {"weight": [[0.2, 0.0], [0.5, 0.5]]}})
    assert both.advice.startswith("train it for longer") and both.level == "bad"
    rising = spread(
        model={"descriptor_space": "standardised"}, losses={"info_nce": {"weight": [[0.1, 0.0], [0.2, 0.5]]}}
    )
    assert rising.advice == both.advice
    assert spread(model={"types": 1}).level == "warn"


def test_more_types_are_not_advised_beside_fewer():
    found = found_at_centres()
    one = replace(found, label=torch.zeros_like(found.label))
    words = [remark.words for remark in lines(one)]
    assert any("ask for fewer (--types 1)" in line for line in words) and "ask for more types" not in " ".join(words)
    assert any(line.startswith("Type 0 takes 100% of the points: raise the weight") for line in words)
    few = torch.arange(found.label.numel()).view_as(found.label) % 7 == 0
    mostly = replace(found, label=torch.where(few, found.label, 0))
    assert "ask for more types" in " ".join(remark.words for remark in lines(mostly))
