"""How the site is built: `make docs`. Nothing is fetched from the network."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs" / "extensions")]

project = "semprola"
author = "The semprola contributors"
copyright = author
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_copybutton",
    "tables",
    "glossary_links",
    "llms",
]
autosummary_generate = False
copybutton_selector = "div:not(.highlight-output) > div.highlight > pre"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "static", "extensions"]
# napoleon takes words of a property's first line for types, and many classes have "labels"
suppress_warnings = ["ref.python"]
html_theme = "furo"
html_title = "semprola"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_favicon = "static/logo.svg"
html_theme_options = {
    "navigation_with_keys": True,
    "light_logo": "logo.svg",
    "dark_logo": "logo-dark.svg",
    "light_css_variables": {"color-brand-primary": "#2f5fc0", "color-brand-content": "#2f5fc0"},
    "dark_css_variables": {"color-brand-primary": "#7aa5f7", "color-brand-content": "#7aa5f7"},
}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
napoleon_numpy_docstring = False
napoleon_use_rtype = False


def _escape_shapes(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Shapes such as [*batch, labels] are text, not emphasis; a single `name` is code, as in Markdown."""
    for number, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        line = re.sub(r"\[[^\]`]*\*[^\]`]*(?:\]|$)", lambda found: found[0].replace("*", r"\*"), line)
        lines[number] = re.sub(r"(?<![:`\w])`([^`]+)`(?![`_])", r"``\1``", line)


INHERITED = (
    "extra_repr",
    "get_extra_state",
    "set_extra_state",
    "expand",
    "has_rsample",
    "arg_constraints",
    "validate_args",
)
"""Members that torch asks for and users never call."""


def _leave_out(app: object, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    return True if name in INHERITED or re.match(r"set_\w+_request$", name) else None


def _own_arguments(app: object, what: str, name: str, thing: Any, options: object, shown: str, result: object) -> Any:
    """Layers choose their class in `__new__`, which takes anything; what users pass is told by `__init__`."""
    if what != "class" or not (shown or "").startswith("(*args"):
        return None
    signature = inspect.signature(thing.__init__)
    told = [part.replace(annotation=part.empty) for part in [*signature.parameters.values()][1:]]
    return str(signature.replace(parameters=told, return_annotation=signature.empty)), None


def setup(app: Any) -> None:
    """Before the docstrings are read by napoleon."""
    app.connect("autodoc-process-docstring", _escape_shapes, priority=100)
    app.connect("autodoc-skip-member", _leave_out)
    app.connect("autodoc-process-signature", _own_arguments)
