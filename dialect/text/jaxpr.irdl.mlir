// The jaxpr dialect, derived from the op table by `make irdl`: do not edit.
// iree-opt --irdl-file=jaxpr.irdl.mlir checks a module against it.
irdl.dialect @jaxpr {
  irdl.type @key {
    %tag = irdl.base "#builtin.string"
    irdl.parameters(tag: %tag)
  }
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

  irdl.operation @all_gather {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1_unit = irdl.base "#builtin.unit"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array, %a1_unit)
    %a2 = irdl.any
    %a3 = irdl.base "#builtin.integer"
    %a4 = irdl.base "#builtin.integer"
    irdl.attributes { "all_gather_dimension" = %a0, "axis_index_groups" = %a1, "axis_name" = %a2, "axis_size" = %a3, "tiled" = %a4 }
  }

  irdl.operation @all_to_all {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0_unit = irdl.base "#builtin.unit"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array, %a0_unit)
    %a1 = irdl.any
    %a2 = irdl.base "#builtin.integer"
    %a3 = irdl.base "#builtin.integer"
    %a4 = irdl.base "#builtin.integer"
    irdl.attributes { "axis_index_groups" = %a0, "axis_name" = %a1, "axis_size" = %a2, "concat_axis" = %a3, "split_axis" = %a4 }
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

  irdl.operation @axis_index {
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %a0 = irdl.any
    irdl.attributes { "axis_name" = %a0 }
  }

  irdl.operation @bessel_i0e {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @bessel_i1e {
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

  irdl.operation @check {
    %pred = irdl.base "!builtin.tensor"
    %payload = irdl.base "!builtin.tensor"
    irdl.operands(pred: %pred, payload: variadic %payload)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "check" = %a0, "debug" = %a1 }
  }

  irdl.operation @checkpoint {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.symbol_ref"
    %a2 = irdl.any
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "differentiated" = %a0, "jaxpr" = %a1, "policy" = %a2, "prevent_cse" = %a3 }
  }

  irdl.operation @cholesky {
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

  irdl.operation @cond {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    irdl.attributes { "branches" = %a0 }
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

  irdl.operation @conv_general_dilated {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.dictionary"
    %a2 = irdl.base "#builtin.integer"
    %a3 = irdl.base "#builtin.dense_array"
    %a4_array = irdl.base "#builtin.array"
    %a4_dense_array = irdl.base "#builtin.dense_array"
    %a4 = irdl.any_of(%a4_array, %a4_dense_array)
    %a5_array = irdl.base "#builtin.array"
    %a5_dense_array = irdl.base "#builtin.dense_array"
    %a5_unit = irdl.base "#builtin.unit"
    %a5 = irdl.any_of(%a5_array, %a5_dense_array, %a5_unit)
    %a6_type = irdl.base "#builtin.type"
    %a6_unit = irdl.base "#builtin.unit"
    %a6 = irdl.any_of(%a6_type, %a6_unit)
    %a7 = irdl.base "#builtin.dense_array"
    %a8 = irdl.base "#builtin.dense_array"
    irdl.attributes { "batch_group_count" = %a0, "dimension_numbers" = %a1, "feature_group_count" = %a2, "lhs_dilation" = %a3, "padding" = %a4, "precision" = %a5, "preferred_element_type" = %a6, "rhs_dilation" = %a7, "window_strides" = %a8 }
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

  irdl.operation @cosine_integral {
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

  irdl.operation @custom_jvp_call {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.symbol_ref"
    %a1 = irdl.base "#builtin.symbol_ref"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    %a4 = irdl.base "#builtin.integer"
    irdl.attributes { "call_jaxpr" = %a0, "jvp_jaxpr_fun" = %a1, "name" = %a2, "num_consts" = %a3, "symbolic_zeros" = %a4 }
  }

  irdl.operation @custom_lin {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.symbol_ref"
    %a1 = irdl.base "#builtin.string"
    %a2 = irdl.base "#builtin.integer"
    irdl.attributes { "bwd" = %a0, "name" = %a1, "num_res" = %a2 }
  }

  irdl.operation @custom_linear_solve {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.dense_array"
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array)
    irdl.attributes { "const_lengths" = %a0, "jaxprs" = %a1 }
  }

  irdl.operation @custom_vjp_call {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.symbol_ref"
    %a1 = irdl.base "#builtin.symbol_ref"
    %a2 = irdl.base "#builtin.symbol_ref"
    %a3 = irdl.base "#builtin.string"
    %a4 = irdl.base "#builtin.integer"
    %a5 = irdl.base "#builtin.integer"
    irdl.attributes { "bwd" = %a0, "call_jaxpr" = %a1, "fwd_jaxpr_thunk" = %a2, "name" = %a3, "num_consts" = %a4, "symbolic_zeros" = %a5 }
  }

  irdl.operation @custom_vmap_call {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.symbol_ref"
    %a1 = irdl.base "#builtin.string"
    irdl.attributes { "call" = %a0, "rule" = %a1 }
  }

  irdl.operation @dawsn {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @dce_sink {
    %operand = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
  }

  irdl.operation @debug_callback {
    %types = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "callback" = %a0, "ordered" = %a1 }
  }

  irdl.operation @digamma {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @dim_as_value {
    %result = irdl.base "!builtin.tensor"
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.type"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "dtype" = %a0, "extent" = %a1 }
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
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1_unit = irdl.base "#builtin.unit"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array, %a1_unit)
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

  irdl.operation @eig {
    %x = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "compute_left_eigenvectors" = %a0, "compute_right_eigenvectors" = %a1 }
  }

  irdl.operation @eigh {
    %x = irdl.base "!builtin.tensor"
    %result0 = irdl.base "!builtin.tensor"
    %result1 = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result0: %result0, result1: %result1)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "lower" = %a0, "sort_eigenvalues" = %a1 }
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

  irdl.operation @erfcinv {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @erfcx {
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

  irdl.operation @exp1 {
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

  irdl.operation @expi {
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

  irdl.operation @expn {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @fft {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    %a1 = irdl.base "#builtin.string"
    irdl.attributes { "fft_lengths" = %a0, "fft_type" = %a1 }
  }

  irdl.operation @floor {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @fresnel_cosine {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @fresnel_sine {
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
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1_float = irdl.base "#builtin.float"
    %a1_integer = irdl.base "#builtin.integer"
    %a1_unit = irdl.base "#builtin.unit"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array, %a1_float, %a1_integer, %a1_unit)
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

  irdl.operation @geqrf {
    %x = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(results: variadic %results)
  }

  irdl.operation @gt {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @hessenberg {
    %a = irdl.base "!builtin.tensor"
    %result0 = irdl.base "!builtin.tensor"
    %result1 = irdl.base "!builtin.tensor"
    irdl.operands(a: %a)
    irdl.results(result0: %result0, result1: %result1)
  }

  irdl.operation @householder_product {
    %a = irdl.base "!builtin.tensor"
    %taus = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(a: %a, taus: %taus)
    irdl.results(result: %result)
  }

  irdl.operation @hyp1f1 {
    %x = irdl.base "!builtin.tensor"
    %y = irdl.base "!builtin.tensor"
    %z = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, y: %y, z: %z)
    irdl.results(result: %result)
  }

  irdl.operation @hyp1f1_in_a {
    %x = irdl.base "!builtin.tensor"
    %y = irdl.base "!builtin.tensor"
    %z = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, y: %y, z: %z)
    irdl.results(result: %result)
  }

  irdl.operation @hyp1f1_in_b {
    %x = irdl.base "!builtin.tensor"
    %y = irdl.base "!builtin.tensor"
    %z = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, y: %y, z: %z)
    irdl.results(result: %result)
  }

  irdl.operation @hyp2f1 {
    %x = irdl.base "!builtin.tensor"
    %y = irdl.base "!builtin.tensor"
    %z = irdl.base "!builtin.tensor"
    %w = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, y: %y, z: %z, w: %w)
    irdl.results(result: %result)
  }

  irdl.operation @hyp2f1_in_a {
    %x = irdl.base "!builtin.tensor"
    %y = irdl.base "!builtin.tensor"
    %z = irdl.base "!builtin.tensor"
    %w = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, y: %y, z: %z, w: %w)
    irdl.results(result: %result)
  }

  irdl.operation @hyp2f1_in_b {
    %x = irdl.base "!builtin.tensor"
    %y = irdl.base "!builtin.tensor"
    %z = irdl.base "!builtin.tensor"
    %w = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, y: %y, z: %z, w: %w)
    irdl.results(result: %result)
  }

  irdl.operation @hyp2f1_in_c {
    %x = irdl.base "!builtin.tensor"
    %y = irdl.base "!builtin.tensor"
    %z = irdl.base "!builtin.tensor"
    %w = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, y: %y, z: %z, w: %w)
    irdl.results(result: %result)
  }

  irdl.operation @igamma {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @igamma_grad_a {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @igammac {
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

  irdl.operation @io_callback {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.any
    %a1 = irdl.base "#builtin.integer"
    %a2_array = irdl.base "#builtin.array"
    %a2_dense_array = irdl.base "#builtin.dense_array"
    %a2 = irdl.any_of(%a2_array, %a2_dense_array)
    irdl.attributes { "callback" = %a0, "ordered" = %a1, "result_avals" = %a2 }
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

  irdl.operation @joined_psum {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @layout_callback {
    %x = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(results: variadic %results)
    %a0 = irdl.any
    irdl.attributes { "callback" = %a0 }
  }

  irdl.operation @le {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @lgamma {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @linear_call {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.symbol_ref"
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.integer"
    %a3 = irdl.base "#builtin.symbol_ref"
    irdl.attributes { "callee" = %a0, "num_consts" = %a1, "num_res" = %a2, "transpose" = %a3 }
  }

  irdl.operation @linear_recurrence {
    %a = irdl.base "!builtin.tensor"
    %b = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(a: %a, b: %b)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0, "reverse" = %a1 }
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

  irdl.operation @lu {
    %x = irdl.base "!builtin.tensor"
    %result0 = irdl.base "!builtin.tensor"
    %result1 = irdl.base "!builtin.tensor"
    %result2 = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result0: %result0, result1: %result1, result2: %result2)
  }

  irdl.operation @lu_pivots_to_permutation {
    %pivots = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(pivots: %pivots)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "permutation_size" = %a0 }
  }

  irdl.operation @lu_solve {
    %a = irdl.base "!builtin.tensor"
    %factors = irdl.base "!builtin.tensor"
    %permutation = irdl.base "!builtin.tensor"
    %b = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(a: %a, factors: %factors, permutation: %permutation, b: %b)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "is_transposed" = %a0 }
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

  irdl.operation @mulhi {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @name {
    %operand = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.string"
    irdl.attributes { "name" = %a0 }
  }

  irdl.operation @ndtri {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
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

  irdl.operation @optimization_barrier {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
  }

  irdl.operation @or {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @owens_t {
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

  irdl.operation @pinvary {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @pmax {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1_unit = irdl.base "#builtin.unit"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array, %a1_unit)
    irdl.attributes { "axes" = %a0, "axis_index_groups" = %a1 }
  }

  irdl.operation @pmin {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1_unit = irdl.base "#builtin.unit"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array, %a1_unit)
    irdl.attributes { "axes" = %a0, "axis_index_groups" = %a1 }
  }

  irdl.operation @polygamma {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
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

  irdl.operation @ppermute {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.any
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array)
    irdl.attributes { "axis_name" = %a0, "perm" = %a1 }
  }

  irdl.operation @psum {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1_unit = irdl.base "#builtin.unit"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array, %a1_unit)
    irdl.attributes { "axes" = %a0, "axis_index_groups" = %a1 }
  }

  irdl.operation @psum_invariant {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1_unit = irdl.base "#builtin.unit"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array, %a1_unit)
    irdl.attributes { "axes" = %a0, "axis_index_groups" = %a1 }
  }

  irdl.operation @pure_callback {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.any
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array)
    %a2_string = irdl.base "#builtin.string"
    %a2_unit = irdl.base "#builtin.unit"
    %a2 = irdl.any_of(%a2_string, %a2_unit)
    irdl.attributes { "callback" = %a0, "result_avals" = %a1, "vmap_method" = %a2 }
  }

  irdl.operation @pvary {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @qr {
    %x = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "full_matrices" = %a0, "pivoting" = %a1 }
  }

  irdl.operation @random_bits {
    %keys = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(keys: %keys)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.dense_array"
    irdl.attributes { "bit_width" = %a0, "partitionable" = %a1, "shape" = %a2 }
  }

  irdl.operation @random_clone {
    %keys = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(keys: %keys)
    irdl.results(result: %result)
  }

  irdl.operation @random_fold_in {
    %keys = irdl.base "!builtin.tensor"
    %data = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(keys: %keys, data: %data)
    irdl.results(result: %result)
  }

  irdl.operation @random_gamma_grad {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @random_seed {
    %seeds = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(seeds: %seeds)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.string"
    irdl.attributes { "impl" = %a0 }
  }

  irdl.operation @random_split {
    %keys = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(keys: %keys)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.dense_array"
    irdl.attributes { "partitionable" = %a0, "shape" = %a1 }
  }

  irdl.operation @random_unwrap {
    %keys = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(keys: %keys)
    irdl.results(result: %result)
  }

  irdl.operation @random_wrap {
    %words = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(words: %words)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.string"
    irdl.attributes { "impl" = %a0 }
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

  irdl.operation @reduce_precision {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "exponent_bits" = %a0, "mantissa_bits" = %a1 }
  }

  irdl.operation @reduce_prod {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_scatter {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0_unit = irdl.base "#builtin.unit"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array, %a0_unit)
    %a1 = irdl.any
    %a2 = irdl.base "#builtin.integer"
    %a3 = irdl.base "#builtin.integer"
    %a4 = irdl.base "#builtin.integer"
    irdl.attributes { "axis_index_groups" = %a0, "axis_name" = %a1, "axis_size" = %a2, "scatter_dimension" = %a3, "tiled" = %a4 }
  }

  irdl.operation @reduce_sum {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @reduce_window {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.dense_array"
    %a1 = irdl.base "#builtin.symbol_ref"
    %a2_array = irdl.base "#builtin.array"
    %a2_dense_array = irdl.base "#builtin.dense_array"
    %a2 = irdl.any_of(%a2_array, %a2_dense_array)
    %a3 = irdl.base "#builtin.dense_array"
    %a4 = irdl.base "#builtin.dense_array"
    %a5 = irdl.base "#builtin.dense_array"
    irdl.attributes { "base_dilation" = %a0, "jaxpr" = %a1, "padding" = %a2, "window_dilation" = %a3, "window_dimensions" = %a4, "window_strides" = %a5 }
  }

  irdl.operation @reduce_window_max {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array)
    %a2 = irdl.base "#builtin.dense_array"
    %a3 = irdl.base "#builtin.dense_array"
    %a4 = irdl.base "#builtin.dense_array"
    irdl.attributes { "base_dilation" = %a0, "padding" = %a1, "window_dilation" = %a2, "window_dimensions" = %a3, "window_strides" = %a4 }
  }

  irdl.operation @reduce_window_min {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array)
    %a2 = irdl.base "#builtin.dense_array"
    %a3 = irdl.base "#builtin.dense_array"
    %a4 = irdl.base "#builtin.dense_array"
    irdl.attributes { "base_dilation" = %a0, "padding" = %a1, "window_dilation" = %a2, "window_dimensions" = %a3, "window_strides" = %a4 }
  }

  irdl.operation @reduce_window_sum {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array)
    %a2 = irdl.base "#builtin.dense_array"
    %a3 = irdl.base "#builtin.dense_array"
    %a4 = irdl.base "#builtin.dense_array"
    irdl.attributes { "base_dilation" = %a0, "padding" = %a1, "window_dilation" = %a2, "window_dimensions" = %a3, "window_strides" = %a4 }
  }

  irdl.operation @reduce_xor {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axes" = %a0 }
  }

  irdl.operation @regularized_incomplete_beta {
    %x = irdl.base "!builtin.tensor"
    %y = irdl.base "!builtin.tensor"
    %z = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x, y: %y, z: %z)
    irdl.results(result: %result)
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

  irdl.operation @rng_bit_generator {
    %key = irdl.base "!builtin.tensor"
    %result0 = irdl.base "!builtin.tensor"
    %result1 = irdl.base "!builtin.tensor"
    irdl.operands(key: %key)
    irdl.results(result0: %result0, result1: %result1)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.type"
    %a2 = irdl.base "#builtin.dense_array"
    irdl.attributes { "algorithm" = %a0, "dtype" = %a1, "shape" = %a2 }
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

  irdl.operation @scan {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.symbol_ref"
    %a1 = irdl.base "#builtin.integer"
    %a2_array = irdl.base "#builtin.array"
    %a2_dense_array = irdl.base "#builtin.dense_array"
    %a2 = irdl.any_of(%a2_array, %a2_dense_array)
    %a3 = irdl.base "#builtin.integer"
    %a4 = irdl.base "#builtin.integer"
    %a5 = irdl.base "#builtin.integer"
    %a6 = irdl.base "#builtin.integer"
    irdl.attributes { "jaxpr" = %a0, "length" = %a1, "linear" = %a2, "num_carry" = %a3, "num_consts" = %a4, "reverse" = %a5, "unroll" = %a6 }
  }

  irdl.operation @scatter {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %updates = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices, updates: %updates)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dictionary"
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
    %a0 = irdl.base "#builtin.dictionary"
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @scatter_apply {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dictionary"
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.symbol_ref"
    %a3 = irdl.base "#builtin.string"
    %a4 = irdl.base "#builtin.integer"
    %a5 = irdl.base "#builtin.dense_array"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "jaxpr" = %a2, "mode" = %a3, "unique_indices" = %a4, "update_shape" = %a5 }
  }

  irdl.operation @scatter_max {
    %operand = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %updates = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, indices: %indices, updates: %updates)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dictionary"
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
    %a0 = irdl.base "#builtin.dictionary"
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
    %a0 = irdl.base "#builtin.dictionary"
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "dimension_numbers" = %a0, "indices_are_sorted" = %a1, "mode" = %a2, "unique_indices" = %a3 }
  }

  irdl.operation @schur {
    %x = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "compute_schur_vectors" = %a0 }
  }

  irdl.operation @select_and_gather_add {
    %tangents = irdl.base "!builtin.tensor"
    %operand = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(tangents: %tangents, operand: %operand)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array)
    %a2 = irdl.base "#builtin.string"
    %a3 = irdl.base "#builtin.dense_array"
    %a4 = irdl.base "#builtin.dense_array"
    %a5 = irdl.base "#builtin.dense_array"
    irdl.attributes { "base_dilation" = %a0, "padding" = %a1, "select_prim" = %a2, "window_dilation" = %a3, "window_dimensions" = %a4, "window_strides" = %a5 }
  }

  irdl.operation @select_and_scatter {
    %operand = irdl.base "!builtin.tensor"
    %source = irdl.base "!builtin.tensor"
    %init = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand, source: %source, init: %init)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    %a1 = irdl.base "#builtin.symbol_ref"
    %a2 = irdl.base "#builtin.symbol_ref"
    %a3 = irdl.base "#builtin.dense_array"
    %a4 = irdl.base "#builtin.dense_array"
    irdl.attributes { "padding" = %a0, "scatter_jaxpr" = %a1, "select_jaxpr" = %a2, "window_dimensions" = %a3, "window_strides" = %a4 }
  }

  irdl.operation @select_and_scatter_add {
    %source = irdl.base "!builtin.tensor"
    %operand = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(source: %source, operand: %operand)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    %a1 = irdl.base "#builtin.string"
    %a2 = irdl.base "#builtin.dense_array"
    %a3 = irdl.base "#builtin.dense_array"
    irdl.attributes { "padding" = %a0, "select_prim" = %a1, "window_dimensions" = %a2, "window_strides" = %a3 }
  }

  irdl.operation @select_n {
    %which = irdl.base "!builtin.tensor"
    %cases = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(which: %which, cases: variadic %cases)
    irdl.results(result: %result)
  }

  irdl.operation @shard_map {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array)
    %a2 = irdl.base "#builtin.integer"
    %a3_array = irdl.base "#builtin.array"
    %a3_dense_array = irdl.base "#builtin.dense_array"
    %a3 = irdl.any_of(%a3_array, %a3_dense_array)
    %a4_array = irdl.base "#builtin.array"
    %a4_dense_array = irdl.base "#builtin.dense_array"
    %a4 = irdl.any_of(%a4_array, %a4_dense_array)
    %a5 = irdl.base "#builtin.symbol_ref"
    %a6 = irdl.base "#builtin.string"
    %a7_array = irdl.base "#builtin.array"
    %a7_dense_array = irdl.base "#builtin.dense_array"
    %a7 = irdl.any_of(%a7_array, %a7_dense_array)
    irdl.attributes { "auto" = %a0, "axes" = %a1, "check_vma" = %a2, "devices" = %a3, "in_layouts" = %a4, "jaxpr" = %a5, "name" = %a6, "out_layouts" = %a7 }
  }

  irdl.operation @sharding_constraint {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
    %a0_array = irdl.base "#builtin.array"
    %a0_dense_array = irdl.base "#builtin.dense_array"
    %a0 = irdl.any_of(%a0_array, %a0_dense_array)
    %a1_array = irdl.base "#builtin.array"
    %a1_dense_array = irdl.base "#builtin.dense_array"
    %a1 = irdl.any_of(%a1_array, %a1_dense_array)
    %a2_array = irdl.base "#builtin.array"
    %a2_dense_array = irdl.base "#builtin.dense_array"
    %a2 = irdl.any_of(%a2_array, %a2_dense_array)
    irdl.attributes { "axes" = %a0, "devices" = %a1, "layout" = %a2 }
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

  irdl.operation @sine_integral {
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

  irdl.operation @spence {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @split {
    %operand = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.dense_array"
    irdl.attributes { "axis" = %a0, "sizes" = %a1 }
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

  irdl.operation @stack {
    %operands = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operands: variadic %operands)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0 }
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

  irdl.operation @svd {
    %x = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    irdl.attributes { "compute_uv" = %a0, "full_matrices" = %a1 }
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
    %key0 = irdl.base "!builtin.tensor"
    %key1 = irdl.base "!builtin.tensor"
    %count0 = irdl.base "!builtin.tensor"
    %count1 = irdl.base "!builtin.tensor"
    %result0 = irdl.base "!builtin.tensor"
    %result1 = irdl.base "!builtin.tensor"
    irdl.operands(key0: %key0, key1: %key1, count0: %count0, count1: %count1)
    irdl.results(result0: %result0, result1: %result1)
  }

  irdl.operation @tile {
    %operand = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.dense_array"
    irdl.attributes { "reps" = %a0 }
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

  irdl.operation @triangular_solve {
    %a = irdl.base "!builtin.tensor"
    %b = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(a: %a, b: %b)
    irdl.results(result: %result)
    %a0 = irdl.base "#builtin.integer"
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.integer"
    %a3 = irdl.base "#builtin.integer"
    %a4 = irdl.base "#builtin.integer"
    irdl.attributes { "conjugate_a" = %a0, "left_side" = %a1, "lower" = %a2, "transpose_a" = %a3, "unit_diagonal" = %a4 }
  }

  irdl.operation @tridiagonal {
    %a = irdl.base "!builtin.tensor"
    %result0 = irdl.base "!builtin.tensor"
    %result1 = irdl.base "!builtin.tensor"
    %result2 = irdl.base "!builtin.tensor"
    %result3 = irdl.base "!builtin.tensor"
    irdl.operands(a: %a)
    irdl.results(result0: %result0, result1: %result1, result2: %result2, result3: %result3)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "lower" = %a0 }
  }

  irdl.operation @tridiagonal_solve {
    %dl = irdl.base "!builtin.tensor"
    %d = irdl.base "!builtin.tensor"
    %du = irdl.base "!builtin.tensor"
    %b = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(dl: %dl, d: %d, du: %du, b: %b)
    irdl.results(result: %result)
  }

  irdl.operation @unstack {
    %operand = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(operand: %operand)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.integer"
    irdl.attributes { "axis" = %a0 }
  }

  irdl.operation @while {
    %types = irdl.base "!builtin.tensor"
    %results = irdl.base "!builtin.tensor"
    irdl.operands(types: variadic %types)
    irdl.results(results: variadic %results)
    %a0 = irdl.base "#builtin.symbol_ref"
    %a1 = irdl.base "#builtin.integer"
    %a2 = irdl.base "#builtin.symbol_ref"
    %a3 = irdl.base "#builtin.integer"
    irdl.attributes { "body_jaxpr" = %a0, "body_nconsts" = %a1, "cond_jaxpr" = %a2, "cond_nconsts" = %a3 }
  }

  irdl.operation @wofz {
    %x = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(x: %x)
    irdl.results(result: %result)
  }

  irdl.operation @xor {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }

  irdl.operation @zeta {
    %lhs = irdl.base "!builtin.tensor"
    %rhs = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(lhs: %lhs, rhs: %rhs)
    irdl.results(result: %result)
  }
}
