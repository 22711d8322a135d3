// RUN: not axir opt %s 2>&1 | filecheck %s
// RUN: not iree-opt --irdl-file=%S/../../../dialect/text/jaxpr.irdl.mlir %s 2>&1 | filecheck %s --check-prefix=IRDL

// CHECK: error: jaxpr.reshape: wrong operands or attributes: takes 1 positional argument
// CHECK-NEXT: at {{.*}}operand-count.mlir:9
// IRDL: error: op expects exactly 1 operands, but got 2

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = "jaxpr.reshape"(%x, %x) {new_sizes = array<i64>, dimensions} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
