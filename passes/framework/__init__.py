"""What a pass is, the table of passes, pipelines, and modules whose functions passes replace.

Nothing here knows what a single pass does.
"""
