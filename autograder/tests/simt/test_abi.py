"""Parameters of kernels, by hand: numba's array struct, and numbers in numba's and in C's convention."""

import numpy as np
import pytest

from warplab.simt.abi import NUMBERS, c_number, numba_array, numba_array_words, word
from warplab.simt.errors import InvalidLaunch

MATRIX = np.zeros((2, 3), np.float32)


def test_numbas_array_is_two_empty_words_its_size_and_place_and_then_its_shape_and_strides():
    assert numba_array(0x1000, MATRIX) == (0, 0, 6, 4, 0x1000, 2, 3, 12, 4)
    assert numba_array(0x1000, MATRIX.T) == (0, 0, 6, 4, 0x1000, 3, 2, 4, 12)
    assert numba_array(0x1000, np.zeros((0, 5)))[2:4] == (0, 8)


@pytest.mark.parametrize("array", [MATRIX, MATRIX.T, np.zeros((0, 5)), np.zeros((), np.int8), MATRIX[::-1]])
def test_a_launch_passes_the_same_words_as_bytes(array):
    assert numba_array_words(0x1000, array) == [word(value) for value in numba_array(0x1000, array)]


@pytest.mark.parametrize("kind", NUMBERS)
def test_cs_number_is_what_the_kernel_declares(kind):
    number = c_number(kind, 3.0, "x", "kernel")
    assert number == 3 and 8 * number.dtype.itemsize == int(kind[1:])
    assert number.dtype.kind == kind[0].replace("s", "i")


def test_a_negative_number_passes_as_an_unsigned_one_of_the_same_bits_as_in_c():
    assert c_number("u32", -1, "x", "kernel") == 2**32 - 1


@pytest.mark.parametrize(
    "kind, value, why", [("s32", 1.5, "a whole number"), ("u8", 256, "8 bits"), ("s16", -32769, "16 bits")]
)
def test_a_number_that_does_not_fit_is_refused_by_name(kind, value, why):
    with pytest.raises(InvalidLaunch, match=f"argument x is {value}.*{why}"):
        c_number(kind, value, "x", "kernel")
