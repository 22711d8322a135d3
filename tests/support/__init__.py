"""Helpers that several test files share: inputs, generated programs, oracles, and runners.

Imported as `support.…`, because pytest puts `tests/` on the path. Helpers of a single file stay in
that file, and nothing here is a test.
"""
