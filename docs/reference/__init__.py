"""Pages of the reference: for each public name its docstring, and what becomes of a sample call.

`names.py` finds what is public, `docstrings.py` makes Markdown of docstrings, `samples.py` finds a
call of each function among its examples, `pages.py` writes it all, `links.py` makes the links of
pages hold on a site. Elsewhere: the site's layout (`../site/conf.py`).
"""
