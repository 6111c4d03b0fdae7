"""Private names of numba and cuda.core stand in three files: a new version of either is the work of these.

The rule for every other file of warplab:
- from numba and cuda.core it imports only what their documented modules export (PUBLIC), and no name with an
underscore;
- it reads no inner module of ``numba.cuda`` as an attribute, such as ``cuda.cudadrv``;
- where it has objects of theirs in hand (it imports numba or cuda.core, or is one of the front ends), it
  names no attribute with an underscore that warplab does not define itself, neither as ``x._name`` nor as
  text.
"""

import ast
import inspect
import re
from pathlib import Path

import numba.cuda
import pytest

import warplab

PACKAGE = Path(warplab.__file__).parent
HOOK = PACKAGE / "simt" / "frontends" / "numba_hook.py"
COMPILING = HOOK.with_name("numba_compiling.py")
TORCH_HOOK = HOOK.with_name("torch_hook.py")  # the same for torch
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path not in (HOOK, COMPILING, TORCH_HOOK)]
FOREIGN = ("numba", "numba_cuda", "cuda.core", "llvmlite")
PUBLIC = {"numba", "numba.cuda", "numba.extending", "cuda.core", "llvmlite.binding", "llvmlite.ir"}
PUBLIC_MODULES = {
    "cuda",
    "libdevice",
    "types",
}  # of these, what may be imported although it is a module itself
PROTOCOLS = {"_asdict", "_fields", "_make", "_replace", "_repr_html_"}  # namedtuple's and IPython's
PROTOCOLS |= {"_UFUNC_API"}  # where NumPy's C API is found, by NumPy's own header
PRIVATE = re.compile(r"_[A-Za-z]\w*(?<!__)")


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def own_names(trees):
    """Every name that warplab itself gives to a function, a class, a variable, an attribute or a module."""
    names = {path.stem for path in FILES}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


OWN = own_names([parsed(path) for path in FILES])


def is_foreign(module):
    return any(module == name or module.startswith(f"{name}.") for name in FOREIGN)


def is_inner_module(name):
    return name not in PUBLIC_MODULES and inspect.ismodule(getattr(numba.cuda, name, None))


def imported(node):
    """(module, name) of each thing that a statement imports; the name of a whole module is empty."""
    if isinstance(node, ast.Import):
        return [(alias.name, "") for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [(node.module, alias.name) for alias in node.names]
    return []


def forbidden_imports(node):
    """Of a statement, what it imports from numba or cuda.core and should not."""
    return [
        f"{module}.{name}"
        for module, name in imported(node)
        if is_foreign(module)
        and (
            module not in PUBLIC or name.startswith("_") or (module == "numba.cuda" and is_inner_module(name))
        )
    ]


def forbidden_names(node):
    """Of an expression, the inner module or the private name that it names."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cuda":
        return [f"cuda.{node.attr}"] if is_inner_module(node.attr) else []
    name = getattr(node, "attr", None) if isinstance(node, ast.Attribute) else getattr(node, "value", None)
    if not isinstance(name, str) or not PRIVATE.fullmatch(name):
        return []
    return [] if name in OWN | PROTOCOLS else [name]


def private_names(tree, has_objects):
    """What the rule above forbids, each with its line.

    has_objects: whether objects of numba's pass through the file.
    """
    nodes = list(ast.walk(tree))
    found = [(node.lineno, name) for node in nodes for name in forbidden_imports(node)]
    if has_objects or any(is_foreign(module) for node in nodes for module, _ in imported(node)):
        found += [(node.lineno, name) for node in nodes for name in forbidden_names(node)]
    return found


def test_only_the_hook_knows_private_names():
    found = {path: private_names(parsed(path), path.parent == HOOK.parent) for path in FILES}
    told = {str(path.relative_to(PACKAGE)): names for path, names in found.items() if names}
    assert told == {}, f"wrap these in {HOOK.relative_to(PACKAGE)}"


@pytest.mark.parametrize(
    "source",
    [
        "from numba.cuda.cudadrv.driver import _to_core_stream",
        "from numba.cuda.args import In",
        "from numba.cuda import dispatcher",
        "import numba.cuda.codegen",
        "from cuda.core._utils.cuda_utils import CUDAError",
        "kernel._codelibrary.get_asm_strs()",
        "getattr(library, '_ensure_cc')",
        "type(value).__name__ == '_LaunchConfiguration'",
        "cuda.cudadrv.driver.driver",
    ],
)
def test_the_rule_finds_what_it_is_for(source):
    assert private_names(ast.parse(source), True)


@pytest.mark.parametrize(
    "source",
    [
        "from numba import cuda, float32\nfrom numba.cuda import types\nfrom cuda.core import Device",
        "cuda.shared.array(32, float32)",
        "from cuda.bindings import driver",
        "record._replace(n=1)",
    ],
)
def test_the_rule_lets_documented_names_pass(source):
    assert private_names(ast.parse(source), True) == []
