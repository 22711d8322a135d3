// RUN: axir opt %s -p unfold-windows > %t
// RUN: filecheck %s --input-file %t

// Windows of two elements of two arrays: the body is applied to two slices of each.

func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.reduce_window"(%x, %y, %zero, %zero) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.add %a, %c : tensor<f32>
    %2 = stablehlo.multiply %b, %d : tensor<f32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<f32>
  }) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
  return %0#0, %0#1 : tensor<3xf32>, tensor<3xf32>
}

// CHECK-NOT: reduce_window
// CHECK: [[X0:%[0-9]+]] = stablehlo.slice %arg0 [0:3]
// CHECK: [[Y0:%[0-9]+]] = stablehlo.slice %arg1 [0:3]
// CHECK: [[SUM:%[0-9]+]] = stablehlo.add {{%[0-9]+}}, [[X0]] : tensor<3xf32>
// CHECK: [[PRODUCT:%[0-9]+]] = stablehlo.multiply {{%[0-9]+}}, [[Y0]] : tensor<3xf32>
// CHECK: [[X1:%[0-9]+]] = stablehlo.slice %arg0 [1:4]
// CHECK: [[Y1:%[0-9]+]] = stablehlo.slice %arg1 [1:4]
// CHECK: stablehlo.add [[SUM]], [[X1]]
// CHECK: stablehlo.multiply [[PRODUCT]], [[Y1]]
