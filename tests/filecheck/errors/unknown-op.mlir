// RUN: not axir opt %s 2>&1 | filecheck %s
// RUN: not iree-opt --irdl-file=%S/../../../dialect/text/jaxpr.irdl.mlir %s 2>&1 | filecheck %s --check-prefix=IRDL

// CHECK: error: Op 'jaxpr.sine' is not one of the jaxpr dialect.
// CHECK-NEXT: at {{.*}}unknown-op.mlir:10
// CHECK-NEXT: Did you mean jaxpr.sin
// IRDL: error: unregistered operation 'jaxpr.sine'

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = "jaxpr.sine"(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
