"""Configuration of the documentation: ``make docs`` builds it without a network.

With ``SKDICE_DOCS_INTERSPHINX=1`` names of scikit-learn, PyTorch, pandas and Optuna become links;
their inventories are then fetched. Without it such names are plain code.
"""

import os
import sys
from pathlib import Path

from sphinx.ext import autosummary

import skdice

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "skdice"
author = "The skdice developers"
copyright = author
version = release = skdice.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "gallery",
    "layers",
    "links",
    "mathml",
    "own_names",
    "signatures",
]
if os.environ.get("SKDICE_DOCS_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
intersphinx_mapping = {
    "sklearn": ("https://scikit-learn.org/stable/", None),
    "torch": ("https://docs.pytorch.org/docs/stable/", None),
    "pandas": ("https://pandas.pydata.org/docs/", None),
    "optuna": ("https://optuna.readthedocs.io/en/stable/", None),
}

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "auto_examples/*.ipynb"]
templates_path = ["_templates"]
default_role = "code"
nitpicky = True
smartquotes = False  # Default values are code.
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 80
python_trailing_comma_in_multi_line_signatures = False

autosummary_generate = True
autosummary.WELL_KNOWN_ABBREVIATIONS += ("Eq.",)  # where the first sentence does not end
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["attrs_block", "colon_fence", "dollarmath"]
myst_heading_anchors = 4

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    # All but those that need a server, several processes or packages that are not in the extra.
    "filename_pattern": (
        r"/(?!(demo_gradio|distributed_search|track_fits|train_on_several)\.py)\w+\.py$"
    ),
    "copyfile_regex": r"index\.rst",
    "backreferences_dir": "auto_examples/backreferences",
    "minigallery_sort_order": "gallery.place",
    "ignore_pattern": r"__init__\.py",
    "reset_argv": "gallery.of_example",
    "download_all_examples": False,
    "plot_gallery": "True",
    "min_reported_time": 0,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "abort_on_example_error": False,
    "doc_module": (),
}

html_theme = "pydata_sphinx_theme"
html_title = "skdice"
html_static_path = ["_static"]
html_css_files = ["skdice.css"]
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {
    page: [] for page in ("index", "start", "paper", "bad_input", "design", "changelog")
}
html_show_sourcelink = False
html_copy_source = False
