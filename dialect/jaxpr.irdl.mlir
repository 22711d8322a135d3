// The jaxpr dialect, derived from the op table by `make irdl`: do not edit.
// iree-opt --irdl-file=jaxpr.irdl.mlir checks a module against it.
irdl.dialect @jaxpr {
  irdl.operation @abs {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @acos {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @acosh {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @add {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @and {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @argmax {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    %a1 = irdl.base "#builtin.type"
    irdl.attributes { "axes" = %a0, "index_dtype" = %a1 }
  }

  irdl.operation @argmin {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    %a1 = irdl.base "#builtin.type"
    irdl.attributes { "axes" = %a0, "index_dtype" = %a1 }
  }

  irdl.operation @asin {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @asinh {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @atan {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @atan2 {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @atanh {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @bitcast_convert_type {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.type"
    irdl.attributes { "new_dtype" = %a0 }
  }

  irdl.operation @broadcast_in_dim {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    %a1 = irdl.base "#builtin.dense_array"
    irdl.attributes { "broadcast_dimensions" = %a0, "shape" = %a1 }
  }

  irdl.operation @cbrt {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @ceil {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @clamp {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(low: %tensor, x: %tensor, high: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @clz {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @complex {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @concatenate {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operands: variadic %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension" = %a0 }
  }

  irdl.operation @conj {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @constant {
    %tensor = irdl.base "!builtin.tensor"
    irdl.results(result: %tensor)
    %a0 = irdl.any
    irdl.attributes { "value" = %a0 }
  }

  irdl.operation @convert_element_type {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.type"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "new_dtype" = %a0, "weak_type" = %a1 }
  }

  irdl.operation @copy {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @cos {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @cosh {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @cumlogsumexp {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "reverse" = %a1 }
  }

  irdl.operation @cummax {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "reverse" = %a1 }
  }

  irdl.operation @cummin {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "reverse" = %a1 }
  }

  irdl.operation @cumprod {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "reverse" = %a1 }
  }

  irdl.operation @cumsum {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "reverse" = %a1 }
  }

  irdl.operation @div {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @dot_general {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
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
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor, starts: variadic %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "slice_sizes" = %a0 }
  }

  irdl.operation @dynamic_update_slice {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor, update: %tensor, starts: variadic %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @eq {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @erf {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @erf_inv {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @erfc {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @exp {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @exp2 {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @expm1 {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @floor {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @gather {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor, indices: %tensor)
    irdl.results(result: %tensor)
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
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @gt {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @imag {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @integer_pow {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "y" = %a0 }
  }

  irdl.operation @iota {
    %tensor = irdl.base "!builtin.tensor"
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.type"
    %a2 = irdl.base "#builtin.dense_array"
    irdl.attributes { "dimension" = %a0, "dtype" = %a1, "shape" = %a2 }
  }

  irdl.operation @is_finite {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @jit {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %tensor)
    irdl.results(results: variadic %tensor)
    %a0 = irdl.base "#builtin.symbol_ref"
    %a1 = irdl.base "#builtin.string"
    irdl.attributes { "jaxpr" = %a0, "name" = %a1 }
  }

  irdl.operation @le {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @log {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @log1p {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @logistic {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @lt {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @max {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @min {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @mul {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @ne {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @neg {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @nextafter {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @not {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @or {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @pad {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor, padding_value: %tensor)
    irdl.results(result: %tensor)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    irdl.attributes { "padding_config" = %a0 }
  }

  irdl.operation @population_count {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @pow {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @real {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @reduce_and {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_max {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_min {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_or {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_prod {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_sum {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_xor {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @rem {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @reshape {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor)
    irdl.results(result: %tensor)
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0_unit = irdl.base "#builtin.unit"
    %a0 = irdl.any_of(%a0_dense_array, %a0_unit)
    %a1 = irdl.base "#builtin.dense_array"
    irdl.attributes { "dimensions" = %a0, "new_sizes" = %a1 }
  }

  irdl.operation @rev {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "dimensions" = %a0 }
  }

  irdl.operation @round {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "rounding_method" = %a0 }
  }

  irdl.operation @rsqrt {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @scatter {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor, indices: %tensor, updates: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @scatter_add {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor, indices: %tensor, updates: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @scatter_max {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor, indices: %tensor, updates: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @scatter_min {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor, indices: %tensor, updates: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @scatter_mul {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor, indices: %tensor, updates: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @select_n {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(which: %tensor, cases: variadic %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @shift_left {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @shift_right_arithmetic {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @shift_right_logical {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @sign {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @sin {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @sinh {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @slice {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    %a1 = irdl.base "#builtin.dense_array"
    %a2_dense_array = irdl.base "#builtin.dense_array"
    %a2_unit = irdl.base "#builtin.unit"
    %a2 = irdl.any_of(%a2_dense_array, %a2_unit)
    irdl.attributes { "limit_indices" = %a0, "start_indices" = %a1, "strides" = %a2 }
  }

  irdl.operation @sort {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operands: variadic %tensor)
    irdl.results(results: variadic %tensor)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension" = %a0, "is_stable" = %a1, "num_keys" = %a2 }
  }

  irdl.operation @sqrt {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @square {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @squeeze {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "dimensions" = %a0 }
  }

  irdl.operation @stop_gradient {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @sub {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @tan {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @tanh {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(x: %tensor)
    irdl.results(result: %tensor)
  }

  irdl.operation @threefry2x32 {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operands0: %tensor, operands1: %tensor, operands2: %tensor, operands3: %tensor)
    irdl.results(result0: %tensor, result1: %tensor)
  }

  irdl.operation @top_k {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor)
    irdl.results(result0: %tensor, result1: %tensor)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "k" = %a1 }
  }

  irdl.operation @transpose {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(operand: %tensor)
    irdl.results(result: %tensor)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "permutation" = %a0 }
  }

  irdl.operation @xor {
    %tensor = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %tensor, rhs: %tensor)
    irdl.results(result: %tensor)
  }
}
