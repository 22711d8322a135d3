// RUN: axir opt %s -p use-window-results > %t
// RUN: filecheck %s --input-file %t

// Of the first reduction only the second result is used; of the second one both are.

func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.reduce_window"(%x, %y, %zero, %zero) <{window_dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.add %a, %c : tensor<f32>
    %2 = stablehlo.add %b, %d : tensor<f32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<f32>
  }) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %3:2 = "stablehlo.reduce_window"(%y, %x, %zero, %zero) <{window_dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.add %a, %c : tensor<f32>
    %2 = stablehlo.multiply %b, %d : tensor<f32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<f32>
  }) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#1, %3#0, %3#1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK: [[FIRST:%[0-9]+]]:2 = "stablehlo.reduce_window"
// CHECK: [[TRUTH:%[0-9]+]] = util.optimization_barrier
// CHECK: [[CHOSEN:%[0-9]+]] = stablehlo.select [[TRUTH]], [[FIRST]]#1, [[FIRST]]#0
// CHECK: [[SECOND:%[0-9]+]]:2 = "stablehlo.reduce_window"
// CHECK-NOT: stablehlo.select
// CHECK: return [[CHOSEN]], [[SECOND]]#0, [[SECOND]]#1
