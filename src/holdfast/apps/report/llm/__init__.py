"""The analyst who asks a language model: what is asked, how comments share calls, and what is made
of the answers."""
