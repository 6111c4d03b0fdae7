"""A late policy for nbgrader_config.py: a percentage off for each day.

c.AssignLatePenalties.plugin_class = "autograder.gradebook.late_policy.PerDay"
c.PerDay.percent = 10
c.PerDay.grace_minutes = 15
"""

from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Float

DAY = 86_400


class PerDay(LateSubmissionPlugin):
    """Takes off `percent` of the points for each day late; a part of a day counts as that part."""

    percent = Float(10.0, min=0.0, max=100.0, help="Of the points given, for each day.").tag(config=True)
    grace_minutes = Float(0.0, min=0.0, help="Late by no more than this costs nothing.").tag(config=True)
    most_percent = Float(100.0, min=0.0, max=100.0, help="The most that is ever taken off.").tag(config=True)

    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float | None:
        """Points to take off, or None. After the grace period, the whole time counts, grace included."""
        if total_seconds_late <= 60 * self.grace_minutes:
            return None
        return score * min(self.percent * total_seconds_late / DAY, self.most_percent) / 100
