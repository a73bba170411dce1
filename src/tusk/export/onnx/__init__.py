"""Models as ONNX: the network's points and types as one graph, built operator by operator.

By hand, not traced: so the graph takes images of any size and number, has no constants that a trace left in it, and is
made in a moment. `tests/export/test_onnx.py` holds it to the network itself.
"""
