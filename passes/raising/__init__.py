"""Raising StableHLO from any source to the jaxpr dialect: the inverse of lowering.

A rule belongs to an operation of StableHLO or CHLO, and the rules of a family are in one file. A
rule takes the operation and the values of its operands, and applies functions of
`axir.dialect.ops`. As in every rule, the applied ops are recorded. `table.py` defines rules and
their context, `module.py` walks over a module, `raise_stablehlo.py` is the pass.

Elsewhere: the other direction, which is defined with the ops (rule `lower`), and reading portable
artifacts as StableHLO (`axir.dialect.text.portable_artifacts`).
"""
