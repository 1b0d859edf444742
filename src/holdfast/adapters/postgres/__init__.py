"""PostgreSQL: the store for many workers on many machines."""
