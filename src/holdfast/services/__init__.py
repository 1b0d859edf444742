"""Use cases shared by the API, the CLI and the dashboard."""
