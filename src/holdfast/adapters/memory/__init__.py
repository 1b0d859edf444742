"""The ports in plain Python, forgotten when the process ends: for tests, and to read what commands
mean."""
