// RUN: axir opt %s -p renew-fills > %t
// RUN: filecheck %s --input-file %t

// Two pads by a number of 64 bits have arrays of their own.

func.func @main(%x: tensor<5xf64>, %y: tensor<5xf64>) -> (tensor<8xf64>, tensor<8xf64>) {
  %value = stablehlo.constant dense<7.3> : tensor<f64>
  %0 = stablehlo.pad %x, %value, low = [1], high = [2], interior = [0] : (tensor<5xf64>, tensor<f64>) -> tensor<8xf64>
  %1 = stablehlo.pad %y, %value, low = [2], high = [1], interior = [0] : (tensor<5xf64>, tensor<f64>) -> tensor<8xf64>
  return %0, %1 : tensor<8xf64>, tensor<8xf64>
}

// CHECK-LABEL: @main
// CHECK: [[FIRST_TRUTH:%[0-9]+]] = util.optimization_barrier
// CHECK: [[FIRST:%[0-9]+]] = stablehlo.select [[FIRST_TRUTH]]
// CHECK: stablehlo.dynamic_update_slice [[FIRST]], %arg0
// CHECK: [[SECOND_TRUTH:%[0-9]+]] = util.optimization_barrier
// CHECK: [[SECOND:%[0-9]+]] = stablehlo.select [[SECOND_TRUTH]]
// CHECK: stablehlo.dynamic_update_slice [[SECOND]], %arg1
// CHECK-NOT: stablehlo.pad
