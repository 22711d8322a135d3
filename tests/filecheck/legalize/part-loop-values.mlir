// RUN: axir opt %s -p part-loop-values > %t
// RUN: filecheck %s --input-file %t

// What the body returns a second time passes a barrier, unsigned integers as signless ones.

func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %u: tensor<4xui8>, %p: tensor<i1>) -> tensor<4xf32> {
  %0:5 = stablehlo.while(%flag = %p, %a = %x, %b = %y, %c = %u, %d = %u) : tensor<i1>, tensor<4xf32>, tensor<4xf32>, tensor<4xui8>, tensor<4xui8>
    cond {
      stablehlo.return %flag : tensor<i1>
    } do {
      %1 = stablehlo.add %a, %b : tensor<4xf32>
      stablehlo.return %flag, %1, %1, %c, %c : tensor<i1>, tensor<4xf32>, tensor<4xf32>, tensor<4xui8>, tensor<4xui8>
    }
  return %0#2 : tensor<4xf32>
}

// CHECK: [[FLAG:%[a-zA-Z0-9_]+]] = %arg3, [[A:%[a-zA-Z0-9_]+]] = %arg0, [[B:%[a-zA-Z0-9_]+]] = %arg1, [[C:%[a-zA-Z0-9_]+]] = %arg2
// CHECK: [[SUM:%[0-9]+]] = stablehlo.add [[A]], [[B]]
// CHECK: [[HELD:%[0-9]+]] = util.optimization_barrier [[SUM]] : tensor<4xf32>
// CHECK: [[BITS:%[0-9]+]] = stablehlo.bitcast_convert [[C]] : (tensor<4xui8>) -> tensor<4xi8>
// CHECK: [[HELDBITS:%[0-9]+]] = util.optimization_barrier [[BITS]] : tensor<4xi8>
// CHECK: [[BACK:%[0-9]+]] = stablehlo.bitcast_convert [[HELDBITS]]
// CHECK: stablehlo.return [[FLAG]], [[SUM]], [[HELD]], [[C]], [[BACK]]
