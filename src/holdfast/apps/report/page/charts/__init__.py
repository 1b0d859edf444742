"""Where marks go: the geometry of the page's charts, in numbers that templates write into SVG."""
