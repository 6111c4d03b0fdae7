"""Mutation operators for Python solutions.

The general operators are mutmut's. Ours, which know about kernels, have the same form: a type of libcst node,
and a function from such a node to its replacements.
"""

import re
from collections.abc import Callable, Iterable, Iterator

import libcst as cst
from libcst import matchers as m
from mutmut.mutation import mutators

#: (type of node, function from such a node to its replacements)
Operators = tuple[tuple[type[cst.CSTNode], Callable[..., Iterable[cst.CSTNode]]], ...]

#: mutmut's, without those that insert None or "XX": nearly all of these raise, which tests no check.
GENERAL: Operators = (
    (cst.BaseNumber, mutators.operator_number),
    (cst.Name, mutators.operator_name),
    (cst.AugAssign, mutators.operator_augmented_assignment),
    (cst.UnaryOperation, mutators.operator_remove_unary_ops),
    (cst.CSTNode, mutators.operator_keywords),
    (cst.CSTNode, mutators.operator_swap_op),
    (cst.IfExp, mutators.operator_if_exp),
)
MEETINGS = re.compile(r"\b(syncthreads|syncwarp|synchronize|wait|barrier|record|threadfence)\b")
ARRAYS = ("array", "empty", "zeros", "empty_like", "zeros_like")
OTHER_TYPE = {"float64": "float32", "float32": "float16", "int64": "int32", "int32": "int16", "int8": "uint8"}
AXES = {"x": "y", "y": "x"}
PARTS = m.OneOf(*(m.Name(name) for name in ("threadIdx", "blockIdx", "blockDim", "gridDim")))
EMPTY = cst.Module([])


def text(node: cst.CSTNode) -> str:
    """The node's source."""
    return EMPTY.code_for_node(node)


def plus(node: cst.BaseExpression, amount: int) -> cst.BinaryOperation:
    """The expression `(node) + amount`, or `(node) - |amount|`."""
    held = node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.BinaryOperation(
        held, cst.Add() if amount > 0 else cst.Subtract(), cst.Integer(str(abs(amount)))
    )


def lowered(node: cst.Integer) -> Iterator[cst.BaseExpression]:
    """An integer constant one smaller."""
    if node.evaluated_value > 0:
        yield node.with_changes(value=str(node.evaluated_value - 1))


def scaled(node: cst.Float) -> Iterator[cst.BaseExpression]:
    """A constant that is one percent too large."""
    yield node.with_changes(value=repr(node.evaluated_value * 1.01))


def dropped(node: cst.SimpleStatementLine) -> Iterator[cst.CSTNode]:
    """A statement that is missing: a barrier, a store, a line of bookkeeping."""
    told = m.Expr(m.SimpleString()) | m.Return() | m.Pass() | m.Import() | m.ImportFrom()
    if not m.matches(node.body[0], told):
        yield node.with_changes(body=[cst.Pass()])


def stopped(node: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    """A kernel that returns before it has finished."""
    lines = node.body.body
    if not m.findall(node, m.Return(value=m.DoNotCare())) or is_kernel(node):
        for place in range(1, len(lines)):
            early = [*lines[:place], cst.SimpleStatementLine([cst.Return()])]
            yield node.with_changes(body=node.body.with_changes(body=early))


def moved(node: cst.IndentedBlock) -> Iterator[cst.CSTNode]:
    """A barrier or a wait that comes a statement too early, too late, or inside the condition before it."""
    lines = list(node.body)
    for place, line in enumerate(lines):
        if not (isinstance(line, cst.SimpleStatementLine) and MEETINGS.search(text(line))):
            continue
        for other in (place - 1, place + 1):
            if 0 <= other < len(lines):
                changed = lines.copy()
                changed[place], changed[other] = changed[other], changed[place]
                yield node.with_changes(body=changed)
        before = lines[place - 1] if place else None
        if isinstance(before, cst.If):
            inside = before.body.with_changes(body=[*before.body.body, line])
            yield node.with_changes(
                body=[*lines[: place - 1], before.with_changes(body=inside), *lines[place + 1 :]]
            )


def swapped_axis(node: cst.Attribute) -> Iterator[cst.CSTNode]:
    """threadIdx.x for threadIdx.y, and their like."""
    if node.attr.value in AXES and m.matches(node.value, PARTS | m.Attribute(attr=PARTS)):
        yield node.with_changes(attr=cst.Name(AXES[node.attr.value]))


def swapped_index(node: cst.Subscript) -> Iterator[cst.CSTNode]:
    """a[j, i] for a[i, j]."""
    if len(node.slice) == 2 and text(node.slice[0].slice) != text(node.slice[1].slice):
        first, second = node.slice
        yield node.with_changes(
            slice=[first.with_changes(slice=second.slice), second.with_changes(slice=first.slice)]
        )


def swapped_names(node: cst.AssignTarget) -> Iterator[cst.CSTNode]:
    """col, row = ... for row, col = ..."""
    if m.matches(node.target, m.Tuple(elements=[m.Element(), m.Element()])):
        first, second = cst.ensure_type(node.target, cst.Tuple).elements
        pair = [first.with_changes(value=second.value), second.with_changes(value=first.value)]
        yield node.with_changes(target=node.target.with_changes(elements=pair))


def unguarded(node: cst.If) -> Iterator[cst.CSTNode]:
    """A condition that always holds, or never."""
    for value in ("True", "False"):
        yield node.with_changes(test=cst.Name(value))


def half_guarded(node: cst.BooleanOperation) -> Iterator[cst.CSTNode]:
    """One half of a condition only."""
    yield node.left
    yield node.right


def short_of_the_last(node: cst.Comparison) -> Iterator[cst.CSTNode]:
    """i < n - 1 for i < n."""
    target = node.comparisons[0]
    if len(node.comparisons) == 1 and m.matches(target.operator, m.LessThan() | m.LessThanEqual()):
        yield node.with_changes(comparisons=[target.with_changes(comparator=plus(target.comparator, -1))])


def other_range(node: cst.Call) -> Iterator[cst.CSTNode]:
    """A loop that ends one too early or too late, begins one too late, or does not step."""
    if not m.matches(node.func, m.Name("range")):
        return
    stop = min(1, len(node.args) - 1)
    changes = [(stop, -1), (stop, 1)] + ([(0, 1)] if len(node.args) > 1 else [])
    for place, amount in changes:
        args = list(node.args)
        args[place] = args[place].with_changes(value=plus(args[place].value, amount))
        yield node.with_changes(args=args)


def other_type(node: cst.Attribute) -> Iterator[cst.CSTNode]:
    """np.float16 for np.float32."""
    if m.matches(node.value, m.Name("np") | m.Name("torch")) and node.attr.value in OTHER_TYPE:
        yield node.with_changes(attr=cst.Name(OTHER_TYPE[node.attr.value]))


def whole_numbers(node: cst.Arg) -> Iterator[cst.CSTNode]:
    """An array of int instead of float32."""
    if m.matches(node.value, m.Name("float32")):
        yield node.with_changes(value=cst.Name("int"))


def unwrapped(node: cst.With) -> Iterator[cst.CSTNode]:
    """A block without its context manager: no_grad, a stream, a capture."""
    yield cst.If(cst.Name("True"), node.body)


def plain_addition(node: cst.Call) -> Iterator[cst.CSTNode]:
    """An atomic operation replaced by a read of its operand."""
    if m.matches(node.func, m.Attribute(value=m.Attribute(attr=m.Name("atomic")))) and len(node.args) >= 2:
        yield cst.Subscript(node.args[0].value, [cst.SubscriptElement(cst.Index(node.args[1].value))])


def plain_store(node: cst.Expr) -> Iterator[cst.CSTNode]:
    """a[i] += v for an atomic addition of v."""
    call = m.Call(func=m.Attribute(value=m.Attribute(attr=m.Name("atomic")), attr=m.Name("add")))
    if m.matches(node.value, call):
        array, index, value = (arg.value for arg in cst.ensure_type(node.value, cst.Call).args[:3])
        place = cst.Subscript(array, [cst.SubscriptElement(cst.Index(index))])
        yield cst.AugAssign(place, cst.AddAssign(), value)


def shared_buffer(node: cst.IndentedBlock) -> Iterator[cst.CSTNode]:
    """One buffer used instead of two."""
    made = {}
    for place, line in enumerate(node.body):
        if m.matches(line, m.SimpleStatementLine([m.Assign(targets=[m.AssignTarget(m.Name())])])):
            given = cst.ensure_type(cst.ensure_type(line, cst.SimpleStatementLine).body[0], cst.Assign)
            call, target = given.value, cst.ensure_type(given.targets[0].target, cst.Name).value
            name = (
                text(call.func).rpartition(".")[2]
                if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute)
                else ""
            )
            if name in ARRAYS:
                for other in made:
                    same = line.with_changes(body=[given.with_changes(value=cst.Name(other))])
                    yield node.with_changes(body=[*node.body[:place], same, *node.body[place + 1 :]])
                made[target] = line


def serialised(node: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    """A kernel in which one block does the work of all, or one thread that of its block."""
    if not is_kernel(node):
        return
    if any(m.findall(loop, m.Return()) for loop in m.findall(node, m.For() | m.While())):
        return
    body = text(node.body.with_changes(header=cst.TrailingWhitespace()))
    body = re.sub(r"\breturn\b", "continue", re.sub(r"\"\"\".*?\"\"\"", "pass", body, flags=re.S))
    for part, size in (("block", "grid"), ("thread", "block")):
        if part == "thread" and "syncthreads" in body:
            continue
        x, y = SERIAL[part]
        inside = re.sub(rf"cuda\.{part}Idx\.([xyz])", rf"_{part}_\1", body)
        inside = inside.replace("cuda.grid(1)", f"({x})").replace("cuda.grid(2)", f"({x}, {y})")
        lines = inside.splitlines()
        least = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
        shifted = "\n".join(" " * 12 + line[least:] for line in lines)
        after = "\n            cuda.syncthreads()" if "syncthreads" in body else ""
        program = (
            f"def kernel():\n    if cuda.{part}Idx.x == 0 and cuda.{part}Idx.y == 0:\n"
            f"      for _{part}_y in range(cuda.{size}Dim.y):\n"
            f"        for _{part}_x in range(cuda.{size}Dim.x):\n{shifted}{after}\n"
        )
        yield node.with_changes(body=cst.parse_module(program).body[0].body)


SERIAL = {
    part: tuple(
        f"{block} * cuda.blockDim.{axis} + {thread}"
        for axis in "xy"
        for block, thread in [
            (f"_block_{axis}", f"cuda.threadIdx.{axis}")
            if part == "block"
            else (f"cuda.blockIdx.{axis}", f"_thread_{axis}")
        ]
    )
    for part in ("block", "thread")
}


def is_kernel(node: cst.FunctionDef) -> bool:
    """Whether a function has the decorator @cuda.jit, not for a device function."""
    return any(
        "cuda.jit" in text(decorator) and "device" not in text(decorator) for decorator in node.decorators
    )


def uncalled(node: cst.Call) -> Iterator[cst.CSTNode]:
    """A rounding, bound or copy left out: x for ceil(x), a for max(a, b), x for x.clone()."""
    name = node.func.attr.value if isinstance(node.func, cst.Attribute) else text(node.func)
    if name in COPIES and isinstance(node.func, cst.Attribute):
        yield node.func.value
    elif name in ROUNDINGS:
        yield from (arg.value for arg in node.args if arg.keyword is None and not arg.star)


def other_call(node: cst.Call) -> Iterator[cst.CSTNode]:
    """mean for median, floor for ceil, max for min."""
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    if isinstance(name, cst.Name) and name.value in OTHER_CALL:
        yield node.with_deep_changes(name, value=OTHER_CALL[name.value])


def without_keyword(node: cst.Call) -> Iterator[cst.CSTNode]:
    """A call without one of its named arguments: axis=1, keepdims=True, key=..."""
    for place, arg in enumerate(node.args):
        if arg.keyword is not None:
            rest = [*node.args[:place], *node.args[place + 1 :]]
            yield node.with_changes(args=rest)


def all_items(node: cst.CompFor) -> Iterator[cst.CSTNode]:
    """A comprehension without its condition."""
    if node.ifs:
        yield node.with_changes(ifs=[])


def shifted_slice(node: cst.Slice) -> Iterator[cst.CSTNode]:
    """A slice that begins one later, or ends one sooner."""
    if node.upper is not None and not isinstance(node.upper, cst.Integer):
        yield node.with_changes(upper=plus(node.upper, -1))
    if node.lower is not None and not isinstance(node.lower, cst.Integer):
        yield node.with_changes(lower=plus(node.lower, 1))


def swapped_arguments(node: cst.Call) -> Iterator[cst.CSTNode]:
    """f(b, a) for f(a, b), unless the order does not matter."""
    plain = [arg for arg in node.args if arg.keyword is None and not arg.star]
    if len(plain) == len(node.args) == 2 and text(node.func) not in ("max", "min", "range"):
        first, second = node.args
        yield node.with_changes(
            args=[first.with_changes(value=second.value), second.with_changes(value=first.value)]
        )


def swapped_operands(node: cst.BinaryOperation) -> Iterator[cst.CSTNode]:
    """b - a for a - b, and the like."""
    if isinstance(node.operator, cst.Subtract | cst.Divide | cst.FloorDivide | cst.MatrixMultiply):
        yield node.with_changes(left=node.right, right=node.left)


def untransposed(node: cst.Attribute) -> Iterator[cst.CSTNode]:
    """x for x.T."""
    if node.attr.value in ("T", "mT"):
        yield node.value


COPIES = ("clone", "copy", "detach", "contiguous", "wait", "flatten")
ROUNDINGS = (
    "max",
    "min",
    "ceil",
    "floor",
    "round",
    "rint",
    "abs",
    "int",
    "sqrt",
    "sorted",
    "maximum",
    "minimum",
    "clip",
)
OTHER_CALL = {
    "max": "min",
    "min": "max",
    "ceil": "floor",
    "floor": "ceil",
    "median": "mean",
    "argmax": "argmin",
    "argmin": "argmax",
    "any": "all",
    "all": "any",
    "rint": "floor",
    "round": "int",
    "isend": "send",
    "irecv": "recv",
    "maximum": "minimum",
    "minimum": "maximum",
    "sum": "mean",
}


OURS: Operators = (
    (cst.Call, uncalled),
    (cst.Call, other_call),
    (cst.Call, without_keyword),
    (cst.Call, swapped_arguments),
    (cst.CompFor, all_items),
    (cst.Slice, shifted_slice),
    (cst.BinaryOperation, swapped_operands),
    (cst.Attribute, untransposed),
    (cst.Integer, lowered),
    (cst.Float, scaled),
    (cst.SimpleStatementLine, dropped),
    (cst.FunctionDef, stopped),
    (cst.FunctionDef, serialised),
    (cst.IndentedBlock, moved),
    (cst.IndentedBlock, shared_buffer),
    (cst.Attribute, swapped_axis),
    (cst.Attribute, other_type),
    (cst.Subscript, swapped_index),
    (cst.AssignTarget, swapped_names),
    (cst.If, unguarded),
    (cst.BooleanOperation, half_guarded),
    (cst.Comparison, short_of_the_last),
    (cst.Call, other_range),
    (cst.Call, plain_addition),
    (cst.Expr, plain_store),
    (cst.Arg, whole_numbers),
    (cst.With, unwrapped),
)


def mutated(source: str) -> Iterator[tuple[str, str]]:
    """Yield (name of the operator, source) of every mutant of a Python source."""
    module = cst.parse_module(source)
    for node in inside(module):
        for kind, operator in GENERAL + OURS:
            if isinstance(node, kind):
                for other in operator(node):
                    wrong = cst.ensure_type(module.deep_replace(node, other), cst.Module)
                    yield operator.__name__.removeprefix("operator_"), wrong.code


def inside(node: cst.CSTNode) -> Iterable[cst.CSTNode]:
    """Yield the node and all nodes below it, without decorators, annotations and imports."""
    yield node
    for child in node.children:
        if not isinstance(child, cst.Decorator | cst.Annotation | cst.Import | cst.ImportFrom):
            yield from inside(child)
