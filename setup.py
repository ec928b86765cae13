"""Builds the optional native module; everything else about the package is in pyproject.toml.

The package works without `semprola._native`, only slower; without a C++17 compiler, the build leaves it out. Set
SEMPROLA_NO_NATIVE=1 to leave it out on purpose; the wheel is then pure Python. SEMPROLA_NATIVE_FLAGS holds additional
flags for compiler and linker (such as a sanitizer). SEMPROLA_BUILD_JOBS is the number of files to compile at a time.
"""

from __future__ import annotations

import os
import re
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# setuptools wants paths relative to this file, with forward slashes.
SOURCES = "src/semprola/_native_src"
VERSION_FILE = "src/semprola/_version.py"

# No -march=native: a wheel must run on machines other than the one that built it. -g0 undoes the -g that many Pythons
# pass on, which makes the library more than ten times larger.
UNIX_COMPILE = ["-O3", "-std=c++17", "-fvisibility=hidden", "-fno-math-errno", "-pthread", "-g0"]
UNIX_LINK = ["-pthread"]
MSVC_COMPILE = ["/O2", "/std:c++17", "/EHsc"]

# These include all kernels and take ten times as long as the others to compile.
KERNELS = re.compile("engine_(plain|avx)")

# Everything that the module needs of Python is in the stable ABI, so one wheel serves every version from 3.10 on.
# Free-threaded builds of Python have no stable ABI.
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")


class BuildNative(build_ext):
    """Picks the flags once the compiler is known, and compiles several files at a time."""

    def build_extension(self, ext: Extension) -> None:
        """Compile and link with the flags that suit the compiler."""
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = MSVC_COMPILE
        else:
            extra = os.environ.get("SEMPROLA_NATIVE_FLAGS", "").split()
            ext.extra_compile_args, ext.extra_link_args = UNIX_COMPILE + extra, UNIX_LINK + extra
            self.compiler.compile = self._compile_in_parallel
        super().build_extension(ext)

    def _compile_in_parallel(
        self,
        sources: list[str],
        output_dir: str | None = None,
        macros: list[Any] | None = None,
        include_dirs: list[str] | None = None,
        debug: bool = False,
        extra_preargs: list[str] | None = None,
        extra_postargs: list[str] | None = None,
        depends: list[str] | None = None,
    ) -> list[str]:
        """Compile in parallel, and only objects that are out of date; setuptools compiles all of them one by one."""
        compiler: Any = self.compiler
        macros, objects, post, options, build = compiler._setup_compile(
            output_dir, macros, include_dirs, sources, depends, extra_postargs
        )
        arguments = compiler._get_cc_args(options, debug, extra_preargs)
        command = repr([compiler.compiler_so, getattr(compiler, "compiler_so_cxx", None), arguments, post])

        def compile_one(target: str) -> None:
            source, suffix = build[target]
            record = Path(target).with_suffix(".command")
            if self.force or not is_current(Path(target), source, record, command):
                compiler._compile(target, source, suffix, arguments, [*post, "-MMD"], options)
                record.write_text(command, encoding="utf-8")

        slowest_first = sorted(build, key=lambda target: not KERNELS.search(target))
        with ThreadPoolExecutor(int(os.environ.get("SEMPROLA_BUILD_JOBS", 0)) or os.cpu_count() or 1) as pool:
            list(pool.map(compile_one, slowest_first))
        return list(objects)


def is_current(target: Path, source: str, record: Path, command: str) -> bool:
    """Whether an object is newer than all files that it was made from, and was made by the same command."""
    made_of = target.with_suffix(".d")  # written by the compiler: "target: source header header …"
    if not (target.exists() and made_of.exists() and record.exists()) or record.read_text(encoding="utf-8") != command:
        return False
    names = made_of.read_text(encoding="utf-8").replace("\\\n", " ").partition(": ")[2].split()
    time = target.stat().st_mtime
    return all(Path(name).exists() and Path(name).stat().st_mtime < time for name in {source, *names})


def native_modules() -> list[Extension]:
    """The native module, or nothing if it is not wanted."""
    if os.environ.get("SEMPROLA_NO_NATIVE", "0") not in ("", "0"):
        return []
    macros: list[tuple[str, str | None]] = [("SEMPROLA_VERSION", f'"{package_version()}"')]
    if STABLE_ABI:
        macros.append(("Py_LIMITED_API", "0x030A0000"))
    return [
        Extension(
            "semprola._native",
            sources=files("*.cpp"),
            depends=[*files("*.h"), *files("*.hpp"), VERSION_FILE],
            include_dirs=[SOURCES],
            define_macros=macros,
            language="c++",
            py_limited_api=STABLE_ABI,
            optional=True,
        )
    ]


def files(pattern: str) -> list[str]:
    """Native sources that match, in an order that does not depend on the file system."""
    return sorted(f"{SOURCES}/{path.name}" for path in Path(__file__).parent.joinpath(SOURCES).glob(pattern))


def package_version() -> str:
    """The version, read without importing the package (which would need torch)."""
    text = Path(__file__).parent.joinpath(VERSION_FILE).read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if match is None:
        raise SystemExit(f'{VERSION_FILE}: no line of the form __version__ = "1.2.3"')
    return match[1]


setup(
    ext_modules=native_modules(),
    cmdclass={"build_ext": BuildNative},
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if STABLE_ABI else {},
)
