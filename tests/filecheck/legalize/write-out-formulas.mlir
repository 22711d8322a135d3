// RUN: axir opt %s -p write-out-formulas | filecheck %s

// A loop that calls the function of its formula gets the formula; the function is gone.
// CHECK-LABEL: func.func @main
// CHECK: linalg.generic
// CHECK-SAME: formula = "0a"
// CHECK: ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[TWICE:.*]] = arith.addf %[[IN]], %[[IN]] : f32
// CHECK: linalg.yield %[[TWICE]] : f32
// CHECK-NOT: func.call
// CHECK-NOT: @formula_0a
#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %place = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<3xf32>) outs(%place : tensor<3xf32>) attrs = {formula = "0a"} {
  ^bb0(%in: f32, %out: f32):
    %1 = func.call @formula_0a(%in) : (f32) -> f32
    linalg.yield %1 : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func private @formula_0a(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
