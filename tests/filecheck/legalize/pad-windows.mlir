// RUN: axir opt %s -p pad-windows > %t
// RUN: filecheck %s --input-file %t

// One window, which does not reach to the end: what is behind it is cut off.

func.func @main(%x: tensor<5xf32>, %init: tensor<f32>) -> tensor<1xf32> {
  %0 = "stablehlo.reduce_window"(%x, %init) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 4>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<5xf32>, tensor<f32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// CHECK: %0 = stablehlo.pad %arg0, %arg1, low = [0], high = [-3], interior = [0]
// CHECK-NEXT: %1 = "stablehlo.reduce_window"(%0, %arg1)
// CHECK-SAME: window_dimensions = array<i64: 2>, window_strides = array<i64: 4>
// CHECK: stablehlo.add %arg2, %arg3 : tensor<f32>
// CHECK: return %1 : tensor<1xf32>
