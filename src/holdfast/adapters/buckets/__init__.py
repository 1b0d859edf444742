"""Blobs and documents as objects of a bucket: Google Cloud Storage and S3, by obstore."""
