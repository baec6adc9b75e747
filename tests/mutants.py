"""Wrong versions of a formula: one operator or one number of its arithmetic changed at a time."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import ModuleType

SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
# Guards, indices and options are not the formula.
SKIPPED = (ast.Compare, ast.Raise, ast.Import, ast.ImportFrom)


def mutants(module: ModuleType, name: str) -> Iterator[tuple[str, object]]:
    """(what was changed, the changed function) for every operator and number of `module.name`."""
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(getattr(module, name))))
    for site in range(len(_sites(ast.parse(source)))):
        tree = ast.parse(source)
        node = _sites(tree)[site]
        before = ast.unparse(node)
        if isinstance(node, ast.BinOp):
            node.op = SWAPS[type(node.op)]()
        elif isinstance(node, ast.UnaryOp):
            node.op = ast.UAdd()
        else:
            node.value += 1
        namespace = dict(vars(module))
        exec(compile(ast.fix_missing_locations(tree), f"<mutant of {name}>", "exec"), namespace)
        yield f"{before} -> {ast.unparse(node)}", namespace[name]


def _sites(tree: ast.Module) -> list:
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.returns, function.decorator_list = None, []
    for argument in function.args.args:
        argument.annotation = None
    found = []
    for statement in function.body[1:]:
        _walk(statement, found, in_arithmetic=False)
    return found


def _walk(node: ast.AST, found: list, in_arithmetic: bool) -> None:
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Compare):
        # A condition that is the formula itself.
        for side in (node.value.left, *node.value.comparators):
            _walk(side, found, in_arithmetic=True)
        return
    if isinstance(node, SKIPPED):
        return
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        found.append(node)
        in_arithmetic = True
    elif _is_sign(node) or (in_arithmetic and _is_number(node)):
        found.append(node)
    elif isinstance(node, ast.Call):
        in_arithmetic = False
    children = [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
    for child in children:
        _walk(child, found, in_arithmetic)


def _is_sign(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)
