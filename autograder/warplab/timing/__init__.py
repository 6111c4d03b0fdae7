"""Timing on host and GPU: samples and their statistics, and lower bounds of times from counts."""
