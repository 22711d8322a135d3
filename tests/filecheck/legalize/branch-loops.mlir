// RUN: axir opt %s -p branch-loops > %t
// RUN: filecheck %s < %t

// A loop that the device ends, around one that counts: the counter is a number of the host, and
// the value that only the condition reads stays what it is.
func.func @newton(%a: tensor<f32>, %e: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %limit = stablehlo.constant dense<1.0e-3> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%x = %a, %error = %e) : tensor<f32>, tensor<f32>
  cond {
    %1 = stablehlo.compare GT, %error, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<f32>
    cond {
      %two = stablehlo.constant dense<2> : tensor<i32>
      %3 = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %i, %one : tensor<i32>
      %5 = stablehlo.sine %y : tensor<f32>
      stablehlo.return %4, %5 : tensor<i32>, tensor<f32>
    }
    %6 = stablehlo.subtract %2#1, %x : tensor<f32>
    stablehlo.return %2#1, %6 : tensor<f32>, tensor<f32>
  }
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @newton
// CHECK: cf.br ^[[OUTER:bb[0-9]+]](%arg0, %arg1 : tensor<f32>, tensor<f32>)
// CHECK: return [[X:%[0-9]+]], [[ERROR:%[0-9]+]]
// CHECK: ^[[OUTER]]([[X]]: tensor<f32>, [[ERROR]]: tensor<f32>):
// CHECK: [[AWAITED:%[0-9]+]] = util.optimization_barrier [[ERROR]] : tensor<f32>
// CHECK: [[HOLDS:%[0-9]+]] = stablehlo.compare GT, [[AWAITED]], %cst
// CHECK: [[READ:%[a-z0-9_]+]] = tensor.extract [[HOLDS]][] : tensor<i1>
// CHECK: [[HIDDEN:%[0-9]+]] = util.optimization_barrier [[READ]] : i1
// CHECK: cf.cond_br [[HIDDEN]]
// CHECK: cf.br ^[[INNER:bb[0-9]+]]([[X]], %c0_i32 : tensor<f32>, i32)
// CHECK: cf.br ^[[OUTER]]([[Y:%[0-9]+]], {{%[0-9]+}} : tensor<f32>, tensor<f32>)
// CHECK: ^[[INNER]]([[Y]]: tensor<f32>, [[I:%[0-9]+]]: i32):
// CHECK: [[COUNTS:%[0-9]+]] = arith.cmpi slt, [[I]], %c2_i32 : i32
// CHECK: [[GOES_ON:%[0-9]+]] = util.optimization_barrier [[COUNTS]] : i1
// CHECK: cf.cond_br [[GOES_ON]]
// CHECK: [[NEXT:%[0-9]+]] = arith.addi [[I]], %c1_i32 : i32
// CHECK: cf.br ^[[INNER]]({{%[0-9]+}}, [[NEXT]] : tensor<f32>, i32)
