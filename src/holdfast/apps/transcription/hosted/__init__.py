"""Transcribers that are services: Gemini and OpenAI."""
