"""One file for each dataset: images and, for evaluation, the truth about them."""
