"""How Sphinx makes the site: `make docs`. Nothing is fetched, neither while it is built nor by its pages."""

import sys
from pathlib import Path

import kshot

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

project = "kshot"
author = "the kshot contributors"
version = release = kshot.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton", "tools.glossary"]
exclude_patterns = ["open/records", "clip/records"]
html_theme = "furo"
html_title = "kshot"
html_show_copyright = False
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 900
nb_ipywidgets_js = {}
myst_heading_anchors = 3
# The report's first heading stands below its title.
suppress_warnings = ["myst.header"]
default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False


def setup(app):
    """Docstrings write |x| for a norm; Sphinx would look for a substitution."""
    app.connect("autodoc-process-docstring", _norms_are_text)


def _norms_are_text(app, what, name, obj, options, lines):
    lines[:] = [line.replace("|", "\\|") for line in lines]
