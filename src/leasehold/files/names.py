r"""What a file is called, whoever asks from wherever: in every clone and work tree the same.

A path inside a git repository is named by its project and its place in the repository,
`/@PROJECT/src/app.py`; any other by its absolute path. Symbolic links, `.` and `..` are resolved, as far as
there is anything to resolve: what does not exist yet has a name as well. Where the file system takes `A` for
`a`, so does the name. Names such as `service://db` are nobody's path, and stay as they are.

A path with special characters is a pattern, unless there is a file of that very name, or it is escaped: only
its part before the first special character is resolved. A path that is no text, too long, or a pattern that
cannot be read, raises `InvalidInput`.
"""

import os
import re
from typing import NamedTuple

from leasehold.errors import InvalidInput
from leasehold.files.project import LONGEST_NAME, is_project_name, project_of
from leasehold.kernel.lease.globs import BadPattern, escape, literal_prefix, parsed
from leasehold.kernel.lease.paths import is_canonical
from leasehold.kernel.ledger.limits import RESOURCE_BYTES

_VIRTUAL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.")
_PROJECT = re.compile(r"/@((?:[^/\\]|\\.)+)(?:/(.*))?", re.DOTALL)
_ESCAPE = re.compile(r"\\([*?\[{\\])")
_NAME = "name:"
"""What a name begins with that would be taken for a path otherwise."""
_OPTION = "-"
"""What a command takes for an option, if it begins with that."""

AnyPath = str | os.PathLike[str]


class FileName(NamedTuple):
    """The name of a file, a folder or a pattern, as a resource, and for people."""

    resource: str
    path: str
    """Inside its repository, or absolute; a virtual name as it is."""


def name_of(path: AnyPath, *, start: str | None = None) -> FileName:
    """Return what a path is called. One that is not absolute counts from `start`, or where we are."""
    text = _text(path)
    if _VIRTUAL.match(text):
        return FileName(_checked(text, text), text)
    base = start or _working_directory()
    here = os.path.join(base, text)
    if not os.path.lexists(here) and literal_prefix(text) != text:
        resource = _pattern(os.path.join(escape(base), text), text)
    else:
        real = os.path.realpath(_plain(base, text))
        resource = _resource(real, "", folder=text.endswith("/") or os.path.isdir(real))
    resource = _checked(resource, text)
    return FileName(resource, shown(resource))


def is_path(text: str) -> bool:
    """Say whether a text is a path, or a name like `service://db`, where plain names are taken as well."""
    return "/" in text or text.startswith(".")


def resource_of(text: AnyPath, *, start: str | None = None) -> str:
    """Return the resource that is meant where paths and plain names are taken.

    Text with a slash in it, or a dot at its beginning, is a path; so is a path object. What is a name already
    stays as it is. What follows `name:` is a name, whatever it looks like.
    """
    if isinstance(text, str):
        if text == _NAME:
            raise InvalidInput(f"{text!r} lacks a name; write it behind the colon", field="resource")
        if text.startswith(_NAME) and not _VIRTUAL.match(text):
            return text.removeprefix(_NAME)
        if text.startswith("/@") or not is_path(text):
            return text
    return name_of(text, start=start).resource


def written(resource: str, *, start: str | None = None) -> str:
    """Return how to write a resource in a folder, or where we are, so that `resource_of` reads it back.

    A path of the folder's own project is told from the folder; one of another project by its full name. A
    plain name that would be taken for a path, or for an option, has `name:` in front.
    """
    for text in _spellings(resource, start):
        try:
            if resource_of(text, start=start) == resource:
                return text
        except InvalidInput:
            continue
    return f"{_NAME}{resource}"


def _spellings(resource: str, start: str | None) -> list[str]:
    """Return what a resource may be called, the most pleasant first; to some of it, others may answer."""
    inside = _PROJECT.fullmatch(resource)
    if inside is None:
        if resource.startswith(_OPTION):
            return []
        return [_ESCAPE.sub(r"\1", resource), resource] if resource.startswith("/") else [resource]
    try:
        here = _PROJECT.fullmatch(name_of(start or ".").resource.removesuffix("/**"))
    except InvalidInput:  # We are in a repository that has no name yet, or nowhere.
        here = None
    if here is None or here[1] != inside[1]:
        return [resource]
    path = os.path.relpath(f"/{inside[2] or ''}", f"/{here[2] or ''}")
    if not is_path(path) or path.startswith((_NAME, _OPTION)):
        path = f"./{path}"
    return [_ESCAPE.sub(r"\1", path), path, resource]


def name_elsewhere(path: str, *, project: str | None = None) -> FileName:
    """Return what a path is called that a caller on another machine means. Nothing is looked up.

    With a project, the path counts from the top of its repository; a `/` at its end says that it is a folder.
    Without, it has to be a name as the store has it: `/@PROJECT/src/app.py`, an absolute path with all links
    resolved, or a virtual name. Special characters that are not escaped make it a pattern.
    """
    text = _text(path)
    if project is not None:
        resource = _inside(text, project)
    elif text.startswith("/") or _VIRTUAL.match(text):
        resource = text
    else:
        raise InvalidInput(
            f"path {text!r:.80} is relative; name its project, or give the name that the store has for it: "
            "/@PROJECT/…",
            field="path",
        )
    if resource.startswith("/") and not is_canonical(resource):
        raise InvalidInput(
            f"path {text!r:.80} has an empty name, '.', '..' or a stray backslash in it; spell it without",
            field="path",
        )
    resource = _checked(resource, text)
    return FileName(resource, shown(resource))


def _inside(text: str, project: str) -> str:
    """Name a path that counts from the top of a project's repository."""
    if not is_project_name(project):
        raise InvalidInput(
            f"project must be at most {LONGEST_NAME} bytes of printable text without a slash", field="project"
        )
    if text.startswith("/") or _VIRTUAL.match(text):
        raise InvalidInput(
            f"path {text!r:.80} is not inside a project; leave the project out, or the slash", field="path"
        )
    top = f"/@{escape(project)}"
    if text in (".", "./"):
        return top
    resource = _checked(f"{top}/{text.removesuffix('/')}", text)
    is_folder = text.endswith("/") and parsed(resource).is_file
    return f"{resource}/**" if is_folder else resource


def file_at(path: AnyPath) -> tuple[str, FileName]:
    """Return where the file is that a path leads to, all links resolved, and what that is called."""
    text = _text(path)
    if _VIRTUAL.match(text):
        raise InvalidInput(f"{text!r} is a name, and not a file that can be opened", field="path")
    place = os.path.realpath(_plain(_working_directory(), text))
    resource = _checked(_resource(place, "", folder=os.path.isdir(place)), text)
    return place, FileName(resource, shown(resource))


def entry_at(path: str) -> FileName:
    """Return what an entry of a folder is called, as git means it: a link is not followed.

    A submodule is an entry of the repository around it, which says which commit of it belongs there.
    """
    text = _text(path)
    folder, name = os.path.split(os.path.join(_working_directory(), text))
    folder = os.path.realpath(folder)
    resource = _checked(_resource(os.path.join(folder, name), "", folder=False, within=folder), text)
    return FileName(resource, shown(resource))


def _plain(base: str, text: str) -> str:
    """Return the path that is meant by one that is no pattern: as it is written, or without its escapes."""
    here = os.path.join(base, text)
    return here if os.path.lexists(here) else os.path.join(base, _ESCAPE.sub(r"\1", text))


def shown(resource: str) -> str:
    """Return how people call a resource: by its place in its repository, where it has one."""
    inside = _PROJECT.fullmatch(resource)
    return resource if inside is None else _ESCAPE.sub(r"\1", inside[2] or ".")


def is_file_name(resource: str) -> bool:
    """Say whether a resource is a path, or a virtual name."""
    return resource.startswith("/") or _VIRTUAL.match(resource) is not None


def _text(path: AnyPath) -> str:
    given: object = path
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str):
        raise InvalidInput(f"path must be text or a path, not {given!r}", field="path")
    if not text:
        raise InvalidInput("path must not be empty", field="path")
    if "\0" in text:
        raise InvalidInput(f"path {text!r} contains a NUL character", field="path")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"path {text!r} is not UTF-8; rename it to claim it", field="path") from None
    return text


def _checked(resource: str, text: str) -> str:
    """Return a resource that the law accepts; say what is wrong with the path that led to another."""
    size = len(resource.encode())
    if size > RESOURCE_BYTES:
        raise InvalidInput(
            f"path {text[:80]!r}… is too long: its name has {size} bytes; at most {RESOURCE_BYTES} fit",
            field="path",
        )
    if not resource.isprintable():
        raise InvalidInput(f"path {text!r} contains a control character", field="path")
    if resource.startswith("/"):
        try:
            parsed(resource)
        except BadPattern as error:
            raise InvalidInput(
                f"path {text!r} is a pattern that cannot be read: {error}", field="path"
            ) from None
    return resource


def _pattern(here: str, text: str) -> str:
    """Name a pattern: what comes before its first special character is a folder, and resolved."""
    folder, _, names = literal_prefix(here).rpartition("/")
    names += here[len(literal_prefix(here)) :]
    if any(name in ("", ".", "..") for name in names.rstrip("/").split("/")):
        raise InvalidInput(f"pattern {text!r} has an empty name, '.' or '..' in it", field="path")
    resource = _resource(os.path.realpath(_ESCAPE.sub(r"\1", folder) or "/"), names.rstrip("/"), folder=False)
    _checked(resource, text)
    if not re.search(r"[*?{]", names) and not _matches_anything(here):
        raise InvalidInput(
            f"{text!r} is a pattern that matches no file; for a new file of that name, "
            f"escape its brackets: {escape(text)!r}",
            field="path",
        )
    return resource


def _matches_anything(pattern: str) -> bool:
    from glob import iglob  # Only here: few patterns have sets only.

    return next(iglob(pattern), None) is not None


def _resource(path: str, pattern: str, *, folder: bool, within: str | None = None) -> str:
    """Name a path that is resolved, or a pattern inside of it. `folder`: there may be something below it.

    It is named by the project that it belongs to, or by that of the folder that it is looked at `within`.
    """
    project = project_of(within or path)
    if project is None:
        top, base = "/", ""
    else:
        top, base = project.top, f"/@{project.name}"
    inside = os.path.relpath(path, top)
    names = [] if inside == "." else inside.split("/")
    resource = base + "".join(f"/{escape(name)}" for name in _folded(top, names)) or "/"
    if pattern:
        return f"{resource.rstrip('/')}/{pattern.casefold() if _folds_case(path) else pattern}"
    return f"{resource}/**" if folder and parsed(resource).is_file else resource


def _folded(folder: str, names: list[str]) -> list[str]:
    """Return names as their folders compare them."""
    found = []
    for name in names:
        found.append(name.casefold() if _folds_case(folder) else name)
        folder = os.path.join(folder, name)
    return found


def _folds_case(folder: str) -> bool:
    """Say whether a folder takes `A` for `a`, as far as something in it can tell."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                other = entry.name.swapcase()
                if other != entry.name:
                    return is_same(os.path.join(folder, other), entry.path)
    except OSError:  # It does not exist yet, is a file, or may not be looked at.
        return False
    return False


def is_same(one: str, other: str) -> bool:
    """Say whether two names lead to the same entry of a folder."""
    return os.path.lexists(one) and os.path.samestat(os.lstat(one), os.lstat(other))


def _working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise InvalidInput("the working directory is gone; give an absolute path", field="path") from None
