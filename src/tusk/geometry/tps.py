"""The thin-plate spline: the smoothest map of the plane that takes given points to given places.

Kernels are centred on the source points, as in the textbook; the grids are those of the authors' implementation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ThinPlateSpline:
    """f(v) = v^T A + b + sum_i w_i U(|v - c_i|), U(r) = r^2 log r, for each of B splines."""

    centres: Tensor  # (B, N, 2)
    kernel: Tensor  # (B, N, 2) the w_i
    affine: Tensor  # (B, 3, 2) b, then A

    def __call__(self, points: Tensor) -> Tensor:
        """points (B, P, 2) -> (B, P, 2)."""
        bent = _kernel(_square_distance(points, self.centres)) @ self.kernel  # (B, P, 2)
        moved: Tensor = bent + points @ self.affine[:, 1:] + self.affine[:, :1]
        return moved

    def to(self, device: torch.device | str) -> ThinPlateSpline:
        """The same on another device."""
        return ThinPlateSpline(self.centres.to(device), self.kernel.to(device), self.affine.to(device))

    def __getitem__(self, part: slice) -> ThinPlateSpline:
        return ThinPlateSpline(self.centres[part], self.kernel[part], self.affine[part])

    def inverse(self, points: Tensor, steps: int = 12) -> Tensor:
        """Where f takes to `points` (B, P, 2): Newton's method, from the inverse of the affine part."""
        found: Tensor = (points - self.affine[:, :1]) @ torch.linalg.inv(self.affine[:, 1:])
        for _ in range(steps):
            found = found - torch.linalg.solve(self._jacobian(found), self(found) - points)
        return found

    def _jacobian(self, points: Tensor) -> Tensor:
        """(B, P, 2) -> (B, P, 2, 2): row = component of f, column = component of v."""
        apart = points[:, :, None] - self.centres[:, None]  # (B, P, N, 2)
        square = apart.square().sum(-1, keepdim=True).clamp_min(1e-12)
        slope = apart * (square.log() + 1)  # (B, P, N, 2): the gradient of U
        return torch.einsum("bni,bpnj->bpij", self.kernel, slope) + self.affine[:, None, 1:].mT


def fit_spline(source: Tensor, target: Tensor) -> ThinPlateSpline:
    """The spline with f(source) = target, both (B, N, 2)."""
    batch, count, _ = source.shape
    # The system is small but ill-conditioned where two points are close: solve it in double precision.
    points, values = source.double(), target.double()
    corner = points.new_zeros(batch, 3, 3)
    plane = torch.cat([torch.ones_like(points[..., :1]), points], -1)  # (B, N, 3)
    system = torch.cat(
        [
            torch.cat([_kernel(_square_distance(points, points)), plane], -1),  # (B, N, N+3)
            torch.cat([plane.mT, corner], -1),  # (B, 3, N+3)
        ],
        1,
    )
    solved = torch.linalg.solve(system, torch.cat([values, corner[..., :2]], 1)).to(source.dtype)  # (B, N+3, 2)
    return ThinPlateSpline(source, solved[:, :count], solved[:, count:])


def _square_distance(first: Tensor, second: Tensor) -> Tensor:
    """(B, P, 2), (B, N, 2) -> (B, P, N). By differences: the expanded square loses digits where points are close."""
    x = first[:, :, None, 0] - second[:, None, :, 0]
    y = first[:, :, None, 1] - second[:, None, :, 1]
    return x.square_().addcmul_(y, y)


def _kernel(square: Tensor) -> Tensor:
    """U as a function of the squared distance: r^2 log r = 1/2 r^2 log r^2, and 0 at 0."""
    return (square + 1e-20).log_().mul_(square).mul_(0.5)
