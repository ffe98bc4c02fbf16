// The copy on the host has other extents than what is copied.
module attributes {lms.opsets = [{domain = "", version = 17 : i64}], lms.version = 1 : i64} {
  func.func @swapped(%arg0: tensor<4x8xf32> {onnx.name = "x"}, %arg1: tensor<8x8xf32> {onnx.name = "w"}) -> (tensor<4x8xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%arg0) {lms.results = ["a1"], onnx_node_name = "n1"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1:2 = "lms.swap_out"(%0) {lms.results = ["a1_host"], onnx_node_name = "out_a1"} : (tensor<4x8xf32>) -> (!lms.host<tensor<4x9xf32>>, !lms.token)
    %2 = "onnx.MatMul"(%0, %arg1) {lms.results = ["a2"], onnx_node_name = "n2"} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = "lms.trigger"(%2) : (tensor<4x8xf32>) -> !lms.token
    %4 = "lms.wait"(%2, %1#1) : (tensor<4x8xf32>, !lms.token) -> tensor<4x8xf32>
    %5 = "onnx.Tanh"(%4) {lms.results = ["a3"], onnx_node_name = "n3"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %6:2 = "lms.swap_in"(%1#0, %3) {lms.results = ["a1_in"], onnx_node_name = "in_a1"} : (!lms.host<tensor<4x9xf32>>, !lms.token) -> (tensor<4x9xf32>, !lms.token)
    %7 = "onnx.Mul"(%5, %6#0) {lms.results = ["y"], onnx_node_name = "n4"} : (tensor<4x8xf32>, tensor<4x9xf32>) -> tensor<4x8xf32>
    return %7 : tensor<4x8xf32>
  }
}
