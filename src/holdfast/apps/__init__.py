"""Vertical slices on the public API: everything about one subject in one package."""
