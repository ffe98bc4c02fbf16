module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32} loc("p['a']"), %arg1: tensor<4xf32> {tf.aliasing_output = 1 : i32} loc("m['a']"), %arg2: tensor<4xf32> loc("g")) -> (tensor<4xf32> {jax.result_info = "result[0]['a']"}, tensor<4xf32> {jax.result_info = "result[1]['a']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.multiply %0, %arg1 : tensor<4xf32>
    %2 = stablehlo.subtract %arg0, %1 : tensor<4xf32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %4 = stablehlo.multiply %3, %arg1 : tensor<4xf32>
    %5 = stablehlo.add %4, %arg2 : tensor<4xf32>
    %6 = stablehlo.multiply %arg0, %arg2 : tensor<4xf32>
    %7 = stablehlo.reduce(%6 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %2, %5, %7 : tensor<4xf32>, tensor<4xf32>, tensor<f32>
  }
}
