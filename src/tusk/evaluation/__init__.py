"""Figures from detections and truth. Nothing here is ever seen by training."""
