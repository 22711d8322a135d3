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
// CHECK: [[BEGIN:%[0-9]+]] = flow.tensor.transfer [[X]] : tensor<f32>
// CHECK: cf.cond_br {{%[0-9]+}}, ^[[INNER:bb[0-9]+]]([[BEGIN]], %c0_i32 : tensor<f32>, i32), ^[[END:bb[0-9]+]]([[BEGIN]], %c0_i32 : tensor<f32>, i32)
// CHECK: ^[[END]]([[Y:%[0-9]+]]: tensor<f32>, {{%[0-9]+}}: i32):
// CHECK: cf.br ^[[OUTER]]([[Y]], {{%[0-9]+}} : tensor<f32>, tensor<f32>)
// CHECK: ^[[INNER]]([[Z:%[0-9]+]]: tensor<f32>, [[I:%[0-9]+]]: i32):
// CHECK: [[SINE:%[0-9]+]] = stablehlo.sine [[Z]]
// CHECK: [[NEXT:%[0-9]+]] = arith.addi [[I]], %c1_i32 : i32
// CHECK: [[COUNTS:%[0-9]+]] = arith.cmpi slt, [[NEXT]], %{{[a-z0-9_]+}} : i32
// CHECK: [[GOES_ON:%[0-9]+]] = util.optimization_barrier [[COUNTS]] : i1
// CHECK: cf.cond_br [[GOES_ON]], ^[[INNER]]([[SINE]], [[NEXT]] : tensor<f32>, i32), ^[[END]]([[SINE]], [[NEXT]] : tensor<f32>, i32)

// Two arrays that begin alike, and of which the loop changes parts: each is filled by itself.
func.func @stacks(%n: tensor<i32>, %row: tensor<1xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<8xf32>
  %0:3 = stablehlo.while(%i = %zero, %a = %empty, %b = %empty) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.dynamic_update_slice %a, %row, %i : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
    %4 = stablehlo.dynamic_update_slice %b, %row, %2 : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
    stablehlo.return %2, %3, %4 : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  }
  return %0#1, %0#2 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @stacks
// CHECK: [[FIRST:%[0-9]+]] = util.optimization_barrier %{{[a-z0-9_]+}} : f32
// CHECK: [[A:%[0-9]+]] = flow.tensor.splat [[FIRST]] : tensor<8xf32>
// CHECK: [[SECOND:%[0-9]+]] = util.optimization_barrier %{{[a-z0-9_]+}} : f32
// CHECK: [[B:%[0-9]+]] = flow.tensor.splat [[SECOND]] : tensor<8xf32>
// CHECK: flow.tensor.transfer [[A]]
// CHECK: flow.tensor.transfer [[B]]
