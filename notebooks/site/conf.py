"""Sphinx configuration: `make site` builds the documentation; a warning is an error."""

import sys
from pathlib import Path

import bonas

sys.path.insert(0, str(Path(__file__).parent))  # for `extension`

project = "bonas"
version = release = bonas.__version__
copyright = "The bonas authors, Apache 2.0"
html_show_copyright = False
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "extension.pages"]
exclude_patterns = ["extension"]
nb_execution_mode = "force"  # a failing cell fails the build
nb_execution_raise_on_error = True
nb_execution_excludepatterns = ["notebooks/*"]  # executed by `make notebooks`
nb_output_stderr = "remove"  # messages of other packages about this machine
nb_execution_timeout = 300
myst_enable_extensions = ["attrs_inline", "deflist"]
smartquotes = False  # params["order"] is code
myst_heading_anchors = 3

nitpicky = True  # an unresolved reference is a warning
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # docstrings state shapes
autodoc_preserve_defaults = True
autodoc_docstring_signature = False
autodoc_member_order = "bysource"
autoclass_content = "both"

html_theme = "furo"
html_title = f"bonas {version}"
html_static_path = ["static"]
html_theme_options = {"top_of_page_buttons": []}
html_show_sourcelink = False
html_css_files = ["site.css"]
