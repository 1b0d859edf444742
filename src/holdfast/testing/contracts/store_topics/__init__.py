"""The store's contract by topic; `holdfast.testing.contracts.store` puts them together."""
