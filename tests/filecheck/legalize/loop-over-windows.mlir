// RUN: axir opt %s -p loop-over-windows > %t
// RUN: filecheck %s --input-file %t

func.func @strided(%x: tensor<3x9xf32>) -> tensor<3x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<3x9xf32>, tensor<f32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK-DAG: [[READ:#map[0-9]*]] = affine_map<(d0, d1, d2) -> (d0, d1 * 2 + d2)>
// CHECK-DAG: [[PLACE:#map[0-9]*]] = affine_map<(d0, d1, d2) -> (d2)>
// CHECK-DAG: [[WRITTEN:#map[0-9]*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: @strided
// CHECK: [[WINDOW:%[0-9]+]] = tensor.empty() : tensor<3xi1>
// CHECK: [[INIT:%.+]] = tensor.extract
// CHECK: [[FULL:%[0-9]+]] = linalg.fill ins([[INIT]] : f32)
// CHECK: linalg.generic {indexing_maps = [
// CHECK-SAME: [[READ]], [[PLACE]], [[WRITTEN]]]
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%arg0, [[WINDOW]] : tensor<3x9xf32>, tensor<3xi1>) outs([[FULL]] : tensor<3x4xf32>)
// CHECK: arith.addf
// CHECK-NOT: stablehlo.reduce_window
