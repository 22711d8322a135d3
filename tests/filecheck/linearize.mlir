// RUN: axir opt %s -p linearize | filecheck %s --check-prefix=CHECK
// RUN: axir opt %s -p linearize | iree-opt --irdl-file=%S/../../dialect/jaxpr.irdl.mlir - > /dev/null
// RUN: axir opt %s -p 'linearize{argnums=0}' | filecheck %s --check-prefix=FIRST
// RUN: axir opt %s -p 'linearize{argnums=0}' | iree-opt --irdl-file=%S/../../dialect/jaxpr.irdl.mlir - > /dev/null
// RUN: iree-opt --irdl-file=%S/../../dialect/jaxpr.irdl.mlir %s > /dev/null

// Known values stay in main, which returns the residuals; the rest becomes linear.

func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = "jaxpr.exp"(%x) : (tensor<f32>) -> tensor<f32>
  %1 = "jaxpr.mul"(%0, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
