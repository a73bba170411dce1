"""Builds and renders posed 3D figures."""
