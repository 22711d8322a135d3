// The jaxpr dialect, derived from the op table by `make irdl`: do not edit.
// iree-opt --irdl-file=jaxpr.irdl.mlir checks a module against it.
irdl.dialect @jaxpr {
  irdl.operation @abs {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @acos {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @acosh {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @add {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @and {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @argmax {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    %a1 = irdl.base "#builtin.type"
    irdl.attributes { "axes" = %a0, "index_dtype" = %a1 }
  }

  irdl.operation @argmin {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    %a1 = irdl.base "#builtin.type"
    irdl.attributes { "axes" = %a0, "index_dtype" = %a1 }
  }

  irdl.operation @asin {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @asinh {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @atan {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @atan2 {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @atanh {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @bitcast_convert_type {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.type"
    irdl.attributes { "new_dtype" = %a0 }
  }

  irdl.operation @broadcast_in_dim {
    %operand = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    %a1 = irdl.base "#builtin.dense_array"
    irdl.attributes { "broadcast_dimensions" = %a0, "shape" = %a1 }
  }

  irdl.operation @cbrt {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @ceil {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @clamp {
    %low = irdl.base "!builtin.tensor"
    %x = irdl.base "!builtin.tensor"
    %high = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(low: %low, x: %x, high: %high)
    irdl.results(result: %result)
  }

  irdl.operation @clz {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @complex {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @concatenate {
    %operands = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operands: variadic %operands)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension" = %a0 }
  }

  irdl.operation @conj {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @constant {
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %a0 = irdl.any
    irdl.attributes { "value" = %a0 }
  }

  irdl.operation @convert_element_type {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.type"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "new_dtype" = %a0, "weak_type" = %a1 }
  }

  irdl.operation @copy {
    %operand = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(result: %result)
  }

  irdl.operation @cos {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @cosh {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @cumlogsumexp {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "reverse" = %a1 }
  }

  irdl.operation @cummax {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "reverse" = %a1 }
  }

  irdl.operation @cummin {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "reverse" = %a1 }
  }

  irdl.operation @cumprod {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "reverse" = %a1 }
  }

  irdl.operation @cumsum {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "reverse" = %a1 }
  }

  irdl.operation @div {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @dot_general {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    %a1 = irdl.any
    %a2_type = irdl.base "#builtin.type"
    %a2_unit = irdl.base "#builtin.unit"
    %a2 = irdl.any_of(%a2_type, %a2_unit)
    irdl.attributes { "dimension_numbers" = %a0, "precision" = %a1, "preferred_element_type" = %a2 }
  }

  irdl.operation @dynamic_slice {
    %operand = irdl.base "!builtin.tensor"
    %starts = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, starts: variadic %starts)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "slice_sizes" = %a0 }
  }

  irdl.operation @dynamic_update_slice {
    %operand = irdl.base "!builtin.tensor"
    %update = irdl.base "!builtin.tensor"
    %starts = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, update: %update, starts: variadic %starts)
    irdl.results(result: %result)
  }

  irdl.operation @eq {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @erf {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @erf_inv {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @erfc {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @exp {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @exp2 {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @expm1 {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @floor {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @gather {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dictionary"
    %a1_float = irdl.base "#builtin.float"
    %a1_integer = irdl.base "#builtin.integer"
    %a1_unit = irdl.base "#builtin.unit"
    %a1 = irdl.any_of(%a1_float, %a1_integer, %a1_unit)
    %a2 = irdl.base "#builtin.integer"
    %a3 = irdl.base "#builtin.string"
    %a4 = irdl.base "#builtin.dense_array"
    %a5 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "fill_value" = %a1, "indices_are_sorted" = %a2, "mode" = %a3, "slice_sizes" = %a4, "unique_indices" = %a5 }
  }

  irdl.operation @ge {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @gt {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @imag {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @integer_pow {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "y" = %a0 }
  }

  irdl.operation @iota {
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.type"
    %a2 = irdl.base "#builtin.dense_array"
    irdl.attributes { "dimension" = %a0, "dtype" = %a1, "shape" = %a2 }
  }

  irdl.operation @is_finite {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @jit {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.symbol_ref"
    %a1 = irdl.base "#builtin.string"
    irdl.attributes { "jaxpr" = %a0, "name" = %a1 }
  }

  irdl.operation @le {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @log {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @log1p {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @logistic {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @lt {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @max {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @min {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @mul {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @ne {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @neg {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @nextafter {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @not {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @or {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @pad {
    %operand = irdl.base "!builtin.tensor"
    %padding_value = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, padding_value: %padding_value)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    irdl.attributes { "padding_config" = %a0 }
  }

  irdl.operation @population_count {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @pow {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @real {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @reduce {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.dense_array"
    %a1 = irdl.base "#builtin.symbol_ref"
    irdl.attributes { "dimensions" = %a0, "jaxpr" = %a1 }
  }

  irdl.operation @reduce_and {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_max {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_min {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_or {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_prod {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_sum {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_xor {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @rem {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @reshape {
    %operand = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(result: %result)
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0_unit = irdl.base "#builtin.unit"
    %a0 = irdl.any_of(%a0_dense_array, %a0_unit)
    %a1 = irdl.base "#builtin.dense_array"
    irdl.attributes { "dimensions" = %a0, "new_sizes" = %a1 }
  }

  irdl.operation @rev {
    %operand = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "dimensions" = %a0 }
  }

  irdl.operation @round {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "rounding_method" = %a0 }
  }

  irdl.operation @rsqrt {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @scatter {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %updates = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices, updates: %updates)
    irdl.results(result: %result)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @scatter_add {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %updates = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices, updates: %updates)
    irdl.results(result: %result)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @scatter_max {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %updates = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices, updates: %updates)
    irdl.results(result: %result)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @scatter_min {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %updates = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices, updates: %updates)
    irdl.results(result: %result)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @scatter_mul {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %updates = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices, updates: %updates)
    irdl.results(result: %result)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @select_n {
    %which = irdl.base "!builtin.tensor"
    %cases = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(which: %which, cases: variadic %cases)
    irdl.results(result: %result)
  }

  irdl.operation @shift_left {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @shift_right_arithmetic {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @shift_right_logical {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @sign {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @sin {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @sinh {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @slice {
    %operand = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    %a1 = irdl.base "#builtin.dense_array"
    %a2_dense_array = irdl.base "#builtin.dense_array"
    %a2_unit = irdl.base "#builtin.unit"
    %a2 = irdl.any_of(%a2_dense_array, %a2_unit)
    irdl.attributes { "limit_indices" = %a0, "start_indices" = %a1, "strides" = %a2 }
  }

  irdl.operation @sort {
    %operands = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(operands: variadic %operands)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension" = %a0, "is_stable" = %a1, "num_keys" = %a2 }
  }

  irdl.operation @sqrt {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @square {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @squeeze {
    %operand = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "dimensions" = %a0 }
  }

  irdl.operation @stop_gradient {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @sub {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @tan {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @tanh {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @threefry2x32 {
    %operands0 = irdl.base "!builtin.tensor"
    %operands1 = irdl.base "!builtin.tensor"
    %operands2 = irdl.base "!builtin.tensor"
    %operands3 = irdl.base "!builtin.tensor"
    %result0 = irdl.base "!builtin.tensor"
    %result1 = irdl.base "!builtin.tensor"
    irdl.operands(operands0: %operands0, operands1: %operands1, operands2: %operands2, operands3: %operands3)
    irdl.results(result0: %result0, result1: %result1)
  }

  irdl.operation @top_k {
    %operand = irdl.base "!builtin.tensor"
    %result0 = irdl.base "!builtin.tensor"
    %result1 = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(result0: %result0, result1: %result1)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "k" = %a1 }
  }

  irdl.operation @transpose {
    %operand = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "permutation" = %a0 }
  }

  irdl.operation @xor {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }
}
