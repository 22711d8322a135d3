"""Programs as text: parsing, verifying, writing, signatures, the dialect in IRDL.

What does not live here: the commands that read and write files (`axir.cli`).
"""
