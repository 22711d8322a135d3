// RUN: not axir opt %s 2>&1 | filecheck %s

// CHECK: error: {{.*}}syntax.mlir is not valid MLIR
// CHECK-NOT: Traceback

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = "jaxpr.sin"(%x : (tensor<f32>) -> tensor<f32>
}
