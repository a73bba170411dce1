"""Renderers: datasets that are made instead of downloaded."""
