"""What memory a training takes, estimated before it begins.

The values that layers keep for their gradients are counted (`model/footprint.py`); the constants below are fitted to
the peak memory of fresh processes, two steps of each preset and of some with other sizes, batches and keypoints. The
estimates were within a tenth of the measurements for most of them, and within a fifth for all.
"""

from __future__ import annotations

import os

import torch

from tusk.config import Config, ModelConfig
from tusk.detection.footprint import FLOAT, detection_bytes
from tusk.device import CPU
from tusk.machine_memory import Memory, check_fits
from tusk.model.footprint import decoder_values, encoder_values, layer_pixels, map_pixels, unet_values, weight_count

_BASE = 480 << 20  # Python, torch and its kernels for gradients, before any image
_COPIES = 4  # of every weight: itself, its gradient and Adam's two averages
_LOSS_MAPS = 3  # feature maps that the losses on two views keep
_WORKSPACE = 3, 5  # maps of the U-Nets' first level and of features: gradients on their way, the kernels' own copies
_CANVAS = 0.75  # of what whole layers would take, is taken by `compressed.py`
_VGG16 = 420 * 224**2  # values for each image that the perceptual loss compares
_VALIDATED = 50  # images at a time
_LARGE = 4  # what is named as too large: above this many images a batch, otherwise the images' size


def training_bytes(config: Config, world: int = 1, *, validation: bool = True) -> int:
    """The peak of one of `world` processes: in a step, or in the validation between steps."""
    model, training, size = config.model, config.training, config.data.size
    whole = training.batch / world
    images = min(whole, training.micro_batch or whole)
    shown = images / 2 if config.losses.reconstruction.views == "first" else images
    pixels = map_pixels(model, size)
    encoder = images * (encoder_values(model, size) + _LOSS_MAPS * model.channels * pixels)
    decoder = shown * decoder_values(model, size, model.keypoints)
    if training.recompute:  # what the U-Nets keep is there for one of them at a time
        largest = max(images * pixels, shown * layer_pixels(model, size) * _layers(model))
        encoder -= images * pixels * unet_values(model, padded=model.padding == "replicate")
        decoder -= shown * layer_pixels(model, size) * _layers(model) * unet_values(model)
        encoder += largest * unet_values(model)
    widest = images * pixels
    if model.decode == "layers" and model.sizes is None:
        if layer_pixels(model, size) == pixels:
            decoder *= _CANVAS
        else:
            widest = max(widest, shown * model.keypoints * layer_pixels(model, size))
    workspace = (_WORKSPACE[0] * model.width + _WORKSPACE[1] * model.channels) * widest
    values = encoder + decoder + workspace + _COPIES * weight_count(model)
    if config.losses.reconstruction.kind == "perceptual":
        values += shown * _VGG16
    values += 3 * whole * 3 * size**2  # the images of the batch, and their two views
    step = _BASE + int(FLOAT * values)
    if not validation:
        return step
    between = detection_bytes(model, size, _VALIDATED, model.keypoints, views=2)
    return max(step, between + FLOAT * _COPIES * weight_count(model))


def _layers(model: ModelConfig) -> int:
    """How many maps the decoder's U-Net works through for an image."""
    return 0 if model.sizes is not None else model.keypoints if model.decode == "layers" else 1


def check_memory(config: Config, world: int = 1, device: torch.device = CPU) -> str:
    """In words what a training takes; a UserError where it cannot fit in what is free."""
    here = os.environ.get("LOCAL_WORLD_SIZE", "")  # processes on this machine
    processes = int(here) if here.isdecimal() else world
    training, need = config.training, training_bytes(config, world)
    part = training.micro_batch or training.batch
    if part > _LARGE * world:
        what = "training.batch" if training.micro_batch is None else "training.micro_batch"
        lower = "lower it, or set training.micro_batch" if training.micro_batch is None else "lower it"
    else:
        what, lower = "data.size", "lower it, or model.width or model.keypoints"
    value = {"training.batch": training.batch, "training.micro_batch": training.micro_batch}.get(what, config.data.size)
    if device.type != "cuda":
        return check_fits(need, f"{what} {value}", lower, processes)
    free, total = torch.cuda.mem_get_info(device)
    return check_fits(need, f"{what} {value}", lower, memory=Memory(total, free), where=f" on {device}")
