"""The places of arrays, their descriptions, and the devices that axir runs on.

Private: public names are in `axir`.
"""
