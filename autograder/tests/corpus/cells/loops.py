"""15 points, timeout: an endless loop."""

while True:
    pass
