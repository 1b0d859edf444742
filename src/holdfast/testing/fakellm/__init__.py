"""A language model made of paper: a local server that speaks the vendors' protocols, with faults on demand."""
