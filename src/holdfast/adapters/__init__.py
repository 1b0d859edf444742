"""One folder per vendor, with the file names of the ports; the only place where a vendor is
imported."""
