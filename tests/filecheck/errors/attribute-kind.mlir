// RUN: not axir opt %s 2>&1 | filecheck %s
// RUN: not iree-opt --irdl-file=%S/../../../dialect/text/jaxpr.irdl.mlir %s 2>&1 | filecheck %s --check-prefix=IRDL

// CHECK: error: jaxpr.reduce_sum
// CHECK: at {{.*}}attribute-kind.mlir:9
// IRDL: error: expected base attribute 'builtin.dense_array' but got 'builtin.string'

func.func @main(%x: tensor<3xf32>) -> tensor<f32> {
  %0 = "jaxpr.reduce_sum"(%x) {axes = "all"} : (tensor<3xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
