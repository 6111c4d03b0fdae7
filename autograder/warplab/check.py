"""The door that notebooks use: ``from warplab.check import grade``. What stands behind
it is warplab.tasks.feedback.
"""

from warplab.tasks.feedback import grade, when_written

__all__ = ["grade", "when_written"]
