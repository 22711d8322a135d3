// RUN: axir opt %s -p fuse-small-programs > %t
// RUN: filecheck %s < %t

// A layer and its largest element: one kernel, of what is used. The product runs over rows in vectors.
func.func @layer(%w: tensor<16x4xf32>, %x: tensor<4xf32>, %unused: tensor<complex<f32>>) -> tensor<f32> {
  %0 = stablehlo.dot_general %w, %x, contracting_dims = [1] x [0] : (tensor<16x4xf32>, tensor<4xf32>) -> tensor<16xf32>
  %1 = stablehlo.tanh %0 : tensor<16xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// What is elementwise alone, IREE fuses by itself.
func.func @elementwise(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  %2 = stablehlo.multiply %1, %x : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// One thread would copy a large array, of which only a part changes.
func.func @update(%x: tensor<512x512xf32>, %i: tensor<i32>) -> tensor<512x512xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [2, 2] : (tensor<512x512xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
  %1 = stablehlo.add %0, %0 : tensor<2x2xf32>
  %2 = stablehlo.add %i, %i : tensor<i32>
  %3 = stablehlo.dynamic_update_slice %x, %1, %2, %2 : (tensor<512x512xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<512x512xf32>
  return %3 : tensor<512x512xf32>
}

// CHECK:     stream.executable private @program_0
// CHECK:     math.tanh
// CHECK:     vector.reduction <maximumf>
// CHECK:     func.func @layer
// CHECK-NOT: stablehlo.
// CHECK:     flow.dispatch @program_0::@program_0(%arg0, %arg1)
// CHECK:     func.func @elementwise
// CHECK:     stablehlo.tanh
// CHECK:     func.func @update
// CHECK:     stablehlo.dynamic_update_slice
