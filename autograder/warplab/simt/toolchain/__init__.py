"""NVIDIA's own compilers, without a GPU: NVRTC, ptxas and nvdisasm, and what they made, kept on disk."""
