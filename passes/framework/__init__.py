"""The form of passes, the table of passes, pipelines, and replacing the functions of a module.

Nothing here depends on a single pass.
"""
