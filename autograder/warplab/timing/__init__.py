"""Time: the clocks of host and device, how many samples are enough, and what a set of them says."""
