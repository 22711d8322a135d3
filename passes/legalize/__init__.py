"""Rewrites of StableHLO into what IREE compiles, and computes right.

One file per subject. Each pass states the fact about IREE that it answers; `legalize_for_iree.py`
puts them in order. Elsewhere: lowering of our own operations (they arrive as StableHLO already) and
rewrites that only make programs faster.
"""
