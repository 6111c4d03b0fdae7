"""15 points: SystemExit in a cell."""

raise SystemExit(0)
