"""Benchmarks: what the kernel costs beside the Gram product it cannot do without, and a run from file to file."""
