"""Rewrites of StableHLO into programs that IREE compiles and computes correctly.

One file per subject. Each pass states the fact about IREE that makes it necessary;
`legalize_for_iree.py` puts them in order. Elsewhere: lowering of axir's operations (they arrive as
StableHLO) and rewrites that only make programs faster.
"""
