"""Counting what a kernel did, in Nsight Compute's terms."""
