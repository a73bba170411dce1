"""Figures from detections and truth. Training never uses anything of it."""
