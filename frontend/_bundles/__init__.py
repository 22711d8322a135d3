"""Bundles: functions, their parameters and their programs in one file, `model.axir`.

The format is stated in `docs/export.md`. Nothing is executed when a bundle is opened, and what is
large in it is mapped rather than read. Elsewhere: modules and programs in files of their own
(`frontend/_programs/`), public names (`axir.export`).
"""
