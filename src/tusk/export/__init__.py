"""Detections in, files out."""
