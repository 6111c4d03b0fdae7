"""Stands in for the host's C and C++ headers, which nvcc includes in every `.cu` file and NVRTC lacks.

Without them ``uint``, ``M_PI``, ``std::min`` and ``pow(2, 3)`` would be unknown in kernels. PRELUDE is
included before every source (by NVRTC's ``--pre-include``, so line numbers stay). Other headers of the host
are empty here: they declare things for host code, which is left out.
"""

from __future__ import annotations

import re
from pathlib import Path

PRELUDE_NAME = "warplab_prelude.cuh"

_HERE = Path(__file__).parent
PRELUDE = (_HERE / "prelude.cuh").read_text(encoding="utf-8")

#: Headers that NVRTC does not have but must find, as CUDA's own headers include some of them.
EMPTY = (
    "assert.h cassert cfloat climits cmath cstddef cstdint cstdio cstdlib cstring float.h limits.h math.h "
    "stddef.h stdint.h stdio.h stdlib.h string.h"
).split()

#: Headers of C and the system, which are empty here, but need no note in a compiler's error.
OF_C = re.compile(
    r"(sys/.*|ctype|errno|locale|setjmp|signal|stdarg|stdbool|time|unistd|getopt|memory)(\.h)?$"
)

_BLAS = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuComplex.h>"
_FFT = "typedef float cufftReal; typedef double cufftDoubleReal; typedef cuComplex cufftComplex;"
_CUB = "block_reduce block_scan block_load block_store block_radix_sort block_histogram block_exchange"


#: Replacements for host headers with the parts that kernels use: types, and CUB for a block or a warp.
STAND_INS = {
    "cuda.h": "#pragma once\ntypedef unsigned long long CUdeviceptr, CUtexObject, CUsurfObject;\n"
    "typedef struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; } CUtensorMap;",
    "cudaTypedefs.h": "#include <cuda.h>",
    "cublas_v2.h": _BLAS,
    "cublasLt.h": _BLAS,
    "cublas.h": _BLAS,
    "cufft.h": f"#include <cuComplex.h>\n{_FFT} typedef cuDoubleComplex cufftDoubleComplex;",
    "cufftXt.h": "#include <cufft.h>",
    "helper_math.h": (_HERE / "vectors.cuh").read_text(encoding="utf-8"),
    "cub/cub.cuh": "\n".join(
        [f"#include <cub/block/{name}.cuh>" for name in _CUB.split()]
        + [f"#include <cub/warp/{name}.cuh>" for name in ("warp_reduce", "warp_scan")]
    ),
}

#: CUDA's headers for host code, which are treated as empty even where they are installed.
FOR_HOST = re.compile(
    r"thrust/|(cuda|nvrtc|nvvm|nvJitLink|channel_descriptor|driver_functions)\.h$|nv(ml|toolsext|tx)|nccl|"
    r"cuda_?(occupancy|profiler|egl|gl|vdpau)|cu(blas|sparse|solver|fft|dnn|pti|tensor|file)",
    re.I,
)

_OF_CUDA = {  # header of CUDA's standard library -> its names that kernels use with std::
    "limits": "numeric_limits",
    "type_traits": "is_same is_same_v enable_if enable_if_t conditional conditional_t is_floating_point "
    "is_floating_point_v is_integral is_integral_v is_arithmetic is_signed is_unsigned is_pointer true_type "
    "false_type bool_constant integral_constant remove_reference_t remove_cv_t remove_const_t decay_t "
    "make_unsigned_t make_signed_t common_type_t void_t",
    "utility": "pair make_pair declval index_sequence make_index_sequence integer_sequence",
    "functional": "plus minus multiplies divides greater less greater_equal less_equal equal_to",
    "array": "array",
    "tuple": "tuple make_tuple get tie",
    "complex": "complex",
    "bit": "bit_cast",
}


def library_for(text: str) -> str:
    """C++ that includes the parts of CUDA's standard library that ``text`` uses with ``std::``."""
    used = set(re.findall(r"\bstd\s*::\s*(\w+)", text))
    lines = []
    for header, names in _OF_CUDA.items():
        if found := sorted(used & set(names.split())):
            uses = " ".join(f"using ::cuda::std::{name};" for name in found)
            lines.append(f"#include <cuda/std/{header}>\nnamespace std {{ {uses} }}")
    return "\n".join(lines)
