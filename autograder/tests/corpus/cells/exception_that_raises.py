"""15 points: an exception whose text cannot be made."""

class Bad(BaseException):
    def __str__(self):
        raise Bad

    __repr__ = __str__


def launch_plan(width, height, block):
    raise Bad
