"""Small puzzles that open a problem set: one blank each, answered at once, for no points."""
