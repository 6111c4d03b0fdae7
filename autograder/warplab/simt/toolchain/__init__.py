"""NVIDIA's compilers, which need no GPU (NVRTC, ptxas, nvdisasm), and a cache of their results on disk."""
