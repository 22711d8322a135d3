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

// An update of the array from outside is the same.
// CHECK-LABEL: func.func @updated_itself
// CHECK: [[OWN:%[0-9]+]] = stablehlo.select %{{[0-9]+}}, %{{[0-9]+}}
// CHECK: stablehlo.return [[OWN]]
func.func @updated_itself(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<4xf32>, tensor<1x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %3 = stablehlo.sine %1 : tensor<1x4xf32>
    stablehlo.return %3 : tensor<1x4xf32>
  }, {
    %1 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    stablehlo.return %1 : tensor<1x4xf32>
  }) : (tensor<i1>) -> tensor<1x4xf32>
  %2 = stablehlo.dynamic_update_slice %x, %y, %zero : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  return %2, %0 : tensor<4xf32>, tensor<1x4xf32>
}

// Of a result that is given twice, one is a copy.
// CHECK-LABEL: func.func @given_twice
// CHECK: [[SINE:%[0-9]+]] = stablehlo.sine
// CHECK: [[OWN:%[0-9]+]] = stablehlo.select %{{[0-9]+}}, [[SINE]]
// CHECK: stablehlo.return [[SINE]], [[OWN]]
// CHECK-NOT: stablehlo.select
func.func @given_twice(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.if"(%p) ({
    %1 = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %1, %1 : tensor<4xf32>, tensor<4xf32>
  }, {
    %1 = stablehlo.cosine %x : tensor<4xf32>
    %3 = stablehlo.tanh %x : tensor<4xf32>
    stablehlo.return %1, %3 : tensor<4xf32>, tensor<4xf32>
  }) : (tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  %2 = stablehlo.dynamic_update_slice %0#0, %y, %zero : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  return %2, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// One branch updates what the other one gives: both never happen. What is updated before is not what is given.
// CHECK-LABEL: func.func @one_or_the_other
// CHECK-NOT: stablehlo.select
func.func @one_or_the_other(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %2 = stablehlo.dynamic_update_slice %x, %y, %zero : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.dynamic_update_slice %x, %y, %zero : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}
