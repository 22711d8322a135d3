"""Programs as text: parsing, verifying, writing, signatures, the dialect in IRDL.

Elsewhere: the commands that read and write files (`axir.cli`).
"""
