// RUN: axir opt %s -p jvp > %t.JVP
// RUN: filecheck %s --input-file %t.JVP --check-prefix=JVP
// RUN: axir opt %s -p linearize > %t.LINEARIZE
// RUN: filecheck %s --input-file %t.LINEARIZE --check-prefix=LINEARIZE
// RUN: axir opt %s -p 'linearize,transpose{function=linear}' > %t.TRANSPOSE
// RUN: filecheck %s --input-file %t.TRANSPOSE --check-prefix=TRANSPOSE
// RUN: axir opt %s -p lower-to-stablehlo > %t.LOWER
// RUN: filecheck %s --input-file %t.LOWER --check-prefix=LOWER
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.LINEARIZE > /dev/null

// A saved module differentiates by the rules that it holds. The rule of f calls f itself.

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = "jaxpr.custom_jvp_call"(%x) {call_jaxpr = @f, jvp_jaxpr_fun = @f_jvp, name = "f", num_consts = 0 : i64, symbolic_zeros = false} : (tensor<f32>) -> tensor<f32>
  %1 = "jaxpr.custom_vjp_call"(%0) {bwd = @g_bwd, call_jaxpr = @g, fwd_jaxpr_thunk = @g_fwd, name = "g", num_consts = 0 : i64, symbolic_zeros = false} : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = "jaxpr.exp"(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @f_jvp(%x: tensor<f32>, %dx: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = "jaxpr.custom_jvp_call"(%x) {call_jaxpr = @f, jvp_jaxpr_fun = @f_jvp, name = "f", num_consts = 0 : i64, symbolic_zeros = false} : (tensor<f32>) -> tensor<f32>
  %1 = "jaxpr.tanh"(%x) : (tensor<f32>) -> tensor<f32>
  %2 = "jaxpr.mul"(%1, %dx) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0, %2 : tensor<f32>, tensor<f32>
}
func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @g_fwd(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32>
  %1 = "jaxpr.log"(%x) : (tensor<f32>) -> tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}
func.func private @g_bwd(%residual: tensor<f32>, %ct: tensor<f32>) -> tensor<f32> {
  %0 = "jaxpr.sub"(%ct, %residual) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// JVP: func.func @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
// JVP-NEXT: %0 = "jaxpr.custom_jvp_call"(%arg0) {call_jaxpr = @f, jvp_jaxpr_fun = @f_jvp, name = "f", num_consts = 0 : i64, symbolic_zeros = false} : (tensor<f32>) -> tensor<f32>
// JVP-NEXT: %1 = "jaxpr.tanh"(%arg0) : (tensor<f32>) -> tensor<f32>
// JVP-NEXT: %2 = "jaxpr.mul"(%1, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// JVP-NEXT: %3 = "jaxpr.sin"(%0) : (tensor<f32>) -> tensor<f32>
// JVP-NEXT: %4 = "jaxpr.log"(%0) : (tensor<f32>) -> tensor<f32>
// JVP-NEXT: %5 = "jaxpr.custom_lin"(%4, %2) {bwd = @g_bwd, name = "g", num_res = 1 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
// JVP-NEXT: return %3, %5 : tensor<f32>, tensor<f32>
// JVP-NEXT: }

// LINEARIZE: func.func @main(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
// LINEARIZE-NEXT: %0 = "jaxpr.custom_jvp_call"(%arg0) {call_jaxpr = @f, jvp_jaxpr_fun = @f_jvp, name = "f", num_consts = 0 : i64, symbolic_zeros = false} : (tensor<f32>) -> tensor<f32>
// LINEARIZE-NEXT: %1 = "jaxpr.tanh"(%arg0) : (tensor<f32>) -> tensor<f32>
// LINEARIZE-NEXT: %2 = "jaxpr.sin"(%0) : (tensor<f32>) -> tensor<f32>
// LINEARIZE-NEXT: %3 = "jaxpr.log"(%0) : (tensor<f32>) -> tensor<f32>
// LINEARIZE-NEXT: return %2, %1, %3 : tensor<f32>, tensor<f32>, tensor<f32>
// LINEARIZE-NEXT: }
// LINEARIZE: func.func @linear(%arg0: tensor<f32> {jaxpr.linear}, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
// LINEARIZE-NEXT: %0 = "jaxpr.mul"(%arg1, %arg0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// LINEARIZE-NEXT: %1 = "jaxpr.custom_lin"(%arg2, %0) {bwd = @g_bwd, name = "g", num_res = 1 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
// LINEARIZE-NEXT: return %1 : tensor<f32>
// LINEARIZE-NEXT: }
// LINEARIZE: func.func private @g_bwd(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
// LINEARIZE-NEXT: %0 = "jaxpr.sub"(%arg1, %arg0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// LINEARIZE-NEXT: return %0 : tensor<f32>
// LINEARIZE-NEXT: }

// LINEARIZE: func.func private @f_jvp(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<f32>) {

// TRANSPOSE: func.func @main(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
// TRANSPOSE-NEXT: %0 = "jaxpr.custom_jvp_call"(%arg0) {call_jaxpr = @f, jvp_jaxpr_fun = @f_jvp, name = "f", num_consts = 0 : i64, symbolic_zeros = false} : (tensor<f32>) -> tensor<f32>
// TRANSPOSE-NEXT: %1 = "jaxpr.tanh"(%arg0) : (tensor<f32>) -> tensor<f32>
// TRANSPOSE-NEXT: %2 = "jaxpr.sin"(%0) : (tensor<f32>) -> tensor<f32>
// TRANSPOSE-NEXT: %3 = "jaxpr.log"(%0) : (tensor<f32>) -> tensor<f32>
// TRANSPOSE-NEXT: return %2, %1, %3 : tensor<f32>, tensor<f32>, tensor<f32>
// TRANSPOSE-NEXT: }
// TRANSPOSE: func.func @linear(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
// TRANSPOSE-NEXT: %0 = "jaxpr.sub"(%arg2, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// TRANSPOSE-NEXT: %1 = "jaxpr.mul"(%arg0, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// TRANSPOSE-NEXT: return %1 : tensor<f32>
// TRANSPOSE-NEXT: }

// LOWER: func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
// LOWER-NEXT: %0 = stablehlo.exponential %arg0 : tensor<f32>
// LOWER-NEXT: %1 = stablehlo.sine %0 : tensor<f32>
// LOWER-NEXT: return %1 : tensor<f32>
// LOWER-NEXT: }
