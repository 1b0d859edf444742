"""What users get for their own tests: contract suites for the ports, and a clock that moves when told."""
