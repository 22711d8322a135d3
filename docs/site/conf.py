"""How Sphinx builds the site from the pages that `../make_site.py` writes."""

from __future__ import annotations

project = "axir"
html_title = "axir"
html_theme = "furo"
extensions = ["myst_parser"]
exclude_patterns = ["README.md"]
myst_heading_anchors = 4
# A page of the op table has the columns of all rules.
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
html_copy_source = False
# The names of anchors are those that the repository's host makes, so that links hold on both.
myst_enable_extensions: list[str] = []
nitpicky = True
linkcheck_ignore = [r"http://localhost"]
