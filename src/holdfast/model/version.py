"""The version of holdfast, as `pyproject.toml` has it."""

VERSION = "0.1.0"
