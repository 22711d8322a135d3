"""Trees of containers: the adapter to optree, paths, registration, trees as text.

Private: public names stand in `axir.tree` and `axir.tree_util`.
"""
