"""From images to a trained network."""
