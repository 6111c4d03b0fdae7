"""0 points: a NumPy function where a kernel was asked for."""


def grayscale(rgb, out):
    out[:] = rgb @ [0.299, 0.587, 0.114]
