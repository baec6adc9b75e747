"""A hash of what a user's head runs: its class, and all of the user's own code and values that it names.

Comments, docstrings, layout and what the class does not name change nothing. Data files, compiled modules, environment
variables and names that are looked up at run time (`getattr(module, name)`) are not seen: state `MethodInfo.version`.
"""

import ast
import copyreg
import hashlib
import inspect
import linecache
import sys
import textwrap
import uuid
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from operator import itemgetter
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

NOT_OWN = frozenset({"kshot", "builtins", *sys.stdlib_module_names})
PLAIN = (int, float, complex, str, bytes, type(None))
NOTHING = object()
# Classes whose source is nowhere, such as those of `exec`: a random text each, so that no two processes agree on them.
_tokens: dict[Any, str] = {}


def code_hash(cls: type) -> str:
    """16 hex digits that change when the class, or what it names of its user's code, changes."""
    linecache.checkcache()
    return hashlib.sha256("\n".join(_Walk(cls.__module__).texts(cls)).encode()).hexdigest()[:16]


def value_hash(value: Any) -> str:
    """16 hex digits of a parameter's value, of whatever kind."""
    return hashlib.sha256("\n".join(_Walk("__main__").texts(value)).encode()).hexdigest()[:16]


class _Walk:
    """Everything that is reached from a class, each thing once."""

    def __init__(self, home: str) -> None:
        self.home = home
        # Kept, because the address of a thing that is gone would be that of the next.
        self.met: dict[int, Any] = {}

    def texts(self, thing: Any) -> Iterator[str]:
        if isinstance(thing, PLAIN):
            yield repr(thing)
        elif id(thing) in self.met:
            yield f"thing {list(self.met).index(id(thing))}"
        else:
            self.met[id(thing)] = thing
            yield from self.code(thing) if isinstance(thing, type | FunctionType | ModuleType) else self.value(thing)

    def code(self, thing: type | FunctionType | ModuleType) -> Iterator[str]:
        module = thing if isinstance(thing, ModuleType) else sys.modules.get(thing.__module__)
        if module is not None and not self.is_own(module):
            yield f"{module.__name__}:{getattr(thing, '__qualname__', '')}"
            return
        try:
            tree = _without_docstrings(_parsed(thing))
        except (OSError, TypeError, SyntaxError):
            yield _tokens.setdefault(thing, uuid.uuid4().hex)
            return
        yield ast.dump(tree)
        names = vars(module) if module else {"__package__": thing.__module__.rpartition(".")[0]}
        for named in _named(tree, {**names, **_closure(thing)}):
            yield from self.texts(named)

    def value(self, value: Any) -> Iterator[str]:
        """The parts of a container, the state of an object; nothing that depends on its address in memory."""
        yield type(value).__qualname__
        if isinstance(value, dict):
            parts: Any = [part for pair in value.items() for part in pair]
        elif isinstance(value, list | tuple | set | frozenset):
            parts = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            parts = [value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
        elif hasattr(value, "detach") and hasattr(value, "dtype"):
            tensor: Any = value
            parts = [tensor.detach().cpu().double().numpy()]
        else:
            parts = [type(value), getattr(value, "__wrapped__", None), _state(value)]
        for part in parts:
            yield from self.texts(part)

    def is_own(self, module: ModuleType | None) -> bool:
        """Whether its user edits it: not Python's, not kshot's, not installed, unless the class comes from there."""
        name, place = getattr(module, "__name__", "kshot"), getattr(module, "__file__", None)
        if place is None:
            return name in ("__main__", self.home)
        if name.partition(".")[0] in NOT_OWN or not place.endswith(".py"):
            return False
        installed = "site-packages" in place or "dist-packages" in place
        return not installed or name.partition(".")[0] == self.home.partition(".")[0]


def _state(value: Any) -> Any:
    """What pickle rebuilds an object from; its attributes if it cannot be pickled, as with locks and open files."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        return reduce(value) if reduce else value.__reduce_ex__(2)
    except Exception:
        return getattr(value, "__dict__", None)


def _parsed(thing: type | FunctionType | ModuleType) -> ast.AST:
    if isinstance(thing, type) and (tree := _class_around_its_functions(thing)):
        return tree
    if getattr(thing, "__name__", "") == "<lambda>":
        # A line may hold several.
        code = thing.__code__
        values = [value for value in code.co_consts if not isinstance(value, CodeType)]
        return ast.parse(", ".join([repr(code.co_code), repr(values), *code.co_names]))
    return ast.parse(textwrap.dedent(inspect.getsource(thing)))


def _class_around_its_functions(cls: type) -> ast.AST | None:
    """The class in the file, or the cell of a notebook, that holds its functions; inspect knows no cells."""
    for function in _functions(cls):
        if lines := linecache.getlines(function.__code__.co_filename):
            for node in ast.walk(ast.parse("".join(lines))):
                if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                    lines_of_class = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                    if function.__code__.co_firstlineno in lines_of_class:
                        return node
    return None


def _functions(thing: Any) -> Iterator[FunctionType]:
    """A function itself; those of a class, with its properties and static methods."""
    for part in [thing, *vars(thing).values()]:
        function = getattr(part, "__func__", getattr(part, "fget", part))
        if isinstance(function, FunctionType):
            yield function


def _closure(thing: Any) -> dict[str, Any]:
    """What functions defined inside another function take from it."""
    values = {}
    for function in _functions(thing):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):
                values[name] = cell.cell_contents
    return values


def _named(tree: ast.AST, space: dict[str, Any]) -> Iterator[Any]:
    """What the code names: values and functions of its module, `helpers.f`, `package.module.f`, imports inside it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            space |= _imported(node, space.get("__package__") or "")
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)]
    # Of `helpers.f` only f counts, not the whole of `helpers`.
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for _, node in sorted({(ast.dump(node), id(node) in inner): node for node in nodes}.items(), key=itemgetter(0)):
        thing = _value(node, space)
        if thing is not NOTHING and not (isinstance(thing, ModuleType) and id(node) in inner):
            yield thing


def _value(node: ast.AST, space: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return space.get(node.id, NOTHING)
    if isinstance(node, ast.Attribute) and isinstance(owner := _value(node.value, space), ModuleType):
        thing = getattr(owner, node.attr, NOTHING)
        # Values of Python's modules, such as `os.environ`, are others in every process.
        theirs = owner.__name__.partition(".")[0] in NOT_OWN
        return NOTHING if theirs and not isinstance(thing, type | FunctionType | ModuleType) else thing
    return NOTHING


def _imported(node: ast.Import | ast.ImportFrom, package: str) -> dict[str, Any]:
    values = {}
    for alias in node.names:
        try:
            if isinstance(node, ast.Import):
                module = import_module(alias.name)
                name = alias.asname or alias.name.partition(".")[0]
                values[name] = module if alias.asname else sys.modules[name]
            else:
                source = import_module("." * node.level + (node.module or ""), package)
                values[alias.asname or alias.name] = getattr(source, alias.name, NOTHING)
        except Exception:
            # The fit will say so.
            continue
    return values


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree
