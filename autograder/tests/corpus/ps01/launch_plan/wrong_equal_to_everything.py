"""0 points: an object that says it equals everything is not a number."""


class Agreeable:
    def __eq__(self, other):
        return True

    def __array__(self, dtype=None, copy=None):
        raise SystemExit


def launch_plan(width, height, block):
    return Agreeable(), Agreeable()
