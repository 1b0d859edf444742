"""How long recovery takes, with the default lease: `python -m benchmarks.recovery`."""
