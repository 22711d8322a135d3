// RUN: axir opt %s -p part-loop-storage > %t
// RUN: filecheck %s --input-file %t

// Two arrays that begin as the same zeros, next to a transfer: the second one gets them from a choice.

func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zeros = stablehlo.constant dense<0.0> : tensor<4xf32>
  %others = stablehlo.constant dense<0.0> : tensor<4xf32>
  %0:3 = stablehlo.while(%flag = %p, %a = %zeros, %b = %others) : tensor<i1>, tensor<4xf32>, tensor<4xf32>
    cond {
      stablehlo.return %flag : tensor<i1>
    } do {
      %1 = stablehlo.not %flag : tensor<i1>
      stablehlo.return %1, %a, %b : tensor<i1>, tensor<4xf32>, tensor<4xf32>
    }
  %2 = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@__device_0>
  return %0#1, %0#2, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK: util.optimization_barrier
// CHECK: [[CHOSEN:%[0-9]+]] = stablehlo.select
// CHECK: stablehlo.while(%iterArg = %arg1, %iterArg_{{[0-9]+}} = %cst, %iterArg_{{[0-9]+}} = [[CHOSEN]])
