"""Images in, and nothing of the model: every dataset of the paper, and any folder of pictures."""
