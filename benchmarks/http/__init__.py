"""The HTTP API under load, beside a bare FastAPI app that inserts a row and one in front of
procrastinate."""
