"""Pure values and rules: nothing here waits, reads a clock or touches the outside world."""
