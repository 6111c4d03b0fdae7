"""3 points: counts the text, comments included."""


def read_ptx(ptx):
    return ptx.count("ld.global"), ptx.count(".local"), ptx.count("mul.f32")
