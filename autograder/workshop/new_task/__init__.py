"""A skeleton of a new task, in every place that a task has: it runs, and says where a person must decide."""

from workshop.new_task.skeleton import next_steps, write_skeleton

__all__ = ["next_steps", "write_skeleton"]
