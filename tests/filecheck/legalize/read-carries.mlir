// RUN: axir opt %s -p read-carries > %t
// RUN: filecheck %s --input-file %t

// Neither region reads the first carried value, and its last one is used.

func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:3 = stablehlo.while(%last = %x, %value = %y, %flag = %p) : tensor<4xf32>, tensor<4xf32>, tensor<i1>
    cond {
      stablehlo.return %flag : tensor<i1>
    } do {
      %1 = stablehlo.not %flag : tensor<i1>
      %2 = stablehlo.negate %value : tensor<4xf32>
      stablehlo.return %value, %2, %1 : tensor<4xf32>, tensor<4xf32>, tensor<i1>
    }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK: [[TRUTH:%[0-9]+]] = util.optimization_barrier
// CHECK: stablehlo.while([[LAST:%iterArg]] = %arg0, [[VALUE:%iterArg_[0-9]+]] = %arg1
// CHECK: [[CHOSEN:%[0-9]+]] = stablehlo.select [[TRUTH]], [[VALUE]], [[LAST]]
// CHECK: stablehlo.return [[CHOSEN]],
