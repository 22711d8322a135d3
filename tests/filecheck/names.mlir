// RUN: axir opt %s -p 'vmap{axis_size=5,in_axes=(0,none)},jvp,simplify' > %t.CHECK
// RUN: filecheck %s --input-file %t.CHECK
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.CHECK > /dev/null
// RUN: axir opt %s -p linearize > %t.LINEAR
// RUN: filecheck %s --input-file %t.LINEAR --check-prefix=LINEAR
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %t.LINEAR > /dev/null
// RUN: axir opt %s -p 'linearize,transpose{function=linear}' > %t.REVERSE
// RUN: filecheck %s --input-file %t.REVERSE --check-prefix=REVERSE
// RUN: iree-opt --irdl-file=%S/../../dialect/text/jaxpr.irdl.mlir %s > /dev/null

// Names of arguments survive the passes that keep them, and tangents get their own.

func.func @main(%x: tensor<f32> {jaxpr.name = "x"}, %n: tensor<i32> {jaxpr.name = "n"}) -> (tensor<f32> {jaxpr.name = "y"}) {
  %0 = "jaxpr.exp"(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK: func.func @main(%arg0: tensor<5xf32> {jaxpr.name = "x"}, %arg1: tensor<i32> {jaxpr.name = "n"}, %arg2: tensor<5xf32> {jaxpr.name = "dx"}) -> (tensor<5xf32> {jaxpr.name = "y"}, tensor<5xf32> {jaxpr.name = "dy"}) {
// CHECK-NEXT: %0 = "jaxpr.exp"(%arg0) : (tensor<5xf32>) -> tensor<5xf32>
// CHECK-NEXT: %1 = "jaxpr.mul"(%arg2, %0) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
// CHECK-NEXT: return %0, %1 : tensor<5xf32>, tensor<5xf32>
// CHECK-NEXT: }

// LINEAR: func.func @main(%arg0: tensor<f32> {jaxpr.name = "x"}, %arg1: tensor<i32> {jaxpr.name = "n"}) -> (tensor<f32> {jaxpr.name = "y"}, tensor<f32> {jaxpr.name = "residual0"}) {
// LINEAR-NEXT: %0 = "jaxpr.exp"(%arg0) : (tensor<f32>) -> tensor<f32>
// LINEAR-NEXT: return %0, %0 : tensor<f32>, tensor<f32>
// LINEAR-NEXT: }
// LINEAR: func.func @linear(%arg0: tensor<f32> {jaxpr.linear, jaxpr.name = "dx"}, %arg1: tensor<f32> {jaxpr.name = "residual0"}) -> (tensor<f32> {jaxpr.name = "dy"}) {
// LINEAR-NEXT: %0 = "jaxpr.mul"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// LINEAR-NEXT: return %0 : tensor<f32>
// LINEAR-NEXT: }

// REVERSE: func.func @linear(%arg0: tensor<f32> {jaxpr.name = "residual0"}, %arg1: tensor<f32> {jaxpr.name = "ct_y"}) -> (tensor<f32> {jaxpr.name = "ct_x"}) {
// REVERSE-NEXT: %0 = "jaxpr.mul"(%arg1, %arg0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
