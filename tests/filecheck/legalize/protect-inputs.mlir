// RUN: axir opt %s -p protect-inputs > %t
// RUN: filecheck %s --input-file %t

// What the caller still owns is copied before it is updated; what is donated is not.

func.func @main(%x: tensor<9xf32>, %u: tensor<2xf32>, %d: tensor<9xf32> {axir.donated}) -> (tensor<9xf32>, tensor<9xf32>) {
  %c = stablehlo.constant dense<3> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %u, %c : (tensor<9xf32>, tensor<2xf32>, tensor<i32>) -> tensor<9xf32>
  %1 = stablehlo.dynamic_update_slice %d, %u, %c : (tensor<9xf32>, tensor<2xf32>, tensor<i32>) -> tensor<9xf32>
  return %0, %1 : tensor<9xf32>, tensor<9xf32>
}

// CHECK: func.func @main(%arg0: tensor<9xf32>, %arg1: tensor<2xf32>, %arg2: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
// CHECK-NEXT: %0 = flow.tensor.transfer %arg0 : tensor<9xf32> to #hal.device.promise<@__device_0>
// CHECK-NEXT: %c = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %1 = stablehlo.dynamic_update_slice %0, %arg1, %c : (tensor<9xf32>, tensor<2xf32>, tensor<i32>) -> tensor<9xf32>
// CHECK-NEXT: %2 = stablehlo.dynamic_update_slice %arg2, %arg1, %c : (tensor<9xf32>, tensor<2xf32>, tensor<i32>) -> tensor<9xf32>
// CHECK-NEXT: return %1, %2 : tensor<9xf32>, tensor<9xf32>
// CHECK-NEXT: }
