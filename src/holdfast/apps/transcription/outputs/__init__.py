"""A transcript as files: JSON, subtitles, text and a page."""
