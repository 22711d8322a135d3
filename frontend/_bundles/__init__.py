"""Bundles: functions, their parameters and their programs in one file, `model.axir`.

The format is stated in `docs/export.md`. Nothing is executed when a bundle is opened, and large
entries are mapped rather than read. Elsewhere: modules and programs in separate files
(`frontend/_programs/`), public names (`axir.export`).
"""
