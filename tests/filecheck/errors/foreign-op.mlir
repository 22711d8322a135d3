// RUN: not axir opt %s -p jvp 2>&1 | filecheck %s

// CHECK: error: Op 'math.sin' is not one of the jaxpr dialect.
// CHECK-NEXT: at {{.*}}foreign-op.mlir:8
// CHECK-NEXT: Only modules of the jaxpr dialect can be transformed

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = math.sin %x : tensor<f32>
  return %0 : tensor<f32>
}
