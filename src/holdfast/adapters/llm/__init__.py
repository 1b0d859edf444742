"""Language models over HTTP: OpenAI, Anthropic, Google, and whatever speaks OpenAI's protocol."""
