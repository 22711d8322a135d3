// RUN: axir opt %s > %t
// RUN: filecheck %s --input-file %t
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t > /dev/null
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null

// Every kind of parameter parses and prints.

func.func @main(%x: tensor<4x4xf32> {jaxpr.weak_type}, %i: tensor<i32>, %b: tensor<2xbf16>, %u: tensor<2xui8>) -> (tensor<2x2xf32> {jaxpr.weak_type}, tensor<2xf32>, tensor<2xui8>, tensor<2xi1>, tensor<4x4xf32>) {
  %0 = "jaxpr.dynamic_slice"(%x, %i, %i) {slice_sizes = array<i64: 2, 2>} : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
  %1 = "jaxpr.convert_element_type"(%b) {new_dtype = f32, weak_type = false} : (tensor<2xbf16>) -> tensor<2xf32>
  %2 = "jaxpr.rev"(%u) {dimensions = array<i64: 0>} : (tensor<2xui8>) -> tensor<2xui8>
  %3 = "jaxpr.constant"() {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
  %4 = "jaxpr.slice"(%x) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 4, 4>, strides} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3, %4 : tensor<2x2xf32>, tensor<2xf32>, tensor<2xui8>, tensor<2xi1>, tensor<4x4xf32>
}

// CHECK: func.func @main(%arg0: tensor<4x4xf32> {jaxpr.weak_type}, %arg1: tensor<i32>, %arg2: tensor<2xbf16>, %arg3: tensor<2xui8>) -> (tensor<2x2xf32> {jaxpr.weak_type}, tensor<2xf32>, tensor<2xui8>, tensor<2xi1>, tensor<4x4xf32>) {
// CHECK-NEXT: %0 = "jaxpr.dynamic_slice"(%arg0, %arg1, %arg1) {slice_sizes = array<i64: 2, 2>} : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
// CHECK-NEXT: %1 = "jaxpr.convert_element_type"(%arg2) {new_dtype = f32, weak_type = false} : (tensor<2xbf16>) -> tensor<2xf32>
// CHECK-NEXT: %2 = "jaxpr.rev"(%arg3) {dimensions = array<i64: 0>} : (tensor<2xui8>) -> tensor<2xui8>
// CHECK-NEXT: %3 = "jaxpr.constant"() {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
// CHECK-NEXT: %4 = "jaxpr.slice"(%arg0) {limit_indices = array<i64: 4, 4>, start_indices = array<i64: 0, 0>, strides} : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: return %0, %1, %2, %3, %4 : tensor<2x2xf32>, tensor<2xf32>, tensor<2xui8>, tensor<2xi1>, tensor<4x4xf32>
// CHECK-NEXT: }
