// RUN: axir opt %s -p 'partition{mesh="data=2, model=2",inputs="data, -; -, model; model, -"}' | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<4x6xf32>, %{{.*}}: tensor<6x4xf32>, %{{.*}}: tensor<4x3xf32>
// CHECK: %[[H:.*]] = "jaxpr.dot_general"
// CHECK-SAME: -> tensor<4x4xf32>
// CHECK: %[[T:.*]] = "jaxpr.tanh"(%[[H]])
// CHECK: %[[P:.*]] = "jaxpr.dot_general"(%[[T]],
// CHECK: "jaxpr.psum"(%[[P]])
// CHECK-SAME: axes = ["model"]
// CHECK-SAME: -> tensor<4x3xf32>
func.func @main(%x: tensor<8x6xf32>, %u: tensor<6x8xf32>, %v: tensor<8x3xf32>) -> tensor<8x3xf32> {
  %0 = "jaxpr.dot_general"(%x, %u) {dimension_numbers = [[array<i64: 1>, array<i64: 0>], [array<i64>, array<i64>]], precision, preferred_element_type} : (tensor<8x6xf32>, tensor<6x8xf32>) -> tensor<8x8xf32>
  %1 = "jaxpr.tanh"(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = "jaxpr.dot_general"(%1, %v) {dimension_numbers = [[array<i64: 1>, array<i64: 0>], [array<i64>, array<i64>]], precision, preferred_element_type} : (tensor<8x8xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
  return %2 : tensor<8x3xf32>
}
