"""Draws faces, with hair, light and background."""
