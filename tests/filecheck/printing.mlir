// RUN: axir opt %s -p jvp,simplify --print-ir-after-all 2>&1 | filecheck %s --check-prefix=ALL
// RUN: axir opt %s -p jvp,simplify --print-ir-after simplify 2>&1 | filecheck %s --check-prefix=ONE
// RUN: axir opt %s -p jvp --timing 2>&1 | filecheck %s --check-prefix=TIMING
// RUN: axir opt %s --generic | filecheck %s --check-prefix=GENERIC
// RUN: axir opt %s --debug-info | filecheck %s --check-prefix=DEBUG
// RUN: axir opt %s --verify-only | filecheck %s --check-prefix=NOTHING --allow-empty

// ALL: IR after jvp
// ALL: func.func @main
// ALL: IR after simplify
// ONE-NOT: IR after jvp
// ONE: IR after simplify
// TIMING: Execution time report
// TIMING: jvp
// GENERIC: "func.func"()
// DEBUG: loc("model.py":7:3)
// NOTHING-NOT: func.func

func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = "jaxpr.sin"(%x) : (tensor<f32>) -> tensor<f32> loc("model.py":7:3)
  return %0 : tensor<f32>
}
