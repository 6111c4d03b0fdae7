"""Writes the skeleton of a new task into all its files; it runs, and DECIDE marks what the author must do."""

from workshop.new_task.skeleton import next_steps, write_skeleton

__all__ = ["next_steps", "write_skeleton"]
