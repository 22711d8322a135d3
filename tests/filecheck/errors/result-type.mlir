// RUN: not axir opt %s 2>&1 | filecheck %s

// CHECK: error: jaxpr.eq gives bool[3], not float32[3].
// CHECK-NEXT: at {{.*}}result-type.mlir:8, which comes from model.py:7
// CHECK-NEXT: Correct the result type of the op.

func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "jaxpr.eq"(%x, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32> loc("model.py":7:3)
  return %0 : tensor<3xf32>
}
