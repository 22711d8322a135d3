// RUN: axir opt %s -p 'grad{argnums=0},simplify' | filecheck %s
// RUN: axir opt %s -p 'grad{argnums=1,with_value=true},simplify' | filecheck %s --check-prefix=VALUE
// CHECK: func.func @main({{.*}}"w"{{.*}}"x"{{.*}}) -> (tensor<3xf32> {jaxpr.name = "grad_w"})
// CHECK: jaxpr.cos
// VALUE: func.func @main({{.*}}) -> (tensor<f32> {jaxpr.name = "loss"}, tensor<3xf32> {jaxpr.name = "aux"}, tensor<3xf32> {jaxpr.name = "grad_x"})
func.func @main(%w: tensor<3xf32> {jaxpr.name = "w"}, %x: tensor<3xf32> {jaxpr.name = "x"}) -> (tensor<f32> {jaxpr.name = "loss"}, tensor<3xf32> {jaxpr.name = "aux"}) {
  %0 = "jaxpr.mul"(%w, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = "jaxpr.sin"(%0) : (tensor<3xf32>) -> tensor<3xf32>
  %2 = "jaxpr.reduce_sum"(%1) {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %2, %1 : tensor<f32>, tensor<3xf32>
}
