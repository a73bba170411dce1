"""One sentence, with the nearest name."""

import pytest

from tusk.errors import DataError, UsageError, UserError, nearest


@pytest.mark.parametrize(("kind", "code"), [(UserError, 1), (UsageError, 2), (DataError, 3)])
def test_sentences_and_exit_codes(kind, code):
    error = kind("a.png", "it is empty", "delete it")
    assert str(error) == "a.png: it is empty; delete it."
    assert error.exit_code == code
    assert str(kind("a", "b", "did you mean 'c'?")).endswith("'c'?")


def test_nearest():
    assert nearest("keypoint", ["keypoints", "types"]) == "did you mean 'keypoints'?"
    assert nearest("zzz", ["b", "a"]) == "choose one of a, b"
