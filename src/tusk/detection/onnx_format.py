"""What an ONNX file of tusk says about itself."""

FORMAT, VERSION = "tusk-onnx", 1
