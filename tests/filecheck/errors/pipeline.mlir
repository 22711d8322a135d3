// RUN: not axir opt %s -p 'vmap{axis_size=5' 2>&1 | filecheck %s --check-prefix=SYNTAX
// RUN: not axir opt %s -p 'vmpa' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not axir opt %s -p 'vmap{size=5}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not axir opt %s -p 'vmap' 2>&1 | filecheck %s --check-prefix=REQUIRED
// RUN: not axir opt %s -p 'vmap{axis_size=5,in_axes=(0,0)}' 2>&1 | filecheck %s --check-prefix=COUNT
// RUN: not axir opt %s -p 'jvp{argnums=1}' 2>&1 | filecheck %s --check-prefix=RANGE

// SYNTAX: error: malformed pipeline: expected ',' at column 17
// NAME: error: there is no pass named 'vmpa'.
// NAME-NEXT: Did you mean 'vmap'
// OPTION: error: the pass 'vmap' has no option 'size'.
// REQUIRED: error: the pass 'vmap' needs the option 'axis_size'.
// COUNT: error: vmap: in_axes has 2 entries for 1 values.
// RANGE: error: jvp: the function has no argument 1.

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
