"""Checks that watch a launch: races and unwritten reads are refused, global-memory conflicts warned of."""
