"""The network gives back the numbers of the authors' own."""

import numpy as np
import pytest
import torch

from tests.golden.read import read_golden
from tusk.errors import DataError
from tusk.losses.kmeans import kmeans_loss
from tusk.losses.prototypes import mixture_weights
from tusk.model.authors import network_from_authors, read_authors_file

CASES = ["network_sum", "network_alpha"]


def golden_state(golden):
    return {key.removeprefix("state/"): value for key, value in golden.items() if key.startswith("state/")}


def golden_network(golden, **variants):
    _, _, keypoints, kernel, layers, _, _ = (int(value) for value in golden["meta"])
    return network_from_authors(
        golden_state(golden), keypoints=keypoints, kernel=kernel, layers=bool(layers), **variants
    )


@pytest.mark.parametrize("case", CASES)
def test_every_output_is_the_authors(case):
    golden = read_golden(case)
    with torch.no_grad():
        output = golden_network(golden)(torch.tensor(golden["image"]))

    def close(name, ours, limit=1e-4):
        np.testing.assert_allclose(ours.numpy(), golden[name][:1], rtol=0, atol=limit, err_msg=name)

    close("feature_map/every4", output.feature_map[..., ::4, ::4])
    close("score_map/every4", output.score_map[..., ::4, ::4])
    close("keypoints_xyscore", torch.cat([output.xy, output.score[..., None]], -1), 1e-3)
    np.testing.assert_allclose(output.score.numpy(), golden["keypoints_xyscore"][:1, :, 2], rtol=0, atol=1e-4)
    close("descriptors", output.descriptors)
    close("assignment_probability", output.probability)
    close("label", output.label, 0)
    close("reconstruction/every4", output.reconstruction[..., ::4, ::4])
    if case == "network_alpha":
        close("layer_rgb/every4", output.layer_rgb[..., ::4, ::4])
        close("layer_alpha/every4", output.layer_alpha[..., ::4, ::4])
    else:
        assert output.layer_rgb is None and output.layer_alpha is None


@pytest.mark.parametrize("case", CASES)
def test_prototypes_and_losses_over_the_batch(case):
    golden = read_golden(case)
    network = golden_network(golden)
    descriptors = torch.tensor(golden["descriptors"])
    prototypes = network.prototypes.unit().detach()
    np.testing.assert_allclose(prototypes.numpy(), golden["prototypes"], atol=1e-6)
    loss = kmeans_loss(network.prototypes.log_probability(descriptors))
    assert loss.item() == pytest.approx(golden["kmeans_loss"].item(), abs=1e-5)
    weights = mixture_weights(descriptors.flatten(0, 1), prototypes, extra_mixing=0.01)
    np.testing.assert_allclose(weights.numpy(), golden["mixture_weights"], atol=1e-5)


@pytest.mark.parametrize("switched_off", ["truncated", "count_border", "mean_square"])
def test_each_variant_can_be_switched_off(switched_off):
    golden = read_golden("network_sum")
    image = torch.tensor(golden["image"])
    with torch.no_grad():
        theirs = golden_network(golden)(image)
        ours = golden_network(golden, **{switched_off: False})(image)
    changed = {
        "truncated": not torch.allclose(theirs.descriptors, ours.descriptors, atol=1e-3),
        "count_border": not torch.allclose(theirs.xy, ours.xy, atol=1e-2),
        "mean_square": not torch.allclose(theirs.probability, ours.probability, atol=1e-3),
    }
    assert changed[switched_off]
    if switched_off == "mean_square":
        assert torch.equal(theirs.xy, ours.xy)


def test_a_prefix_from_parallel_training_is_taken_off():
    golden = read_golden("network_sum")
    state = {f"module.{key}": value for key, value in golden_state(golden).items()}
    network = network_from_authors(state, keypoints=9, kernel=13, layers=False)
    assert torch.equal(network.prototypes.weight.detach(), torch.tensor(golden["state/prototype"]))


def test_missing_and_misshapen_weights_are_named():
    state = golden_state(read_golden("network_sum"))
    short = {key: value for key, value in state.items() if key != "decoder.decoder.dconv_up2.3.bias"}
    with pytest.raises(DataError, match=r"decoder\.decoder\.dconv_up2\.3\.bias.* is missing"):
        network_from_authors(short, keypoints=9, kernel=13, layers=False)
    bent = {**state, "encoder.heatmap_header.0.weight": np.zeros((8, 9, 3, 3), np.float32)}
    with pytest.raises(DataError, match=r"heatmap_header\.0\.weight.*\(8, 9, 3, 3\).*\(8, 8, 3, 3\)"):
        network_from_authors(bent, keypoints=9, kernel=13, layers=False)
    with pytest.raises(DataError, match=r"conv_last\.weight"):
        network_from_authors(state, keypoints=9, kernel=13, layers=True)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("prototype", torch.zeros(0, 8), "cannot be"),
        ("prototype", torch.zeros(1, 1).expand(10**9, 8), "cannot be"),  # one number that claims to be many
        ("encoder.encoder_features.conv_last.weight", torch.zeros(1, 1, 1, 1).expand(10**6, 8, 1, 1), "cannot be"),
        ("prototype", torch.full((10, 8), torch.nan), "not finite"),
        ("prototype", torch.zeros(10, 8, dtype=torch.complex64), "real numbers"),
        ("prototype", torch.zeros(10, 8).to_sparse(), "real numbers"),
        ("prototype", torch.zeros(10, 8, device="meta"), "real numbers"),
    ],
)
def test_weights_that_cannot_be_are_one_sentence(key, value, words):
    state = golden_state(read_golden("network_sum"))
    assert state["prototype"].shape[1] == 8
    with pytest.raises(DataError, match=words):
        network_from_authors({**state, key: value}, keypoints=9, kernel=13, layers=False)


class _Runs:
    """Would make a folder if it were unpickled."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (__import__("os").mkdir, (str(self.target),))


def test_released_files_are_opened_without_running_code(tmp_path):
    state = {key: torch.tensor(value) for key, value in golden_state(read_golden("network_sum")).items()}
    torch.save({"epoch": 3, "network": state}, tmp_path / "good.pth")
    assert set(read_authors_file(tmp_path / "good.pth")) == set(state)

    torch.save({"network": state, "more": _Runs(tmp_path / "ran")}, tmp_path / "evil.pth")
    with pytest.raises(DataError, match="without running code"):
        read_authors_file(tmp_path / "evil.pth")
    assert not (tmp_path / "ran").exists()

    (tmp_path / "text.pth").write_text("not a checkpoint")
    with pytest.raises(DataError, match=r"text\.pth"):
        read_authors_file(tmp_path / "text.pth")
    torch.save({"weights": torch.zeros(3)}, tmp_path / "other.pth")
    with pytest.raises(DataError, match="prototype"):
        read_authors_file(tmp_path / "other.pth")
    with pytest.raises(DataError, match="no such file"):
        read_authors_file(tmp_path / "absent.pth")
