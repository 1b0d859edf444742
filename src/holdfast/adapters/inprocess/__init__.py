"""A bus inside the process."""
