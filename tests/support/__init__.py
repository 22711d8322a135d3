"""Helpers that several test files share: inputs, generated programs, oracles, and what runs them.

Imported as `support.…`, because pytest puts `tests/` on the path. What a single file needs stays in
that file, and nothing here is a test.
"""
