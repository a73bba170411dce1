"""From a model and pictures to detections: points, types and masks in the pictures' own pixels."""
