// RUN: axir opt %s -p raise-stablehlo | filecheck %s
// RUN: axir opt %s -p jvp | filecheck %s --check-prefix=JVP

// A loop that counts is a scan; what each pass reads of its own is sliced, what it writes stacked.
// CHECK: func.func @main(%arg0: tensor<4x2xf32>) -> (tensor<2xf32>, tensor<4x2xf32>)
// CHECK: "jaxpr.scan"(%{{.*}}, %arg0)
// CHECK-SAME: length = 4
// CHECK-SAME: num_carry = 1
// CHECK-SAME: num_consts = 0
// CHECK-SAME: -> (tensor<2xf32>, tensor<4x2xf32>)
// CHECK: func.func private @body(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>)
// CHECK-NOT: dynamic_slice
// CHECK: "jaxpr.add"(%arg0,
// CHECK: "jaxpr.sin"
// CHECK-NOT: dynamic_update_slice
// JVP: func.func @main(%arg0: tensor<4x2xf32>, %arg1: tensor<4x2xf32>)
// JVP: "jaxpr.scan"
func.func @main(%xs: tensor<4x2xf32>) -> (tensor<2xf32>, tensor<4x2xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %state = stablehlo.constant dense<0.0> : tensor<2xf32>
  %ys = stablehlo.constant dense<0.0> : tensor<4x2xf32>
  %0:3 = stablehlo.while(%i = %zero, %s = %state, %y = %ys) : tensor<i32>, tensor<2xf32>, tensor<4x2xf32> cond {
    %end = stablehlo.constant dense<4> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = func.call @slice_of(%xs, %i) : (tensor<4x2xf32>, tensor<i32>) -> tensor<2xf32>
    %2 = stablehlo.add %s, %1 : tensor<2xf32>
    %3 = stablehlo.sine %2 : tensor<2xf32>
    %4 = stablehlo.reshape %3 : (tensor<2xf32>) -> tensor<1x2xf32>
    %5 = stablehlo.dynamic_update_slice %y, %4, %i, %zero : (tensor<4x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %2, %5 : tensor<i32>, tensor<2xf32>, tensor<4x2xf32>
  }
  return %0#1, %0#2 : tensor<2xf32>, tensor<4x2xf32>
}
func.func private @slice_of(%x: tensor<4x2xf32>, %i: tensor<i32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 2] : (tensor<4x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %1 = stablehlo.reshape %0 : (tensor<1x2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
