"""Where arrays are, what they are like, and what axir runs on.

Private: public names stand in `axir`.
"""
