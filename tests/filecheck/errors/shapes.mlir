// RUN: not axir opt %s 2>&1 | filecheck %s

// What only the rules of the ops know: the IRDL verifier lets this pass.

// CHECK: error: jaxpr.add: add requires operands of equal shape (extents of 1 and scalars stretch), but got float32[3] and float32[2].
// CHECK-NEXT: at {{.*}}shapes.mlir:9

func.func @main(%x: tensor<3xf32>, %y: tensor<2xf32>) -> tensor<3xf32> {
  %0 = "jaxpr.add"(%x, %y) : (tensor<3xf32>, tensor<2xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
