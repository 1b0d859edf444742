"""Blobs as files in a folder of this host."""
