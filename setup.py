"""Builds the optional native module; everything else about the package is in pyproject.toml.

The package works without `semprola._native`, only slower: where there is no C++17 compiler the build leaves it out.
Set SEMPROLA_NO_NATIVE=1 to do without it on purpose; the wheel is then a pure Python one.
"""

from __future__ import annotations

import os
import re
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# setuptools wants paths relative to this file, with forward slashes.
SOURCES = "src/semprola/_native_src"
VERSION_FILE = "src/semprola/_version.py"

# No -march=native: a wheel must run on machines other than the one that built it. -g0 undoes the -g that many Pythons
# pass on; it makes the library more than ten times larger.
UNIX_COMPILE = ["-O3", "-std=c++17", "-fvisibility=hidden", "-fno-math-errno", "-pthread", "-g0"]
UNIX_LINK = ["-pthread"]
MSVC_COMPILE = ["/O2", "/std:c++17", "/EHsc"]

# All that the module needs of Python is in the stable ABI, so that one wheel serves every version from 3.10 on.
# Free-threaded builds of Python have no stable ABI.
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")


class BuildNative(build_ext):
    """Picks the flags once the compiler is known."""

    def build_extension(self, ext: Extension) -> None:
        """Compile and link with the flags of the compiler at hand."""
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = MSVC_COMPILE
        else:
            ext.extra_compile_args, ext.extra_link_args = UNIX_COMPILE, UNIX_LINK
        super().build_extension(ext)


def native_modules() -> list[Extension]:
    """The native module, or nothing where it is not wanted."""
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
