"""tusk: finds the recurring things in unlabelled images, as typed keypoints for many instances."""

__version__ = "0.1.0"
