// RUN: axir opt %s -p store-window-results > %t
// RUN: filecheck %s --input-file %t

// A result that is padded is stored; one that is not padded is left to fusion.

func.func @padded(%x: tensor<4xf32>) -> (tensor<5xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.pad %0, %zero, low = [0], high = [1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
  %3 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %4 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = stablehlo.negate %3 : tensor<4xf32>
  return %2, %5 : tensor<5xf32>, tensor<4xf32>
}

// CHECK-LABEL: @padded
// CHECK: [[WINDOW:%[0-9]+]] = "stablehlo.reduce_window"
// CHECK: [[BARRIER:%[0-9]+]] = stablehlo.optimization_barrier [[WINDOW]]
// CHECK: stablehlo.pad [[BARRIER]]
// CHECK: [[OTHER:%[0-9]+]] = "stablehlo.reduce_window"
// CHECK: stablehlo.negate [[OTHER]]
