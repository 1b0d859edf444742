"""Moonshine base, English, offline: the weights of a package, run by onnxruntime."""
