// RUN: axir opt %s -p separate-loops > %t
// RUN: filecheck %s --input-file %t

// Barriers hold the results that are used, except the unsigned one.

func.func @main(%x: tensor<4xf32>, %u: tensor<4xui8>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xui8>) {
  %0:4 = stablehlo.while(%flag = %p, %a = %x, %b = %x, %c = %u) : tensor<i1>, tensor<4xf32>, tensor<4xf32>, tensor<4xui8>
    cond {
      stablehlo.return %flag : tensor<i1>
    } do {
      %1 = stablehlo.not %flag : tensor<i1>
      stablehlo.return %1, %b, %a, %c : tensor<i1>, tensor<4xf32>, tensor<4xf32>, tensor<4xui8>
    }
  %2 = stablehlo.add %0#1, %0#2 : tensor<4xf32>
  return %2, %0#3 : tensor<4xf32>, tensor<4xui8>
}

// CHECK: [[LOOP:%[0-9]+]]:4 = stablehlo.while
// CHECK: [[SECOND:%[0-9]+]] = util.optimization_barrier [[LOOP]]#2 : tensor<4xf32>
// CHECK: [[FIRST:%[0-9]+]] = util.optimization_barrier [[LOOP]]#1 : tensor<4xf32>
// CHECK: [[SUM:%[0-9]+]] = stablehlo.add [[FIRST]], [[SECOND]]
// CHECK: return [[SUM]], [[LOOP]]#3
