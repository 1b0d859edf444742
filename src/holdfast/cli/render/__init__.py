"""What people see: a module for each thing that is shown, on the tables of `tables`."""
