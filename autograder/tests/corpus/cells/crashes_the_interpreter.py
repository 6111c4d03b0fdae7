"""15 points, crashed: reads address 0."""

import ctypes

ctypes.string_at(0)
