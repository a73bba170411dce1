"""Run by torchrun in test_distributed.py: `steps FOLDER KIND ...`, one step of each kind, of which the first process
writes gradients and prototypes; or `go-on FOLDER STEPS`, some steps from where a checkpoint is, and one of those."""

import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from tests.model.test_unet import SIZED
from tests.processes import threads_named
from tests.training.test_trainer import configured, squares
from tusk.training.checkpoint import Checkpoints
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


def compare_processes(ranks, folder, kinds):
    folder.mkdir(exist_ok=True)
    for kind in kinds:
        trainer, tensors = first_step(kind, ranks)
        everywhere = ranks.gather(trainer.network.prototypes.weight.detach()[None])
        assert (everywhere == everywhere[0]).all(), "prototypes differ between the processes"
        if ranks.is_main:
            save_file(tensors, folder / f"{kind}.safetensors")


def go_on(folder, steps, ranks):
    """Some steps more than the checkpoint in the folder has, on batches that the number of steps decides."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    trainer = Trainer(configured(training={"batch": 16}), ranks)
    checkpoints = Checkpoints(folder, "config")
    if ranks.broadcast(lambda: checkpoints.manifest() is not None):
        checkpoints.restore(trainer)
    for step in range(trainer.step, trainer.step + steps):
        images = next(squares(8, seed=step))
        trainer.train_step(images[ranks.part(8)], step / 10)
    if ranks.is_main:
        checkpoints.save(trainer, seconds=0.0)
    torch.set_default_dtype(torch.float32)
    return trainer


if __name__ == "__main__":
    ranks = join_ranks()
    mode, folder, *rest = sys.argv[1:]
    if mode == "go-on":
        go_on(Path(folder), int(rest[0]), ranks)
    else:
        compare_processes(ranks, Path(folder), rest)
    leave_ranks(together=True)
    # A thread that outlives the group may abort the process while Python shuts down.
    assert not threads_named("gloo"), threads_named("gloo")
