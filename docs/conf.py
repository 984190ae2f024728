# The documentation as a site: python -m sphinx -W docs OUT (sphinx and myst-parser as in
# tools/requirements.txt; tegula importable).
#
# SPDX-License-Identifier: Apache-2.0
import tegula

project = "tegula"
copyright = "the tegula authors, Apache-2.0"
version = release = tegula.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["man"]
html_theme = "alabaster"
html_theme_options = {
    "description": "Big arrays between files and the memory of many processors",
    "page_width": "70em",
}
html_copy_source = False
templates_path = []

myst_heading_anchors = 4

nitpicky = True  # every name that is referred to is explained here, or elsewhere:
nitpick_ignore_regex = [("py:.*", r"(os|collections|numpy|np)\..*|tegula\._core\..*")]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
napoleon_numpy_docstring = False
napoleon_use_rtype = False
