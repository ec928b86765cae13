"""The package as it is shipped: one version, the right files, modules that import only from their left."""

from __future__ import annotations

import ast
import ctypes
import importlib.metadata
import importlib.util
import os
import pkgutil
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import semprola as sp
from semprola._public import MOVED
from semprola._version import __version__

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "semprola"

# A module may import from its own group and from those above it. Top-level private modules count as the first group.
ORDER = [
    {"errors"},
    {"logic"},
    {"circuit"},
    {"compiler"},
    {"constraints"},
    {"engine"},
    {"distributions"},
    {"nn"},
    {"rules"},
    {"sequences"},
    {"losses", "baselines"},
    {"training"},
    {"comparison"},
    {"sklearn", "lightning", "export", "saving"},
    {"cli", "playground", "__main__"},
]
RANK = {name: rank for rank, group in enumerate(ORDER) for name in group}
# `import semprola` runs the package's __init__, which gathers what the layers below the command line offer.
RANK_OF_ROOT = RANK["cli"]


def test_one_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", __version__)
    citation = ROOT.joinpath("CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1] == __version__  # type: ignore[index]
    if not is_installed():
        pytest.skip("semprola is not installed, only on the path")
    installed = importlib.metadata.version("semprola")
    assert installed == __version__, "the installation is stale: `make clean`, then `make test`"


def test_changelog_has_room_for_changes() -> None:
    headings = re.findall(r"^## (.+)$", ROOT.joinpath("CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    for heading in headings[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading)


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    missing = [folder.relative_to(ROOT).as_posix() for folder in folders if not (folder / "__init__.py").is_file()]
    assert not missing, f"without __init__.py a wheel leaves them out: {sorted(missing)}"


def test_modules_import_only_from_their_left() -> None:
    violations = [
        f"{path.relative_to(PACKAGE).as_posix()}:{line} imports {target}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path not in (PACKAGE / "__init__.py", PACKAGE / "_public.py")
        for line, target in imports(path)
        if rank(target) > rank(".".join(["semprola", *path.relative_to(PACKAGE).with_suffix("").parts]))
    ]
    assert not violations, "\n".join(violations)


def test_no_file_uses_a_private_name_of_another() -> None:
    """Neither imported, wherever in the file that is, nor looked up in an imported module."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        own = [
            node for node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("semprola")
        ]
        names = [(node, name) for node in own for name in node.names]
        found += [(path.name, node.lineno, name.name) for node, name in names if is_private(name.name)]
        modules = {name.asname or name.name for node, name in names if is_module(f"{node.module}.{name.name}")}
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                found += [(path.name, node.lineno, node.attr)] * is_private(node.attr)
    assert not found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_torch_is_loaded_on_first_use() -> None:
    """`import semprola` is free; the first use of a name loads everything, and nothing is lost to completion."""
    code = """
import sys
import semprola as sp
assert "torch" not in sys.modules
import semprola.logic, semprola.circuit, semprola.compiler, semprola.constraints
assert "torch" not in sys.modules, "what compiles constraints must not need torch"
assert not hasattr(sp, "nonsense")
assert sp.nn is not None and sp.SPL is not None and "torch" in sys.modules
extras = ("lightning", "matplotlib", "onnx", "pandas", "pysdd", "scipy", "sklearn", "sympy", "typer")
assert not {*extras} & {*sys.modules}, "these are loaded when they are needed"
assert {*sp.__all__} <= {*dir(sp)} and "at_most" in sp.__all__
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_completion_lists_the_public_names_and_no_others() -> None:
    listed = {name for name in dir(sp) if not name.startswith("__")}
    assert listed == {*sp.__all__, "export", "lightning", "sklearn"} - {"__version__"}
    assert len(listed) <= 55, "the public surface should fit in a head: put further names into the modules"


@pytest.mark.parametrize("name", MOVED)
def test_old_names_work_and_tell_the_new_place(name: str) -> None:
    new = MOVED[name].replace("semprola.", "sp.", 1)
    with pytest.warns(DeprecationWarning, match=rf"sp\.{name} is now {re.escape(new)}; "):
        found = getattr(sp, name)
    assert found is pkgutil.resolve_name(MOVED[name])


@pytest.mark.extensive
def test_import_costs_little_more_than_torch() -> None:
    """All of semprola against torch alone, in turn, in fresh interpreters; the middle of three ratios."""

    def seconds(code: str) -> float:
        timed = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
        out = subprocess.run([sys.executable, "-c", timed], check=True, capture_output=True, text=True, timeout=120)
        return float(out.stdout)

    pairs = [(seconds("import torch"), seconds("import semprola; semprola.SPL")) for _ in range(3)]
    assert statistics.median(everything / alone for alone, everything in pairs) < 1.5, pairs  # 1.15 on a quiet machine


def test_circuits_know_no_torch_and_start_no_process() -> None:
    for path in (PACKAGE / "circuit").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) (torch|subprocess|multiprocessing|pysdd)\b", text, re.MULTILINE), path


@pytest.mark.extensive
def test_sdist_and_wheel_without_compiler(tmp_path: Path) -> None:
    """Both build; with a compiler that always fails the wheel lacks the native module and nothing else."""
    source = copy_of_the_project(tmp_path / "project")
    environment = os.environ | {"CC": "/bin/false", "CXX": "/bin/false"}
    environment.pop("SEMPROLA_NO_NATIVE", None)
    build = "from setuptools import build_meta as b; b.build_sdist('dist'); b.build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=source, env=environment, check=True, capture_output=True)

    (wheel,) = source.glob("dist/*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    modules = {path.relative_to(source / "src").as_posix() for path in source.glob("src/semprola/**/*.py")}
    page = {path.relative_to(source / "src").as_posix() for path in source.glob("src/semprola/playground/static/*")}
    assert "semprola/playground/static/index.html" in page
    assert modules | page | {"semprola/py.typed"} <= shipped
    assert f"semprola-{__version__}.dist-info/licenses/LICENSE" in shipped
    assert not [name for name in shipped if "_native" in name]

    (sdist,) = source.glob("dist/*.tar.gz")
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    native = {path.relative_to(source).as_posix() for path in source.glob("src/semprola/_native_src/*")}
    assert {f"src/{name}" for name in page} <= packed
    assert native | {"LICENSE", "CHANGELOG.md", "CITATION.cff", "tests/conftest.py", "setup.py"} <= packed
    assert not [name for name in packed if name.endswith((".so", ".pyd", ".pyc"))]


def test_native_module_is_of_this_version() -> None:
    spec = importlib.util.find_spec("semprola._native")
    if spec is None or spec.origin is None:
        # A build that fails leaves the module out without a word, so this is where an error in the sources shows.
        compiler = shutil.which(os.environ.get("CXX", "c++"))
        if compiler and is_installed() and "SEMPROLA_NO_NATIVE" not in os.environ:
            pytest.fail("the native module did not build: see `pip install -v -e .`, or set SEMPROLA_NO_NATIVE=1")
        pytest.skip("semprola was built without its native module")
    version = ctypes.CDLL(spec.origin).semprola_native_version
    version.restype = ctypes.c_char_p
    assert version() == __version__.encode()


def is_installed() -> bool:
    """Whether pip has installed semprola, rather than PYTHONPATH pointing at it."""
    return next(iter(importlib.metadata.distributions(name="semprola")), None) is not None


def copy_of_the_project(target: Path) -> Path:
    """Copy what a build needs, without what earlier builds left behind."""
    trash = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.egg-info")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, target / name, ignore=trash)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, target)
    return target


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """The modules of semprola that a file imports anywhere, with the line; imports for type checking do not count."""
    package = ("semprola", *path.relative_to(PACKAGE).parent.parts)
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            pending.extend(node.orelse)
            continue
        pending.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from semprola import logic` names the module only in its last part.
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "semprola" else [module]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == "semprola")


def rank(module: str) -> int:
    """The place of a module in the order of imports."""
    _, _, rest = module.partition(".")
    top = rest.split(".")[0]
    if top in RANK:
        return RANK[top]
    if top.startswith("_") and top != "__main__":
        return 0
    if top and ((PACKAGE / top).is_dir() or (PACKAGE / f"{top}.py").is_file()):
        raise AssertionError(f"semprola.{top} has no place in ORDER: give it one")
    return RANK_OF_ROOT
