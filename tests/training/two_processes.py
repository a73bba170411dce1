"""Run by torchrun in test_distributed.py: one step of each kind, of which the first process writes gradients and
prototypes. Usage: two_processes.py FOLDER"""

import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from tests.model.test_unet import SIZED
from tests.processes import threads_named
from tests.training.test_trainer import configured, squares
from tusk.training.distributed import join_ranks, leave_ranks
from tusk.training.trainer import Trainer

KINDS: dict[str, dict[str, Any]] = {
    "plain": {"training": {"batch": 16, "micro_batch": 4}},
    "coupled": {
        "model": {"descriptor_space": "standardised"},
        "losses": {
            "feature_equivariance": {"features": "standardised", "weight": 1.0},
            "reconstruction": {"relative": True},
            "info_nce": {"weight": 0.5},
            "mutual_information": {"weight": 1.0},
        },
        "training": {"batch": 16},
    },
    "sized": {
        "model": {**SIZED, "descriptor_space": "standardised"},
        "losses": {
            "reconstruction": {"views": "first", "relative": True},
            "blobs": {"weight": 0.5},
            "opacity": {"weight": 0.2, "binarity": 0.1, "on_background": True},
            "feature_equivariance": {"features": "standardised", "weight": 0.05},
            "info_nce": {"weight": 0.5, "temperature": 0.2},
        },
        "training": {"batch": 16},
    },
    "patches": {
        "training": {
            "batch": 16,
            "memory": 500,
            "prototype_start": "spectral",
            "reassign_by_appearance": True,
            "warm_up": 1,
        },
    },
}


def first_step(kind, ranks):
    """One step on a batch of eight pairs; -> every gradient, and the prototypes after their steps."""
    torch.set_num_threads(1)
    # In double precision, so that what is left of a difference is a fault and not the order of additions.
    torch.set_default_dtype(torch.float64)
    trainer = Trainer(configured(**KINDS[kind]), ranks)
    images = next(squares(8))
    trainer.train_step(images[trainer.ranks.part(8)], 0.0)
    tensors = {f"gradient/{place}": parameter.grad.clone() for place, parameter in enumerate(trainer.body)}
    tensors["prototypes"] = trainer.network.prototypes.weight.detach().clone()
    if trainer.memory.patches is not None:  # of each process's keypoints, one after the other
        tensors["patches"] = trainer.memory.patches.double().flatten(1).sum(1).sort().values
    torch.set_default_dtype(torch.float32)
    return trainer, tensors


def compare_processes(ranks, folder):
    for kind in KINDS:
        trainer, tensors = first_step(kind, ranks)
        everywhere = ranks.gather(trainer.network.prototypes.weight.detach()[None])
        assert torch.equal(everywhere[0], everywhere[1]), "prototypes differ between the processes"
        if ranks.is_main:
            save_file(tensors, folder / f"{kind}.safetensors")


if __name__ == "__main__":
    ranks = join_ranks()
    compare_processes(ranks, Path(sys.argv[1]))
    leave_ranks(together=True)
    # A thread that outlives the group may abort the process while Python shuts down.
    assert not threads_named("gloo"), threads_named("gloo")
