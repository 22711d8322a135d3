// RUN: axir opt %s -p sort-by-digits > %t
// RUN: filecheck %s --input-file %t

// Keys become integers without a sign, in descending order here; what goes with them are positions.

func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xi64>) -> tensor<2x3xi64> {
  %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i64>, %d: tensor<i64>):
    %1 = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<2x3xf32>, tensor<2x3xi64>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  return %0#1 : tensor<2x3xi64>
}

// CHECK: stream.executable private @sort_0
// CHECK: memref.load
// CHECK: memref.store
// CHECK: %0 = stablehlo.bitcast_convert %arg0 : (tensor<2x3xf32>) -> tensor<2x3xi32>
// CHECK: %1 = stablehlo.shift_right_arithmetic %0, %c : tensor<2x3xi32>
// CHECK: %2 = stablehlo.or %1, %c_0 : tensor<2x3xi32>
// CHECK-NEXT: %3 = stablehlo.xor %0, %2 : tensor<2x3xi32>
// CHECK-NEXT: %4 = stablehlo.not %3 : tensor<2x3xi32>
// CHECK-NEXT: %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
// CHECK: %8 = stablehlo.iota dim = 1 : tensor<3x2xi32>
// CHECK: %9 = stablehlo.shift_left %7, %c_2 : tensor<3x2xi64>
// CHECK: %12 = stablehlo.or %9, %11 : tensor<3x2xi64>
// CHECK-NEXT: %13 = flow.dispatch @sort_0::@sort_0(%12) : (tensor<3x2xi64>) -> tensor<3x2xi32>
// CHECK-NEXT: %14 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<2x3xi64>) -> tensor<3x2xi64>
// CHECK-NEXT: %15 = stablehlo.reshape %13 : (tensor<3x2xi32>) -> tensor<3x2x1xi32>
// CHECK-NEXT: %16 = "stablehlo.gather"(%14, %15)
// CHECK-SAME: {axir.in_bounds}
// CHECK-NEXT: %17 = stablehlo.transpose %16, dims = [1, 0] : (tensor<3x2xi64>) -> tensor<2x3xi64>
// CHECK-NEXT: return %17 : tensor<2x3xi64>
