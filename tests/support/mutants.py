"""Wrong versions of a function: one place of its code changed at a time."""

import ast
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial, reduce
from types import FunctionType, ModuleType

SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
# Guards, indices and options are not the formula.
SKIPPED = (ast.Compare, ast.Raise, ast.Import, ast.ImportFrom)

WIDE_SWAPS = SWAPS | {
    ast.FloorDiv: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
# Words, and how many digits are shown: the committed reports pin these, not the tests of a formula.
WORDS = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)
SHOWN_BY = {"number", "interval", "signed", "Number"}
# `strict` is a guard against calls that no caller makes, and `reshape(-1)` is about layout.
GUARDS = {"strict"}
LAYOUT = {"reshape"}

Change = Callable[[], str]


def mutants(module: ModuleType, name: str, wide: bool = False) -> Iterator[tuple[str, FunctionType]]:
    """(what was changed, the changed function) for every operator and number in the arithmetic of `module.name`.

    `wide` changes comparisons, conditions, slices, every number and boolean, and drops statements as well.
    """
    original = function_of(module, name)
    source = textwrap.dedent(inspect.getsource(original))
    places = _wide_places if wide else _places
    seen = Counter()
    for place in range(len(places(_function(source)))):
        function = _function(source)
        change = places(function)[place]()
        seen[change] += 1
        namespace = dict(vars(module))
        tree = ast.fix_missing_locations(ast.Module([function], []))
        exec(compile(tree, f"<mutant of {name}>", "exec"), namespace)
        yield change + (f" #{seen[change]}" if wide and seen[change] > 1 else ""), namespace[function.name]


def function_of(module: ModuleType, name: str) -> FunctionType:
    """The function as it was written: of a property, a cache or a checked signature what lies within."""
    found = reduce(inspect.getattr_static, name.split("."), module)
    found = getattr(found, "fget", None) or getattr(found, "__func__", None) or found
    return inspect.unwrap(found)


def _function(source: str) -> ast.FunctionDef:
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    function.returns, function.decorator_list = None, []
    for argument in function.args.args + function.args.kwonlyargs:
        argument.annotation = None
    return function


def _statements(function: ast.FunctionDef) -> list[ast.stmt]:
    return function.body[1:] if ast.get_docstring(function) is not None else function.body


def _places(function: ast.FunctionDef) -> list[Change]:
    found: list[Change] = []
    for statement in _statements(function):
        _walk(statement, found, in_arithmetic=False)
    return found


def _walk(node: ast.AST, found: list[Change], in_arithmetic: bool) -> None:
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Compare):
        # A condition that is the formula itself.
        for side in (node.value.left, *node.value.comparators):
            _walk(side, found, in_arithmetic=True)
        return
    if isinstance(node, SKIPPED):
        return
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        found.append(partial(_swap, node))
        in_arithmetic = True
    elif _is_sign(node):
        found.append(partial(_set, node, "op", ast.UAdd()))
    elif in_arithmetic and _is_number(node):
        found.append(partial(_set, node, "value", node.value + 1))
    elif isinstance(node, ast.Call):
        in_arithmetic = False
    children = [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
    for child in children:
        _walk(child, found, in_arithmetic)


def _wide_places(function: ast.FunctionDef) -> list[Change]:
    found: list[Change] = []
    _walk_statements(_statements(function), function.body, found)
    return found


def _walk_statements(statements: list[ast.stmt], within: list[ast.stmt], found: list[Change]) -> None:
    for statement in statements:
        if _is_droppable(statement):
            found.append(partial(_drop, within, statement))
        _walk_wide(statement, found)


def _walk_wide(node: ast.AST, found: list[Change]) -> None:
    if isinstance(node, WORDS):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LAYOUT:
        return _walk_wide(node.func.value, found)
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in WIDE_SWAPS:
        found.append(partial(_swap, node))
    elif isinstance(node, ast.Compare):
        found.extend(partial(_swap_comparison, node, place) for place in range(len(node.ops)))
    elif _is_sign(node):
        found.append(partial(_set, node, "op", ast.UAdd()))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        found.append(partial(_set, node, "operand", ast.UnaryOp(node.op, node.operand)))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        found.append(partial(_set, node, "value", not node.value))
    elif _is_number(node):
        found.append(partial(_set, node, "value", node.value + 1))
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        found.append(partial(_set, node, "test", ast.UnaryOp(ast.Not(), node.test)))
    elif isinstance(node, ast.Slice):
        found.extend(partial(_set, node, side, None) for side in ("lower", "upper") if getattr(node, side))
    shown = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SHOWN_BY
    for name, value in ast.iter_fields(node):
        if name == "annotation" or (isinstance(node, ast.keyword) and node.arg in GUARDS):
            continue
        children = value if isinstance(value, list) else [value]
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            _walk_statements(value, value, found)
        else:
            for child in children:
                if isinstance(child, ast.AST) and not (shown and isinstance(child, ast.Constant)):
                    _walk_wide(child, found)


def _is_droppable(node: ast.stmt) -> bool:
    """What a function can do without and still run: effects, not the names that it works with."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets)
    return isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Continue | ast.Break)


def _swap(node: ast.BinOp | ast.AugAssign | ast.BoolOp) -> str:
    return _set(node, "op", WIDE_SWAPS[type(node.op)]())


def _swap_comparison(node: ast.Compare, place: int) -> str:
    swapped = [WIDE_SWAPS[type(op)]() if i == place else op for i, op in enumerate(node.ops)]
    return _set(node, "ops", swapped)


def _drop(within: list[ast.stmt], statement: ast.stmt) -> str:
    within[within.index(statement)] = ast.Pass()
    return f"{ast.unparse(statement)} -> pass"


def _set(node: ast.AST, field: str, value: object) -> str:
    before = _shown(node)
    setattr(node, field, value)
    return f"{before} -> {_shown(node)}"


def _shown(node: ast.AST) -> str:
    """Of a condition's statement only the condition."""
    return f"if {ast.unparse(node.test)}" if isinstance(node, ast.If | ast.While) else ast.unparse(node)


def _is_sign(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)
