"""The shipped pipelines."""
