"""Random smooth deformations that move images, maps and points alike."""
