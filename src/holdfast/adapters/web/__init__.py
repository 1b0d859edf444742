"""Calls to addresses that other people have given us, by httpx2."""
