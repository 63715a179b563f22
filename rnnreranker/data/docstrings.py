"""The docstrings of the standard library, gathered by a Python that has loaded nothing else.

`python -I -S docstrings.py NAME...` prints a JSON array of [docid, title, name in words, docstring], sorted by docid.
The NAMEs are kept even with a short docstring.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import re
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Modules of which a part differs between operating systems: the names that do not.
_ONLY = {
    "os": """
        chdir cpu_count fspath get_terminal_size getcwd getenv getpid kill link listdir makedirs mkdir remove
        removedirs rename renames replace rmdir scandir stat symlink truncate unlink urandom utime walk chmod access
        get_exec_path fsencode fsdecode DirEntry PathLike putenv unsetenv strerror system times
    """,
    "socket": """
        create_connection create_server getaddrinfo getfqdn gethostbyname gethostname getnameinfo getservbyname
        getdefaulttimeout setdefaulttimeout socket socketpair htons ntohs inet_aton inet_ntoa inet_ntop inet_pton
    """,
    "signal": """
        signal raise_signal getsignal default_int_handler strsignal Signals Handlers
    """,
    "sys": """
        exc_info exit getdefaultencoding getfilesystemencoding getrecursionlimit getrefcount getsizeof intern
        is_finalizing setrecursionlimit setswitchinterval getswitchinterval settrace gettrace setprofile getprofile
        call_tracing audit addaudithook exception
    """,
}
# Classes of one operating system, defaults that depend on the installation, names that programs replace as they run.
_LEFT_OUT = """
    pathlib.PosixPath pathlib.WindowsPath pathlib.UnsupportedOperation threading.excepthook
    logging.handlers.NTEventLogHandler multiprocessing.resource_sharer subprocess.STARTUPINFO time.tzset
    time.pthread_getcpuclockid webbrowser.MacOSXOSAScript webbrowser.MacOSX webbrowser.WindowsDefault
    sysconfig.get_path sysconfig.get_paths
"""
MODULES = tuple(Path(__file__).with_name("pydoc_files").joinpath("modules.txt").read_text(encoding="utf-8").split())
ONLY = {module: names.split() for module, names in _ONLY.items()}
LEFT_OUT = frozenset(_LEFT_OUT.split())
FEWEST_WORDS = 3
ENOUGH_CHARACTERS = 400  # of a docstring: its first paragraphs, as many as fit; later ones are about details
MOST_CHARACTERS = 1000  # of a first paragraph

_BOILERPLATE = re.compile(
    r"Alias for field number|Initialize self|Return repr\(self\)|Return str\(self\)|Create and return a new object"
    r"|Return self[=<>!+]|Implement |Helper for pickle|See help\(type\(self\)\)|The base class of the class hierarchy"
    r"|Internal |Deprecated AST node class|An enumeration\.$|list of weak references"
)


def gather(enough: frozenset[str]) -> list[tuple[str, str, str, str]]:
    """Rows of docid, title (name and signature), name in words, docstring, by docid; no object or text twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that warn when they are looked up
        items = sorted(_items(enough), key=lambda item: item[0])
    seen: set[Any] = set()
    rows = []
    for (*_, name), value, docstring in items:
        identities = {id(value), docstring}
        if name not in LEFT_OUT and identities.isdisjoint(seen):
            seen |= identities
            rows.append((name, name + _signature(value), _in_words(name), _cut(docstring)))
    return sorted(rows)


def _items(enough: frozenset[str]) -> Iterator[tuple[tuple[Any, ...], Any, str]]:
    """(Rank, object, docstring) of each name; the best of several is no alias, of few parts, early modules, short."""
    for order, module_name in enumerate(MODULES):
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue  # a Python built without an optional library, such as lzma
        prefix = "" if module_name == "builtins" else module_name + "."
        candidates = [(module_name, module)]
        for name, value in _public(module, module_name):
            candidates.append((prefix + name, value))
            if inspect.isclass(value) and f"{prefix}{name}" not in LEFT_OUT:
                candidates += ((f"{prefix}{name}.{method}", member) for method, member in _members(value))
        for name, value in candidates:
            docstring = _docstring(value)
            long_enough = name in enough or len(docstring.split()) >= FEWEST_WORDS
            if docstring and long_enough and not _BOILERPLATE.match(docstring):
                alias = inspect.isclass(value) and value.__name__ != name.rpartition(".")[2]
                yield (alias, name.count("."), order, len(name), name), value, docstring


def _public(module: types.ModuleType, module_name: str) -> Iterator[tuple[str, Any]]:
    listed = ONLY.get(module_name) or getattr(module, "__all__", None)
    for name in sorted(set(listed or vars(module))):
        value = getattr(module, name, None)
        if name.startswith("_") or not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        home = getattr(value, "__module__", None) or module_name
        declared = hasattr(module, "__all__") or module_name in ONLY or module_name == "builtins"
        # else imported there, not part of it; or made for one operating system
        if (declared or home.lstrip("_") == module_name) and not re.search("unix_events|windows_events", home):
            yield name, value


def _members(owner: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class and its private bases."""
    hidden = [base for base in owner.__mro__[1:] if _hidden(base)]
    members = {name: value for base in (*reversed(hidden), owner) for name, value in vars(base).items()}
    for name, value in sorted(members.items()):
        if name.startswith("_"):
            continue
        value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        wrapped = (property, functools.cached_property, types.GetSetDescriptorType, types.DynamicClassAttribute)
        if isinstance(value, wrapped) or (inspect.isroutine(value) and not inspect.isclass(value)):
            yield name, value


def _hidden(base: type) -> bool:
    # people write pathlib.Path.stem, although stem is a property of PurePath
    return base.__name__.startswith("_") or base.__module__.endswith("._abc") or base.__qualname__ == "PurePath"


def _docstring(value: Any) -> str:
    docstring = getattr(value, "__doc__", None)
    if inspect.isclass(value):
        own = vars(value).get("__doc__")  # a descriptor in classes whose instances have docstrings, such as property
        docstring = own if own is None or isinstance(own, str) else docstring
        generated = hasattr(value, "__dataclass_fields__") or hasattr(value, "_fields")
        if isinstance(docstring, str) and generated and docstring.startswith(value.__name__ + "("):
            return ""  # the list of fields that dataclass and namedtuple write
    return inspect.cleandoc(docstring) if isinstance(docstring, str) else ""


def _in_words(name: str) -> str:
    return " ".join(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace(".", " ").replace("_", " ").split())


def _signature(value: Any) -> str:
    """The parameters without `self`, annotations and odd defaults; "" for what has none."""
    empty = inspect.Parameter.empty
    try:
        parameters = [
            one.replace(annotation=empty, default=one.default if _constant(one.default) else ...)
            for one in inspect.signature(value).parameters.values()
        ]
        own = bool(parameters) and parameters[0].name in ("self", "cls", "type", "mcls", "metacls")
        return str(inspect.Signature(parameters[own:])).replace("=Ellipsis", "=...")
    except (ValueError, TypeError):
        return ""


def _constant(default: Any) -> bool:
    if isinstance(default, str):
        return len(default) <= 12 and default.strip("/\\").isascii() and not re.search(r"\w[/\\]", default)
    return default in (None, inspect.Parameter.empty) or type(default) in (bool, int, float)


def _cut(docstring: str) -> str:
    paragraphs = docstring.split("\n\n")
    kept = paragraphs[0]
    for paragraph in paragraphs[1:]:
        if len(kept) + len(paragraph) > ENOUGH_CHARACTERS:
            break
        kept += "\n\n" + paragraph
    if len(kept) > MOST_CHARACTERS:
        kept = re.sub(r"[ \n][^ \n]*\Z", "", kept[:MOST_CHARACTERS])
    return kept.rstrip()


def main(names: list[str]) -> int:
    if not dict.fromkeys.__doc__:
        print("this Python has no docstrings", file=sys.stderr)
        return 1
    json.dump(gather(frozenset(names)), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
