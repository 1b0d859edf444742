"""The HTTP routes of earlier systems: their paths, bodies and status words, on the services that
`/v1` has."""
