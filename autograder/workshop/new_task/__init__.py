"""Writes a runnable skeleton of a new task into all its files; DECIDE marks what the author must replace."""

from workshop.new_task.skeleton import next_steps, write_skeleton

__all__ = ["next_steps", "write_skeleton"]
