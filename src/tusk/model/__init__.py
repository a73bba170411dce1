"""The network: encoder, keypoints, descriptors, types and decoder. It knows nothing of data or training."""
