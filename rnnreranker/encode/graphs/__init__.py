"""Graphs of encoders for ONNX Runtime: exported once a machine, kept, opened."""
