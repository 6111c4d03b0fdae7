"""15 points: an exception whose text no file can hold: half a character, control characters, one that turns the line around."""


def launch_plan(width, height, block):
    raise ValueError("\ud800 \x00 \x1b[2J \u202e </style></table><script>alert(1)</script>")
