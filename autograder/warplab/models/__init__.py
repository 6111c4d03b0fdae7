"""Models: their bytes and operations, small networks to run, and processes to run them in."""

from importlib import import_module

NETWORKS = (
    "ALPHABET",
    "LENGTH",
    "VOCABULARY",
    "Attention",
    "Block",
    "ConvNet",
    "Transformer",
    "pictures",
    "read",
    "worksheet",
)


def __getattr__(name: str):
    """The small networks (``models.Transformer`` ...), imported at first use, as they need torch and the rest
    does not.
    """
    if name not in NETWORKS:
        raise AttributeError(f"module 'warplab.models' has no attribute {name!r}")
    return getattr(import_module("warplab.models.networks"), name)
