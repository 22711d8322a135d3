"""Trees of containers: the adapter to optree, paths, registration, trees as text.

Private: public names are in `axir.tree` and `axir.tree_util`.
"""
