// RUN: axir opt %s -p position-select-and-scatter > %t
// RUN: filecheck %s --input-file %t

// The positions of the chosen elements, then a scatter to them.

func.func @main(%x: tensor<6xf32>, %source: tensor<5xf32>, %init: tensor<f32>) -> tensor<6xf32> {
  %0 = "stablehlo.select_and_scatter"(%x, %source, %init) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<6xf32>, tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// CHECK: %0 = stablehlo.iota dim = 0 : tensor<6xi32>
// CHECK: %1:2 = "stablehlo.reduce_window"(%arg0, %0, %arg2, %c)
// CHECK: stablehlo.compare GE, %arg3, %arg5
// CHECK: %2 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT: %3 = stablehlo.reshape %1#1 : (tensor<5xi32>) -> tensor<5x1xi32>
// CHECK-NEXT: %4 = "stablehlo.scatter"(%2, %3, %arg1)
// CHECK: stablehlo.add %arg3, %arg4 : tensor<f32>
// CHECK: return %4 : tensor<6xf32>
