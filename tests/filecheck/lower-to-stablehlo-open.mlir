// RUN: axir opt %s -p lower-to-stablehlo | filecheck %s

// CHECK:       module attributes {jax.uses_shape_polymorphism = true} {
// CHECK:         func.func @main(%arg0: tensor<?x3xf32> {axir.dims = ["2*b"]})
// CHECK:           [[SIZE:%.+]] = stablehlo.get_dimension_size %arg0, dim = 0
// CHECK:           stablehlo.custom_call @shape_assertion
// CHECK:           call @main_of_sizes
// CHECK:         func.func private @main_of_sizes(%arg0: tensor<i64> {jax.global_constant = "b"}, %arg1: tensor<?x3xf32>) -> tensor<?xf32>
// CHECK:           stablehlo.dynamic_reshape %arg1
func.func @main(%x: tensor<?x3xf32, {dims = ["2*b"]}> {jaxpr.name = "x"}) -> tensor<?xf32, {dims = ["6*b"]}> {
  %0 = "jaxpr.reshape"(%x) {dimensions, new_sizes = [{dim = "6*b"}]} : (tensor<?x3xf32, {dims = ["2*b"]}>) -> tensor<?xf32, {dims = ["6*b"]}>
  return %0 : tensor<?xf32, {dims = ["6*b"]}>
}
