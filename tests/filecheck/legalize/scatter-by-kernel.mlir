// RUN: axir opt %s -p scatter-by-kernel > %t
// RUN: filecheck %s --input-file %t

// The operand is copied, and each index compared with the limits where it is used.

func.func @main(%x: tensor<10x5xf32>, %i: tensor<3x1xi32>, %u: tensor<3x5xf32>) -> tensor<10x5xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<10x5xf32>, tensor<3x1xi32>, tensor<3x5xf32>) -> tensor<10x5xf32>
  return %0 : tensor<10x5xf32>
}

// CHECK: func.func @scatter_0(
// CHECK: scf.for
// CHECK: vector.load {{.*}} vector<4xf32>
// CHECK: vector.store
// CHECK: scf.for
// CHECK: memref.load {{.*}} memref<3x1xi32>
// CHECK: arith.extsi
// CHECK: arith.cmpi sge
// CHECK: arith.cmpi sle
// CHECK: scf.if
// CHECK: arith.addf {{.*}} : vector<4xf32>
// CHECK: vector.store
// CHECK: arith.addf {{.*}} : f32
// CHECK: func.func @main
// CHECK: %0 = flow.dispatch @scatter_0::@scatter_0(%arg0, %arg1, %arg2) : (tensor<10x5xf32>, tensor<3x1xi32>, tensor<3x5xf32>) -> tensor<10x5xf32>
// CHECK-NEXT: return %0 : tensor<10x5xf32>
