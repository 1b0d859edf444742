"""holdfast beside its peers and beside the machine's own limits. Run with `python -m
benchmarks`."""
