// RUN: axir opt %s -p fuse-loops > %t
// RUN: filecheck %s < %t

// Numbers are carried in registers; the array has its place in the memory of the result.
func.func @sums(%x: tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %0:3 = stablehlo.while(%i = %zero, %sum = %none, %sums = %zeros) : tensor<i32>, tensor<f32>, tensor<8xf32>
  cond {
    %eight = stablehlo.constant dense<8> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %eight : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<8xf32>, tensor<i32>) -> tensor<1xf32>
    %3 = stablehlo.reshape %2 : (tensor<1xf32>) -> tensor<f32>
    %4 = stablehlo.add %sum, %3 : tensor<f32>
    %5 = stablehlo.reshape %4 : (tensor<f32>) -> tensor<1xf32>
    %6 = stablehlo.dynamic_update_slice %sums, %5, %i : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %7 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %4, %6 : tensor<i32>, tensor<f32>, tensor<8xf32>
  }
  return %0#1, %0#2 : tensor<f32>, tensor<8xf32>
}

// CHECK:      stream.executable private @loop_0
// CHECK:      func.func @loop_0
// CHECK:      scf.while
// CHECK-SAME: (i32, f32) -> (i32, f32)
// CHECK:      arith.cmpi slt
// CHECK:      memref.load
// CHECK:      arith.addf
// CHECK:      memref.store
// CHECK:      func.func @sums
// CHECK-NOT:  stablehlo.while
// CHECK:      flow.dispatch @loop_0::@loop_0(%arg0)
// CHECK:      return
