"""Sphinx configuration."""

from imparo import __version__

project = "imparo"
author = copyright = "The imparo developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "imparo"
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "literal"
suppress_warnings = ["myst.xref_missing"]
