"""Recordings: where they may come from, how they are fetched, and what they are."""
