"""Observers that count what a launch does, in Nsight Compute's terms."""
