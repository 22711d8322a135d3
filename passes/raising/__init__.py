"""StableHLO from anywhere, raised into the jaxpr dialect: the way back from lowering.

A rule belongs to an operation of StableHLO or CHLO, and the rules of a family stand in one file. It
takes the operation and the values of its operands, and applies functions of `axir.dialect.ops`, as
every rule does, so what they apply is recorded. `table.py` says what a rule is and what it may ask
for, `module.py` walks over a module, `raise_stablehlo.py` is the pass.

Elsewhere: the other direction, which stands with the ops (rule `lower`), and reading portable
artifacts as StableHLO (`axir.dialect.text.portable_artifacts`).
"""
