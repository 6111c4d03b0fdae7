"""Private names of other libraries: each that the product uses is in ``private_names.yml`` with its reason.

The tests fail for a name that is not in the table, one in it that is not used, one that its library lost.
"""

import ast
import contextlib
import functools
import importlib
import inspect
import itertools
import re
from pathlib import Path

import numba.cuda
import pytest
import torch
import yaml

import warplab

pytestmark = pytest.mark.slow

ROOT = Path(warplab.__file__).parents[1]
FILES = [
    path for room in ("warplab", "autograder", "workshop") for path in sorted((ROOT / room).rglob("*.py"))
]
TABLE = yaml.safe_load(Path(__file__).with_name("private_names.yml").read_text(encoding="utf-8"))
NAMES = [name for of_one in TABLE.values() for name in of_one]
LASTS = {name.rpartition(".")[2] for name in NAMES}
MLIR = TABLE["numba_cuda_mlir"]  # which one file alone uses, and finds by their names
LIBRARIES = ("numba", "numba_cuda", "llvmlite", "triton", "torch", "cuda.core")

#: Of what has no underscore: what each library documents, and for numba.cuda what is no inner module.
#: numba.cloudpickle is the library of that name.
DOCUMENTED = re.compile(
    r"numba(\.\w+)?|numba\.extending\.\w+|numba\.cloudpickle\b.*|llvmlite\.(ir|binding)\b.*|cuda\.core\b.*"
    r"|numba\.cuda\.(types|config|libdevice|dispatcher\.CUDADispatcher|cudadrv\.devicearray\.DeviceNDArray)\b.*"
    r"|numba\.cuda\.memory_management\.rtsys\b.*"  # the one name that this package exports
    r"|triton(?!\.runtime\.jit|\.backends\.(nvidia|amd))\b.*|torch\b.*"
)
PRIVATE = re.compile(r"_[A-Za-z]\w*(?<!__)")
#: Underscored and yet no library's secret: of namedtuple, IPython, NumPy's header and os.
PROTOCOLS = set("_asdict _fields _make _replace _repr_html_ _render_traceback_ _UFUNC_API _exit".split())
PROTOCOLS |= {"_left_title", "_correct_state"}  # of matplotlib and distributed
DOCUMENTED_WITH_UNDERSCORE = "torch.utils._python_dispatch.TorchDispatchMode"  # "Extending PyTorch" has it


def nodes_of(source):
    return [*ast.walk(ast.parse(source))]


@functools.cache
def of_files():
    """{file: the nodes of its tree}; read by the process that runs these tests, not by each that collects."""
    return {path: nodes_of(path.read_text(encoding="utf-8")) for path in FILES}


@functools.cache
def own_names():
    """The project's own functions, classes, variables, attributes and modules, without the table's."""
    names = {path.stem for path in FILES}
    for node in itertools.chain(*of_files().values()):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names - LASTS | PROTOCOLS


def is_foreign(dotted):
    return any(dotted == library or dotted.startswith(f"{library}.") for library in LIBRARIES)


def is_private(dotted):
    """Whether a dotted name of a library is none that it documents."""
    if dotted == DOCUMENTED_WITH_UNDERSCORE:
        return False
    if any(PRIVATE.fullmatch(part) for part in dotted.split(".")):
        return True
    head, _, rest = dotted.partition("numba.cuda.")
    first = rest.partition(".")[0]
    if not head and first and not inspect.ismodule(getattr(numba.cuda, first, None)):
        return False
    return not DOCUMENTED.fullmatch(dotted)


def aliases(nodes):
    """{name in the file: dotted name} of what it imports from the libraries."""
    out = {"torch": "torch"}  # also where it is a parameter
    for node in nodes:
        if isinstance(node, ast.Import):
            for one in node.names:
                out[one.asname or one.name.partition(".")[0]] = (
                    one.name if one.asname else one.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            out |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return {name: dotted for name, dotted in out.items() if is_foreign(dotted)}


def dotted_of(node, known):
    """The dotted name of an expression that is one of a library's names; None of another."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute) and (owner := dotted_of(node.value, known)):
        return f"{owner}.{node.attr}"
    return None


def named_by_text(node, known):
    """The dotted name of ``owner, "name"`` in a call or a tuple, as setattr takes it; None of another."""
    parts = node.args if isinstance(node, ast.Call) else getattr(node, "elts", [])
    if len(parts) < 2 or not isinstance(parts[1], ast.Constant) or not isinstance(parts[1].value, str):
        return None
    owner = dotted_of(parts[0], known)
    return owner and f"{owner}.{parts[1].value}"


def private_names(nodes):
    """{name: line} of the private names in a file: dotted where the file says whose, else alone."""
    known, owners = aliases(nodes), set()
    found = dict.fromkeys((dotted for name, dotted in known.items() if name != dotted), 0)
    for node in nodes:
        if dotted := dotted_of(node, known) or named_by_text(node, known):
            owners.add(dotted.rpartition(".")[0])
            found.setdefault(dotted, node.lineno)
        elif isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr):
            if node.attr not in own_names():
                found.setdefault(node.attr, node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            dotted = re.fullmatch(r"\w+(\.\w+)+", node.value) and is_foreign(node.value)
            if dotted or node.value in LASTS and PRIVATE.fullmatch(node.value):
                found.setdefault(node.value, node.lineno)
    return {
        name: line
        for name, line in found.items()
        if name not in owners and (is_private(name) if "." in name else PRIVATE.fullmatch(name))
    }


def entry_of(name):
    """The table's name for a private name that is used; None if it has none."""
    for entry in NAMES:
        if name == entry or name.startswith(f"{entry}.") or "." not in name and entry.endswith(f".{name}"):
            return entry
    return None


@pytest.fixture(scope="module")
def used():
    """(file:line, private name) of all files."""
    return {
        (f"{path.relative_to(ROOT)}:{line}", name)
        for path, of_file in of_files().items()
        for name, line in private_names(of_file).items()
    }


def test_every_private_name_that_is_used_has_its_reason_in_the_table(used):
    assert sorted(one for one in used if not entry_of(one[1])) == []


def test_every_name_in_the_table_is_used(used):
    assert {entry_of(name) for _, name in used} | set(MLIR) == set(NAMES)
    source = (ROOT / "warplab/simt/frontends/mlir_hook.py").read_text(encoding="utf-8")
    for name in MLIR:
        assert re.search(rf"\b{name.rpartition('.')[2]}\b", source), name


def test_there_are_at_most_25_of_them_and_as_many_of_the_successor():
    own = {"cuda.core", "numba_cuda_mlir"}
    assert sum(len(names) for library, names in TABLE.items() if library not in own) <= 25
    assert len(MLIR) <= 25


def there(name):
    """Whether a dotted name is where it says; an instance's attribute is in the source of its class."""
    owner, _, last = name.rpartition(".")
    with contextlib.suppress(ImportError):
        return bool(importlib.import_module(name))
    try:
        module = importlib.import_module(owner)
    except ImportError:
        outer, _, kind = owner.rpartition(".")
        module = getattr(importlib.import_module(outer), kind)
    return hasattr(module, last) or f"self.{last} = " in inspect.getsource(module)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_where_the_table_says(name):
    pytest.importorskip(name.partition(".")[0])
    if name.startswith("torch._C._cuda") and not torch.backends.cuda.is_built():
        pytest.skip("only torch's CUDA build has it")
    assert there(name)


FORBIDDEN = re.compile(r"\b_getframe\b|\bcurrentframe\b|\bf_locals\b|\btb_frame\b")


def test_no_frame_of_a_traceback_and_no_callers_frame_is_read():
    assert [path.name for path in FILES if FORBIDDEN.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "source, name",
    [
        ("from numba.cuda.cudadrv.driver import _to_core_stream", None),
        ("from numba.cuda import dispatcher\ndispatcher.launch", None),
        ("from numba.cuda import codegen as c\nput(c.CUDACodeLibrary, 'finalize')", None),
        ("kernel._type_annotation", None),
        ("from triton.backends.nvidia.driver import ty_to_cpp", None),
        ("kernel.library._linking_files", "numba.cuda.codegen.CUDACodeLibrary._linking_files"),
        ("put(torch.cuda, '_lazy_init')", "torch.cuda._lazy_init"),
    ],
)
def test_the_rule_finds_what_it_is_for(source, name):
    found = private_names(nodes_of(source))
    assert found and {entry_of(one) for one in found} == {name}
    documented = (
        "from numba import cuda, float32\nfrom numba.cuda import types\ncuda.shared.array(32, float32)"
    )
    assert private_names(nodes_of(documented)) == {}
