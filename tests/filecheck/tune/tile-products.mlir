// RUN: axir opt %s -p 'tile-products{vector_bits=512}' > %t
// RUN: filecheck %s --input-file %t

// The rest of the columns is masked, the layer's bias and activation are computed by the kernel,
// and a product with few multiplications stays.

func.func @main(%x: tensor<33x40xf32>, %w: tensor<40x50xf32>, %b: tensor<50xf32>, %v: tensor<50x3xf32>) -> tensor<33x3xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<33x40xf32>, tensor<40x50xf32>) -> tensor<33x50xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<50xf32>) -> tensor<33x50xf32>
  %2 = stablehlo.add %0, %1 : tensor<33x50xf32>
  %3 = stablehlo.tanh %2 : tensor<33x50xf32>
  %4 = stablehlo.dot_general %3, %v, contracting_dims = [1] x [0] : (tensor<33x50xf32>, tensor<50x3xf32>) -> tensor<33x3xf32>
  return %4 : tensor<33x3xf32>
}

// CHECK: stream.executable private @[[NAME:matrix_product_[0-9a-f]+]]
// CHECK: memref.alloca() {{.*}}: memref<48x32xf32>
// CHECK: vector.create_mask
// CHECK: vector.maskedload
// CHECK: vector.broadcast
// CHECK: arith.mulf {{.*}} fastmath<contract> : vector<16xf32>
// CHECK-NEXT: arith.addf {{.*}} fastmath<contract> : vector<16xf32>
// CHECK: math.tanh
// CHECK: vector.maskedstore
// CHECK: func.func @main
// CHECK: flow.dispatch @[[NAME]]::@[[NAME]](%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<1x33x40xf32>, tensor<1x40x50xf32>, tensor<50xf32>) -> tensor<1x33x50xf32>
// CHECK-NOT: stablehlo.add
// CHECK-NOT: stablehlo.tanh
// CHECK: stablehlo.dot_general %{{.*}}, %arg3
