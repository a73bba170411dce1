"""The whole state of a training on disk, so that a run goes on as if it had never stopped.

A resumed run equals an unbroken one to the bit, as long as the steps alone say how far it is. With `--minutes` the
schedules follow the clock: then the state is restored to the bit, but what follows depends on how fast the machine is,
as it does in any two runs with a time limit.

A checkpoint is `step-N.safetensors` with every tensor, and a small JSON manifest (`last.json`) that names
that file, its sha256 and the plain values. The tensors are written first, the manifest after them, each under a
temporary name, flushed to the disk and renamed: whenever the process is killed, `last.json` names a whole file.
`best.json` names, in the same way, the checkpoint with the best unsupervised score so far.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from tusk.errors import DataError, UserError
from tusk.io import atomic_write
from tusk.model.network import Network
from tusk.training.trainer import Trainer

_VERSION = 2  # 1 had another score
_FORMER_NAMES = {"joint": "losses/mutual_information/joint", "memory_looks": "memory_patches"}


@dataclass(frozen=True)
class Manifest:
    """The content of `last.json` and `best.json`."""

    version: int
    file: str  # beside the manifest
    sha256: str
    step: int
    progress_before: float
    centred: bool
    rate_factor: float
    rollbacks: int
    seconds: float  # spent in training so far
    score: float | None  # the unsupervised score, where it was measured
    config_sha256: str


class Checkpoints:
    """The checkpoints of one run, in a folder of their own."""

    def __init__(self, folder: Path, config_text: str, keep_every: int = 0) -> None:
        self.folder = folder
        self._keep_every = keep_every
        self._config_sha256 = hashlib.sha256(config_text.encode()).hexdigest()

    def save(self, trainer: Trainer, *, seconds: float, rollbacks: int = 0, score: float | None = None) -> Manifest:
        """Write the state as the last one, and as the best one where its score is at least as good."""
        name = f"step-{trainer.step:07d}.safetensors"
        content = save_tensors(trainer_tensors(trainer))
        manifest = Manifest(
            version=_VERSION,
            file=name,
            sha256=hashlib.sha256(content).hexdigest(),
            step=trainer.step,
            progress_before=trainer.progress_before,
            centred=trainer.centred,
            rate_factor=trainer.rate_factor,
            rollbacks=rollbacks,
            seconds=seconds,
            score=score,
            config_sha256=self._config_sha256,
        )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            atomic_write(self.folder / name, content)
            content = json.dumps(asdict(manifest), indent=1).encode()
            best = self.manifest("best")
            # First the best, then the last: a run that is killed in between comes here again and writes the same.
            if score is not None and (best is None or best.score is None or score >= best.score):
                atomic_write(self.folder / "best.json", content)
            atomic_write(self.folder / "last.json", content)
        except OSError as error:
            raise UserError(
                str(self.folder / name),
                f"the checkpoint cannot be written ({error.strerror})",
                "the last good one is kept: make room and go on with --resume",
            ) from error
        self._remove_unused()
        return manifest

    def restore(self, trainer: Trainer) -> Manifest:
        """Bring the trainer to the state of the last checkpoint, to the bit; `--minutes` goes on by the clock."""
        manifest = self.manifest()
        if manifest is None:
            raise DataError(str(self.folder), "there is no checkpoint in it", "start the training anew")
        self._refuse_other(manifest)
        _restore_tensors(trainer, self._tensors(manifest))
        trainer.step = manifest.step
        trainer.progress_before = manifest.progress_before
        trainer.prototypes.started = manifest.centred
        trainer.rate_factor = manifest.rate_factor
        return manifest

    def restore_network(self, network: Network, which: Literal["last", "best"]) -> Manifest | None:
        """Give the network the weights of the last checkpoint, or of the best if any was scored."""
        manifest = self.manifest(which)
        if manifest is not None:
            self._refuse_other(manifest)
            network.load_state_dict(_of_network(self._tensors(manifest)))
        return manifest

    def _refuse_other(self, manifest: Manifest) -> None:
        if manifest.config_sha256 != self._config_sha256:
            raise DataError(
                str(self.folder), "its checkpoint belongs to another configuration", "resume with the run's own config"
            )

    def _tensors(self, manifest: Manifest) -> dict[str, Tensor]:
        path = self.folder / manifest.file
        try:
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != manifest.sha256:
                raise DataError(str(path), "its content does not match its checksum", "start the training anew")
            tensors: dict[str, Tensor] = load_tensors(content)
        except (OSError, SafetensorError) as error:
            raise DataError(str(path), f"it cannot be read ({error})", "start the training anew") from error
        return tensors

    def manifest(self, which: Literal["last", "best"] = "last") -> Manifest | None:
        """What is known of that checkpoint, or None where there is none."""
        path = self.folder / f"{which}.json"
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if values.get("version", 0) > _VERSION:
                raise DataError(str(path), "it is newer than this tusk reads", "upgrade tusk")
            return Manifest(**values if values.get("version") == _VERSION else {**values, "score": None})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise DataError(str(path), f"it cannot be read ({error})", "start the training anew") from error

    def _remove_unused(self) -> None:
        used = {manifest.file for which in ("last", "best") if (manifest := self.manifest(which)) is not None}
        for file in self.folder.glob("step-*.safetensors"):
            step = int(file.stem.removeprefix("step-"))
            kept = self._keep_every and step and step % self._keep_every == 0
            if file.name not in used and not kept:
                file.unlink(missing_ok=True)
        for rest in self.folder.glob(".*.part"):
            rest.unlink(missing_ok=True)


def trainer_tensors(trainer: Trainer) -> dict[str, Tensor]:
    """Every tensor that the next step depends on, by name."""
    tensors = {f"network/{name}": value for name, value in trainer.network.state_dict().items()}
    for label, optimiser in _optimisers(trainer):
        for place, parameter in enumerate(optimiser.param_groups[0]["params"]):
            for name, value in optimiser.state.get(parameter, {}).items():
                tensors[f"{label}/{place}/{name}"] = torch.as_tensor(value, device="cpu")
    tensors["generator"] = trainer.generator.get_state()
    for name, value in trainer.scaler.state_dict().items():  # nothing, but with float16
        tensors[f"scaler/{name}"] = torch.tensor(float(value), device="cpu")
    for loss_name, loss in trainer.losses.items():
        tensors |= {f"losses/{loss_name}/{name}": value for name, value in loss.state().items()}
    if len(trainer.memory):
        tensors["memory"] = trainer.memory.latest()
        if trainer.memory.groups is not None:
            tensors["memory_groups"] = trainer.memory.groups
        if trainer.memory.patches is not None:
            tensors["memory_patches"] = trainer.memory.patches
    return {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}


def _restore_tensors(trainer: Trainer, tensors: dict[str, Tensor]) -> None:
    tensors = {_FORMER_NAMES.get(name, name): value for name, value in tensors.items()}
    trainer.network.load_state_dict(_of_network(tensors))
    for label, optimiser in _optimisers(trainer):
        optimiser.state.clear()
        for place, parameter in enumerate(optimiser.param_groups[0]["params"]):
            own = f"{label}/{place}/"
            state = {name.removeprefix(own): value for name, value in tensors.items() if name.startswith(own)}
            if state:
                # A fused Adam's averages and its count of steps lie beside their parameter.
                optimiser.state[parameter] = {name: value.to(parameter.device) for name, value in state.items()}
    trainer.generator.set_state(tensors["generator"])
    fresh = trainer.scaler.state_dict()
    if fresh and "scaler/scale" in tensors:
        scaler = {name: type(value)(tensors[f"scaler/{name}"].item()) for name, value in fresh.items()}
        trainer.scaler.load_state_dict(scaler)
    for loss_name, loss in trainer.losses.items():
        for name, value in loss.state().items():
            value.copy_(tensors[f"losses/{loss_name}/{name}"])
    kept = (tensors.get(name) for name in ("memory", "memory_groups", "memory_patches"))
    trainer.memory.replace(*(None if value is None else value.to(trainer.device) for value in kept))


def _of_network(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    prefix = "network/"
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _optimisers(trainer: Trainer) -> tuple[tuple[str, torch.optim.Optimizer], ...]:
    return ("network_optimiser", trainer.network_optimiser), ("prototype_optimiser", trainer.prototype_optimiser)
