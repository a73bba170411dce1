"""CLEVR: readers for a scenes folder and for the original file, and scenes of our own making."""
