"""What the source says about a class or function: signatures, fields, and the words beside them.

Read from the text of the modules, not from live objects: only there are defaults and annotations spelled
as their author wrote them, and only there do fields have descriptions.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_LINE_WIDTH = 90
_ASKED_FOR = ast.FunctionDef | ast.AsyncFunctionDef


class Field(NamedTuple):
    """One field of a class."""

    name: str
    annotation: str
    default: str | None
    text: str


class Member(NamedTuple):
    """A function, a method or a property."""

    name: str
    signature: str
    """How it is called and what it returns; of a property or attribute, its type."""
    text: str
    is_called: bool = True


@cache
def _body(file: str) -> list[ast.stmt]:
    return ast.parse(Path(file).read_text()).body


def class_node(kind: type) -> ast.ClassDef:
    """Return the source of a class."""
    for node in _body(inspect.getfile(kind)):
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            return node
    raise LookupError(f"no source of {kind}")


def function_member(function: Callable[..., Any]) -> Member:
    """Return a function as it is called."""
    for node in _body(inspect.getfile(function)):
        if isinstance(node, _ASKED_FOR) and node.name == function.__name__:
            return Member(node.name, _signature(node, function.__module__), docstring(node))
    raise LookupError(f"no source of {function}")


def docstring(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return what a class or function says about itself."""
    return ast.get_docstring(node) or ""


def constant_text(module: str, name: str) -> str:
    """Return the words below a module's constant."""
    statements = _body(inspect.getfile(sys.modules[module]))
    for statement, text in _with_text(statements):
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            return text
    raise LookupError(f"{module} has no {name}")


def public_classes(kind: type) -> Iterator[type]:
    """Yield a class and those of its bases that are ours, the class first."""
    yield from (one for one in kind.__mro__ if one.__module__.startswith("leasehold."))


def fields(kind: type) -> list[Field]:
    """Return the annotated fields of one class, without those of its bases."""
    return [
        Field(
            name=ast.unparse(statement.target),
            annotation=ast.unparse(statement.annotation).replace('"', ""),
            default=None if statement.value is None else _default(statement.value, kind.__module__),
            text=text,
        )
        for statement, text in _with_text(class_node(kind).body)
        if isinstance(statement, ast.AnnAssign) and not ast.unparse(statement.target).startswith("_")
    ]


def attributes(kind: type) -> list[Member]:
    """Return what `__init__` sets and describes."""
    found = []
    for node in class_node(kind).body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            given = {one.arg: _annotation(one.annotation) for one in node.args.args if one.annotation}
            for statement, text in _with_text(node.body):
                name = _attribute_name(statement)
                if text and name is not None and not name.startswith("_"):
                    found.append(Member(name, given.get(name, ""), text, is_called=False))
    return found


def _attribute_name(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    else:
        return None
    return target.attr if isinstance(target, ast.Attribute) else None


def members(kind: type) -> list[Member]:
    """Return the public methods and properties of a class and its bases, each once, as they stand there."""
    found: dict[str, Member] = {}
    for one in public_classes(kind):
        for node in class_node(one).body:
            if isinstance(node, _ASKED_FOR) and not node.name.startswith("_"):
                found.setdefault(node.name, _member(node, one.__module__))
    return list(found.values())


def _member(node: ast.FunctionDef | ast.AsyncFunctionDef, module: str) -> Member:
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    if decorators & {"property", "cached_property"}:
        returns = "" if node.returns is None else _annotation(node.returns)
        return Member(node.name, returns, docstring(node), is_called=False)
    return Member(node.name, _signature(node, module), docstring(node))


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, module: str) -> str:
    given = node.args
    ordinary = [one for one in given.args if one.arg not in ("self", "cls")]
    missing = len(ordinary) - len(given.defaults)
    parts = [
        _argument(one, given.defaults[index - missing] if index >= missing else None, module)
        for index, one in enumerate(ordinary)
    ]
    if given.vararg is not None:
        parts.append(f"*{_argument(given.vararg, None, module)}")
    elif given.kwonlyargs:
        parts.append("*")
    parts += [
        _argument(one, default, module)
        for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    if given.kwarg is not None:
        parts.append(f"**{given.kwarg.arg}")
    colour = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    returns = "" if node.returns is None else f" -> {_annotation(node.returns)}"
    flat = f"{colour}{node.name}({', '.join(parts)}){returns}"
    if len(flat) <= _LINE_WIDTH:
        return flat
    listed = "".join(f"    {part},\n" for part in parts)
    return f"{colour}{node.name}(\n{listed}){returns}"


def _argument(argument: ast.arg, default: ast.expr | None, module: str) -> str:
    annotation = "" if argument.annotation is None else f": {_annotation(argument.annotation)}"
    if default is None:
        return f"{argument.arg}{annotation}"
    return f"{argument.arg}{annotation} = {_default(default, module)}"


def _default(default: ast.expr, module: str) -> str:
    """Spell a default; a constant of the module by its value, which is what a caller wants to know."""
    if isinstance(default, ast.Name):
        return repr(getattr(sys.modules[module], default.id))
    return ast.unparse(default)


def _annotation(annotation: ast.expr) -> str:
    return ast.unparse(annotation).replace("'", "").replace("os.PathLike[str]", "PathLike[str]")


def _with_text(statements: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Yield each statement with the words that stand below it, if any do."""
    following: list[ast.stmt | None] = [*statements[1:], None]
    for statement, after in zip(statements, following, strict=True):
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = inspect.cleandoc(str(after.value.value))
        yield statement, text
