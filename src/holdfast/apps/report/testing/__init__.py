"""A fake model that can make reports, honest or hostile, for tests and benchmarks."""
