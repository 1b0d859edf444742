"""The movers' contract by topic; `holdfast.testing.contracts.mover` puts them together."""
