// RUN: axir opt %s -p renew-branch-results > %t
// RUN: filecheck %s < %t
// Where the result of a condition is updated in place, a branch gives a copy of an array that is read later, too.

// CHECK-LABEL: func.func @updated
// CHECK: stablehlo.sine %arg1
// CHECK: [[TRUTH:%[0-9]+]] = util.optimization_barrier
// CHECK: [[OWN:%[0-9]+]] = stablehlo.select [[TRUTH]], %arg1
// CHECK: stablehlo.return [[OWN]]
// CHECK: stablehlo.dynamic_update_slice
func.func @updated(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %2 = stablehlo.dynamic_update_slice %0, %y, %zero : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  return %2, %x : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @read_only
// CHECK-NOT: stablehlo.select
func.func @read_only(%p: tensor<i1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0, %x : tensor<4xf32>, tensor<4xf32>
}
