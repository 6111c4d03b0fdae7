"""Observers that check a launch: they refuse races and uninitialised reads, and warn of conflicts in global
memory.
"""
