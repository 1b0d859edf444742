"""What the engine needs from the outside, as protocols that state their obligations."""
