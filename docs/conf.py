"""Sphinx configuration: ``make docs`` builds into ``docs/_build``, without a network."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from imparo import __version__  # noqa: E402  # below the path of the extensions

# Pages of names that are gone would be built, and fail.
LISTED = re.findall(r"^   (imparo[\w.]+)$", (HERE / "api.md").read_text("utf-8"), re.M)
for page in (HERE / "generated").glob("*.rst"):
    if page.stem not in LISTED:
        page.unlink()

project = "imparo"
author = copyright = "The imparo developers"
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "command_help",
]
exclude_patterns = ["_build", "_ext", "_templates"]
templates_path = ["_templates"]
default_role = "literal"

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = True
autosummary_ignore_module_all = False
numpydoc_show_class_members = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "image_srcset": ["2x"],
    "thumbnail_size": (480, 300),
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "backreferences_dir": None,
    "doc_module": ("imparo",),
    "within_subsection_order": "gallery_style.ChapterOrder",
    "reset_modules": ("matplotlib", "gallery_style.apply"),
}

html_theme = "pydata_sphinx_theme"
html_title = "imparo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["imparo.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "start": [], "choosing": [], "gpu": [], "cluster": []}
html_theme_options = {
    "logo": {
        "text": "imparo",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "nord-darker",
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "back_to_top_button": False,
}
