// RUN: axir opt %s -p fuse-rows > %t
// RUN: filecheck %s --input-file %t

// Two passes over each row: the largest number, then what is written.

func.func @main(%x: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1] : (tensor<512x64xf32>, tensor<f32>) -> tensor<512xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<512xf32>) -> tensor<512x64xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<512x64xf32>
  return %2 : tensor<512x64xf32>
}

// CHECK: func.func @rows_0(
// CHECK: stream.dispatch.workgroup.id[0]
// CHECK: scf.for
// CHECK: vector.load
// CHECK: arith.maximumf {{.*}} : vector<16xf32>
// CHECK: vector.extract_strided_slice
// CHECK: arith.subf {{.*}} : vector<16xf32>
// CHECK: vector.store
// CHECK: func.func @main
// CHECK: %0 = flow.dispatch @rows_0::@rows_0(%arg0) : (tensor<512x64xf32>) -> tensor<512x64xf32>
// CHECK-NEXT: return %0 : tensor<512x64xf32>
