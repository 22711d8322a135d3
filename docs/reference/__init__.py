"""Pages of the reference: each public name's docstring, and the compiled form of a sample call.

`names.py` finds the public names, `docstrings.py` converts docstrings to Markdown, `samples.py`
finds a call of each function among its examples, `pages.py` writes the pages, `links.py` adapts the
links of pages to a site. Elsewhere: the site's layout (`../site/conf.py`).
"""
