"""Sound as samples: decoding, and where somebody speaks."""
