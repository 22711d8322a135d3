// RUN: axir opt %s -p 'instantiate{sizes={b=4,t=3}}' | filecheck %s

// CHECK: func.func @main(%[[X:.*]]: tensor<4x3xf32>) -> tensor<8x3xf32> {
// CHECK-NEXT: %[[BOTH:.*]] = "jaxpr.concatenate"(%[[X]], %[[X]]) {dimension = 0 : i64} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
// CHECK-NEXT: %[[N:.*]] = "jaxpr.dim_as_value"() {dtype = i32, extent = 15 : i64} : () -> tensor<i32>
// CHECK-NEXT: %[[F:.*]] = "jaxpr.convert_element_type"(%[[N]]) {new_dtype = f32, weak_type = false} : (tensor<i32>) -> tensor<f32>
// CHECK-NEXT: %[[ALL:.*]] = "jaxpr.broadcast_in_dim"(%[[F]]) {broadcast_dimensions = array<i64>, shape = array<i64: 8, 3>} : (tensor<f32>) -> tensor<8x3xf32>
// CHECK-NEXT: %[[R:.*]] = "jaxpr.mul"(%[[BOTH]], %[[ALL]])
// CHECK-NEXT: return %[[R]] : tensor<8x3xf32>
func.func @main(%x: tensor<?x?xf32, {dims = ["b | b >= 2", "t | b >= 2"]}>) -> tensor<?x?xf32, {dims = ["2*b | b >= 2", "t | b >= 2"]}> {
  %0 = "jaxpr.concatenate"(%x, %x) {dimension = 0 : i64} : (tensor<?x?xf32, {dims = ["b | b >= 2", "t | b >= 2"]}>, tensor<?x?xf32, {dims = ["b | b >= 2", "t | b >= 2"]}>) -> tensor<?x?xf32, {dims = ["2*b | b >= 2", "t | b >= 2"]}>
  %1 = "jaxpr.dim_as_value"() {dtype = i32, extent = {dim = "b*t + t | b >= 2"}} : () -> tensor<i32>
  %2 = "jaxpr.convert_element_type"(%1) {new_dtype = f32, weak_type = false} : (tensor<i32>) -> tensor<f32>
  %3 = "jaxpr.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>, shape = [{dim = "2*b | b >= 2"}, {dim = "t | b >= 2"}]} : (tensor<f32>) -> tensor<?x?xf32, {dims = ["2*b | b >= 2", "t | b >= 2"]}>
  %4 = "jaxpr.mul"(%0, %3) : (tensor<?x?xf32, {dims = ["2*b | b >= 2", "t | b >= 2"]}>, tensor<?x?xf32, {dims = ["2*b | b >= 2", "t | b >= 2"]}>) -> tensor<?x?xf32, {dims = ["2*b | b >= 2", "t | b >= 2"]}>
  return %4 : tensor<?x?xf32, {dims = ["2*b | b >= 2", "t | b >= 2"]}>
}
