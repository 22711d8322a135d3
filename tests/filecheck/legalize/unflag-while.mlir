// RUN: axir opt %s -p unflag-while > %t
// RUN: filecheck %s --input-file %t

// The flag that ended a loop is false.

func.func @main(%p: tensor<i1>, %a: tensor<f32>) -> (tensor<i1>, tensor<f32>) {
  %0:2 = stablehlo.while(%flag = %p, %x = %a) : tensor<i1>, tensor<f32>
    cond {
      stablehlo.return %flag : tensor<i1>
    } do {
      %1 = stablehlo.not %flag : tensor<i1>
      stablehlo.return %1, %x : tensor<i1>, tensor<f32>
    }
  return %0#0, %0#1 : tensor<i1>, tensor<f32>
}

// CHECK: func.func @main(%arg0: tensor<i1>, %arg1: tensor<f32>) -> (tensor<i1>, tensor<f32>) {
// CHECK-NEXT: %c = stablehlo.constant dense<false> : tensor<i1>
// CHECK-NEXT: %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<i1>, tensor<f32>
// CHECK-NEXT: cond {
// CHECK-NEXT: stablehlo.return %iterArg : tensor<i1>
// CHECK-NEXT: } do {
// CHECK-NEXT: %1 = stablehlo.not %iterArg : tensor<i1>
// CHECK-NEXT: stablehlo.return %1, %iterArg_0 : tensor<i1>, tensor<f32>
// CHECK-NEXT: }
// CHECK-NEXT: return %c, %0#1 : tensor<i1>, tensor<f32>
// CHECK-NEXT: }
