// RUN: axir opt %s -p renew-loop-operands > %t
// RUN: filecheck %s < %t

// The row that the loop changes is the same in all passes and is copied; what it carries is not.
func.func @rows(%row: tensor<4xf32>, %x: tensor<1xf32>, %rows: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %result = %rows) : tensor<i32>, tensor<3x4xf32>
  cond {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.dynamic_update_slice %row, %x, %i : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %3 = stablehlo.reshape %2 : (tensor<4xf32>) -> tensor<1x4xf32>
    %4 = stablehlo.dynamic_update_slice %result, %3, %i, %zero : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    %5 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %5, %4 : tensor<i32>, tensor<3x4xf32>
  }
  return %0#1 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK: do {
// CHECK: [[TRUTH:%[0-9]+]] = util.optimization_barrier
// CHECK: [[COPY:%[0-9]+]] = stablehlo.select [[TRUTH]], %arg0
// CHECK: stablehlo.dynamic_update_slice [[COPY]], %arg1
// CHECK-NOT: select
// CHECK: stablehlo.dynamic_update_slice %iterArg
