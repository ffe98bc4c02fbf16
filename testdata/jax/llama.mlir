module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<24x16xf32> {tf.aliasing_output = 0 : i32} loc("p['down']"), %arg1: tensor<23x16xf32> {tf.aliasing_output = 1 : i32} loc("p['e']"), %arg2: tensor<16x24xf32> {tf.aliasing_output = 2 : i32} loc("p['gate']"), %arg3: tensor<16x23xf32> {tf.aliasing_output = 3 : i32} loc("p['head']"), %arg4: tensor<16x8xf32> {tf.aliasing_output = 4 : i32} loc("p['k']"), %arg5: tensor<16x16xf32> {tf.aliasing_output = 5 : i32} loc("p['o']"), %arg6: tensor<16x16xf32> {tf.aliasing_output = 6 : i32} loc("p['q']"), %arg7: tensor<16xf32> {tf.aliasing_output = 7 : i32} loc("p['s']"), %arg8: tensor<16x24xf32> {tf.aliasing_output = 8 : i32} loc("p['up']"), %arg9: tensor<16x8xf32> {tf.aliasing_output = 9 : i32} loc("p['v']"), %arg10: tensor<i32> {tf.aliasing_output = 10 : i32} loc("s[0].count"), %arg11: tensor<24x16xf32> {tf.aliasing_output = 11 : i32} loc("s[0].mu['down']"), %arg12: tensor<23x16xf32> {tf.aliasing_output = 12 : i32} loc("s[0].mu['e']"), %arg13: tensor<16x24xf32> {tf.aliasing_output = 13 : i32} loc("s[0].mu['gate']"), %arg14: tensor<16x23xf32> {tf.aliasing_output = 14 : i32} loc("s[0].mu['head']"), %arg15: tensor<16x8xf32> {tf.aliasing_output = 15 : i32} loc("s[0].mu['k']"), %arg16: tensor<16x16xf32> {tf.aliasing_output = 16 : i32} loc("s[0].mu['o']"), %arg17: tensor<16x16xf32> {tf.aliasing_output = 17 : i32} loc("s[0].mu['q']"), %arg18: tensor<16xf32> {tf.aliasing_output = 18 : i32} loc("s[0].mu['s']"), %arg19: tensor<16x24xf32> {tf.aliasing_output = 19 : i32} loc("s[0].mu['up']"), %arg20: tensor<16x8xf32> {tf.aliasing_output = 20 : i32} loc("s[0].mu['v']"), %arg21: tensor<2x8xi32> loc("data[0]"), %arg22: tensor<2x8xi32> loc("data[1]")) -> (tensor<24x16xf32> {jax.result_info = "result[0]['down']"}, tensor<23x16xf32> {jax.result_info = "result[0]['e']"}, tensor<16x24xf32> {jax.result_info = "result[0]['gate']"}, tensor<16x23xf32> {jax.result_info = "result[0]['head']"}, tensor<16x8xf32> {jax.result_info = "result[0]['k']"}, tensor<16x16xf32> {jax.result_info = "result[0]['o']"}, tensor<16x16xf32> {jax.result_info = "result[0]['q']"}, tensor<16xf32> {jax.result_info = "result[0]['s']"}, tensor<16x24xf32> {jax.result_info = "result[0]['up']"}, tensor<16x8xf32> {jax.result_info = "result[0]['v']"}, tensor<i32> {jax.result_info = "result[1][0].count"}, tensor<24x16xf32> {jax.result_info = "result[1][0].mu['down']"}, tensor<23x16xf32> {jax.result_info = "result[1][0].mu['e']"}, tensor<16x24xf32> {jax.result_info = "result[1][0].mu['gate']"}, tensor<16x23xf32> {jax.result_info = "result[1][0].mu['head']"}, tensor<16x8xf32> {jax.result_info = "result[1][0].mu['k']"}, tensor<16x16xf32> {jax.result_info = "result[1][0].mu['o']"}, tensor<16x16xf32> {jax.result_info = "result[1][0].mu['q']"}, tensor<16xf32> {jax.result_info = "result[1][0].mu['s']"}, tensor<16x24xf32> {jax.result_info = "result[1][0].mu['up']"}, tensor<16x8xf32> {jax.result_info = "result[1][0].mu['v']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_1 = stablehlo.constant dense<2147483647> : tensor<i32>
    %cst_2 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %cst_4 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %cst_5 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_8 = stablehlo.constant dense<-2.38197633E+38> : tensor<f32>
    %c_9 = stablehlo.constant dense<true> : tensor<i1>
    %cst_10 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_11 = stablehlo.constant dense<1.000000e+04> : tensor<f32>
    %cst_12 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %c_13 = stablehlo.constant dense<0> : tensor<i32>
    %c_14 = stablehlo.constant dense<2> : tensor<i32>
    %cst_15 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %cst_16 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %cst_17 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0:2 = call @_take(%arg1, %arg21) : (tensor<23x16xf32>, tensor<2x8xi32>) -> (tensor<2x8x16xf32>, tensor<2x8x1xi32>)
    %1 = stablehlo.multiply %0#0, %0#0 : tensor<2x8x16xf32>
    %2 = stablehlo.reduce(%1 init: %cst_18) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %4 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %5 = stablehlo.divide %3, %4 : tensor<2x8x1xf32>
    %6 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %7 = stablehlo.add %5, %6 : tensor<2x8x1xf32>
    %8 = stablehlo.rsqrt %7 : tensor<2x8x1xf32>
    %9 = stablehlo.divide %8, %7 : tensor<2x8x1xf32>
    %10 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %11 = stablehlo.multiply %10, %9 : tensor<2x8x1xf32>
    %12 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %13 = stablehlo.multiply %0#0, %12 : tensor<2x8x16xf32>
    %14 = stablehlo.broadcast_in_dim %arg7, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %16 = stablehlo.multiply %13, %15 : tensor<2x8x16xf32>
    %17 = stablehlo.dot_general %16, %arg6, contracting_dims = [2] x [0] : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
    %18 = stablehlo.reshape %17 : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
    %19 = stablehlo.iota dim = 0 : tensor<8xi32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %21 = stablehlo.iota dim = 0 : tensor<2xi32>
    %22 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %23 = stablehlo.multiply %22, %21 : tensor<2xi32>
    %24 = stablehlo.broadcast_in_dim %c_13, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %25 = stablehlo.add %24, %23 : tensor<2xi32>
    %26 = stablehlo.convert %25 : (tensor<2xi32>) -> tensor<2xf32>
    %27 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %28 = stablehlo.divide %26, %27 : tensor<2xf32>
    %29 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %30 = stablehlo.power %29, %28 : tensor<2xf32>
    %31 = stablehlo.convert %20 : (tensor<8x1xi32>) -> tensor<8x1xf32>
    %32 = stablehlo.broadcast_in_dim %30, dims = [1] : (tensor<2xf32>) -> tensor<1x2xf32>
    %33 = stablehlo.broadcast_in_dim %31, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x2xf32>
    %34 = stablehlo.broadcast_in_dim %32, dims = [0, 1] : (tensor<1x2xf32>) -> tensor<8x2xf32>
    %35 = stablehlo.divide %33, %34 : tensor<8x2xf32>
    %36 = stablehlo.cosine %35 : tensor<8x2xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 2] : (tensor<8x2xf32>) -> tensor<8x1x2xf32>
    %38 = stablehlo.sine %35 : tensor<8x2xf32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0, 2] : (tensor<8x2xf32>) -> tensor<8x1x2xf32>
    %40 = stablehlo.slice %18 [0:2, 0:8, 0:4, 0:4:2] : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x2xf32>
    %41 = stablehlo.slice %18 [0:2, 0:8, 0:4, 1:4:2] : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x2xf32>
    %42 = stablehlo.broadcast_in_dim %37, dims = [1, 2, 3] : (tensor<8x1x2xf32>) -> tensor<1x8x1x2xf32>
    %43 = stablehlo.broadcast_in_dim %42, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x4x2xf32>
    %44 = stablehlo.multiply %40, %43 : tensor<2x8x4x2xf32>
    %45 = stablehlo.broadcast_in_dim %39, dims = [1, 2, 3] : (tensor<8x1x2xf32>) -> tensor<1x8x1x2xf32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x4x2xf32>
    %47 = stablehlo.multiply %41, %46 : tensor<2x8x4x2xf32>
    %48 = stablehlo.subtract %44, %47 : tensor<2x8x4x2xf32>
    %49 = stablehlo.broadcast_in_dim %39, dims = [1, 2, 3] : (tensor<8x1x2xf32>) -> tensor<1x8x1x2xf32>
    %50 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x4x2xf32>
    %51 = stablehlo.multiply %40, %50 : tensor<2x8x4x2xf32>
    %52 = stablehlo.broadcast_in_dim %37, dims = [1, 2, 3] : (tensor<8x1x2xf32>) -> tensor<1x8x1x2xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x4x2xf32>
    %54 = stablehlo.multiply %41, %53 : tensor<2x8x4x2xf32>
    %55 = stablehlo.add %51, %54 : tensor<2x8x4x2xf32>
    %56 = stablehlo.broadcast_in_dim %48, dims = [0, 1, 2, 3] : (tensor<2x8x4x2xf32>) -> tensor<2x8x4x2x1xf32>
    %57 = stablehlo.broadcast_in_dim %55, dims = [0, 1, 2, 3] : (tensor<2x8x4x2xf32>) -> tensor<2x8x4x2x1xf32>
    %58 = stablehlo.concatenate %56, %57, dim = 4 : (tensor<2x8x4x2x1xf32>, tensor<2x8x4x2x1xf32>) -> tensor<2x8x4x2x2xf32>
    %59 = stablehlo.reshape %58 : (tensor<2x8x4x2x2xf32>) -> tensor<2x8x4x4xf32>
    %60 = stablehlo.dot_general %16, %arg4, contracting_dims = [2] x [0] : (tensor<2x8x16xf32>, tensor<16x8xf32>) -> tensor<2x8x8xf32>
    %61 = stablehlo.reshape %60 : (tensor<2x8x8xf32>) -> tensor<2x8x2x4xf32>
    %62 = stablehlo.iota dim = 0 : tensor<8xi32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %64 = stablehlo.iota dim = 0 : tensor<2xi32>
    %65 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %66 = stablehlo.multiply %65, %64 : tensor<2xi32>
    %67 = stablehlo.broadcast_in_dim %c_13, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %68 = stablehlo.add %67, %66 : tensor<2xi32>
    %69 = stablehlo.convert %68 : (tensor<2xi32>) -> tensor<2xf32>
    %70 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %71 = stablehlo.divide %69, %70 : tensor<2xf32>
    %72 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %73 = stablehlo.power %72, %71 : tensor<2xf32>
    %74 = stablehlo.convert %63 : (tensor<8x1xi32>) -> tensor<8x1xf32>
    %75 = stablehlo.broadcast_in_dim %73, dims = [1] : (tensor<2xf32>) -> tensor<1x2xf32>
    %76 = stablehlo.broadcast_in_dim %74, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x2xf32>
    %77 = stablehlo.broadcast_in_dim %75, dims = [0, 1] : (tensor<1x2xf32>) -> tensor<8x2xf32>
    %78 = stablehlo.divide %76, %77 : tensor<8x2xf32>
    %79 = stablehlo.cosine %78 : tensor<8x2xf32>
    %80 = stablehlo.broadcast_in_dim %79, dims = [0, 2] : (tensor<8x2xf32>) -> tensor<8x1x2xf32>
    %81 = stablehlo.sine %78 : tensor<8x2xf32>
    %82 = stablehlo.broadcast_in_dim %81, dims = [0, 2] : (tensor<8x2xf32>) -> tensor<8x1x2xf32>
    %83 = stablehlo.slice %61 [0:2, 0:8, 0:2, 0:4:2] : (tensor<2x8x2x4xf32>) -> tensor<2x8x2x2xf32>
    %84 = stablehlo.slice %61 [0:2, 0:8, 0:2, 1:4:2] : (tensor<2x8x2x4xf32>) -> tensor<2x8x2x2xf32>
    %85 = stablehlo.broadcast_in_dim %80, dims = [1, 2, 3] : (tensor<8x1x2xf32>) -> tensor<1x8x1x2xf32>
    %86 = stablehlo.broadcast_in_dim %85, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x2x2xf32>
    %87 = stablehlo.multiply %83, %86 : tensor<2x8x2x2xf32>
    %88 = stablehlo.broadcast_in_dim %82, dims = [1, 2, 3] : (tensor<8x1x2xf32>) -> tensor<1x8x1x2xf32>
    %89 = stablehlo.broadcast_in_dim %88, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x2x2xf32>
    %90 = stablehlo.multiply %84, %89 : tensor<2x8x2x2xf32>
    %91 = stablehlo.subtract %87, %90 : tensor<2x8x2x2xf32>
    %92 = stablehlo.broadcast_in_dim %82, dims = [1, 2, 3] : (tensor<8x1x2xf32>) -> tensor<1x8x1x2xf32>
    %93 = stablehlo.broadcast_in_dim %92, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x2x2xf32>
    %94 = stablehlo.multiply %83, %93 : tensor<2x8x2x2xf32>
    %95 = stablehlo.broadcast_in_dim %80, dims = [1, 2, 3] : (tensor<8x1x2xf32>) -> tensor<1x8x1x2xf32>
    %96 = stablehlo.broadcast_in_dim %95, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x2x2xf32>
    %97 = stablehlo.multiply %84, %96 : tensor<2x8x2x2xf32>
    %98 = stablehlo.add %94, %97 : tensor<2x8x2x2xf32>
    %99 = stablehlo.broadcast_in_dim %91, dims = [0, 1, 2, 3] : (tensor<2x8x2x2xf32>) -> tensor<2x8x2x2x1xf32>
    %100 = stablehlo.broadcast_in_dim %98, dims = [0, 1, 2, 3] : (tensor<2x8x2x2xf32>) -> tensor<2x8x2x2x1xf32>
    %101 = stablehlo.concatenate %99, %100, dim = 4 : (tensor<2x8x2x2x1xf32>, tensor<2x8x2x2x1xf32>) -> tensor<2x8x2x2x2xf32>
    %102 = stablehlo.reshape %101 : (tensor<2x8x2x2x2xf32>) -> tensor<2x8x2x4xf32>
    %103 = stablehlo.dot_general %16, %arg9, contracting_dims = [2] x [0] : (tensor<2x8x16xf32>, tensor<16x8xf32>) -> tensor<2x8x8xf32>
    %104 = stablehlo.reshape %103 : (tensor<2x8x8xf32>) -> tensor<2x8x2x4xf32>
    %105 = stablehlo.reshape %59 : (tensor<2x8x4x4xf32>) -> tensor<2x8x2x2x4xf32>
    %106 = stablehlo.dot_general %105, %102, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3] : (tensor<2x8x2x2x4xf32>, tensor<2x8x2x4xf32>) -> tensor<2x2x8x2x8xf32>
    %107 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<2x2x8x2x8xf32>
    %108 = stablehlo.multiply %106, %107 : tensor<2x2x8x2x8xf32>
    %109 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i1>) -> tensor<2x2x8x8xi1>
    %110 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %111 = call @tril(%110) : (tensor<8x8xi1>) -> tensor<8x8xi1>
    %112 = stablehlo.broadcast_in_dim %111, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<1x1x8x8xi1>
    %113 = stablehlo.broadcast_in_dim %112, dims = [0, 1, 2, 3] : (tensor<1x1x8x8xi1>) -> tensor<2x2x8x8xi1>
    %114 = stablehlo.and %109, %113 : tensor<2x2x8x8xi1>
    %115:2 = call @_where_0(%114, %108, %cst_8) : (tensor<2x2x8x8xi1>, tensor<2x2x8x2x8xf32>, tensor<f32>) -> (tensor<2x2x2x8x8xf32>, tensor<2x2x2x8x8xi1>)
    %116 = stablehlo.reduce(%115#0 init: %cst_7) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x2x8x8xf32>, tensor<f32>) -> tensor<2x2x2x8xf32>
    %117 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<2x2x2x8xf32>
    %118 = stablehlo.maximum %117, %116 : tensor<2x2x2x8xf32>
    %119 = stablehlo.broadcast_in_dim %118, dims = [0, 1, 2, 3] : (tensor<2x2x2x8xf32>) -> tensor<2x2x2x8x1xf32>
    %120 = stablehlo.broadcast_in_dim %119, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x8x1xf32>) -> tensor<2x2x2x8x8xf32>
    %121 = stablehlo.subtract %115#0, %120 : tensor<2x2x2x8x8xf32>
    %122 = stablehlo.exponential %121 : tensor<2x2x2x8x8xf32>
    %123 = stablehlo.reduce(%122 init: %cst_18) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x8x8xf32>, tensor<f32>) -> tensor<2x2x2x8xf32>
    %124 = stablehlo.broadcast_in_dim %123, dims = [0, 1, 2, 3] : (tensor<2x2x2x8xf32>) -> tensor<2x2x2x8x1xf32>
    %125 = stablehlo.broadcast_in_dim %124, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x8x1xf32>) -> tensor<2x2x2x8x8xf32>
    %126 = stablehlo.divide %122, %125 : tensor<2x2x2x8x8xf32>
    %127 = stablehlo.multiply %124, %124 : tensor<2x2x2x8x1xf32>
    %128 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x2x2x8x1xf32>
    %129 = stablehlo.divide %128, %127 : tensor<2x2x2x8x1xf32>
    %130 = stablehlo.dot_general %104, %126, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4] : (tensor<2x8x2x4xf32>, tensor<2x2x2x8x8xf32>) -> tensor<2x2x4x2x8xf32>
    %131 = stablehlo.transpose %130, dims = [3, 0, 4, 1, 2] : (tensor<2x2x4x2x8xf32>) -> tensor<2x2x8x2x4xf32>
    %132 = stablehlo.transpose %131, dims = [1, 2, 3, 0, 4] : (tensor<2x2x8x2x4xf32>) -> tensor<2x8x2x2x4xf32>
    %133 = stablehlo.reshape %132 : (tensor<2x8x2x2x4xf32>) -> tensor<2x8x4x4xf32>
    %134 = stablehlo.reshape %133 : (tensor<2x8x4x4xf32>) -> tensor<2x8x16xf32>
    %135 = stablehlo.dot_general %134, %arg5, contracting_dims = [2] x [0] : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
    %136 = stablehlo.add %0#0, %135 : tensor<2x8x16xf32>
    %137 = stablehlo.multiply %136, %136 : tensor<2x8x16xf32>
    %138 = stablehlo.reduce(%137 init: %cst_18) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %139 = stablehlo.broadcast_in_dim %138, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %140 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %141 = stablehlo.divide %139, %140 : tensor<2x8x1xf32>
    %142 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %143 = stablehlo.add %141, %142 : tensor<2x8x1xf32>
    %144 = stablehlo.rsqrt %143 : tensor<2x8x1xf32>
    %145 = stablehlo.divide %144, %143 : tensor<2x8x1xf32>
    %146 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %147 = stablehlo.multiply %146, %145 : tensor<2x8x1xf32>
    %148 = stablehlo.broadcast_in_dim %144, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %149 = stablehlo.multiply %136, %148 : tensor<2x8x16xf32>
    %150 = stablehlo.broadcast_in_dim %arg7, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %151 = stablehlo.broadcast_in_dim %150, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %152 = stablehlo.multiply %149, %151 : tensor<2x8x16xf32>
    %153 = stablehlo.dot_general %152, %arg2, contracting_dims = [2] x [0] : (tensor<2x8x16xf32>, tensor<16x24xf32>) -> tensor<2x8x24xf32>
    %154:3 = call @silu(%153) : (tensor<2x8x24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>)
    %155 = stablehlo.dot_general %152, %arg8, contracting_dims = [2] x [0] : (tensor<2x8x16xf32>, tensor<16x24xf32>) -> tensor<2x8x24xf32>
    %156 = stablehlo.multiply %154#0, %155 : tensor<2x8x24xf32>
    %157 = stablehlo.dot_general %156, %arg0, contracting_dims = [2] x [0] : (tensor<2x8x24xf32>, tensor<24x16xf32>) -> tensor<2x8x16xf32>
    %158 = stablehlo.add %136, %157 : tensor<2x8x16xf32>
    %159 = stablehlo.dot_general %158, %arg3, contracting_dims = [2] x [0] : (tensor<2x8x16xf32>, tensor<16x23xf32>) -> tensor<2x8x23xf32>
    %160 = stablehlo.broadcast_in_dim %arg22, dims = [0, 1] : (tensor<2x8xi32>) -> tensor<2x8x1xi32>
    %161:2 = call @take_along_axis(%159, %160) : (tensor<2x8x23xf32>, tensor<2x8x1xi32>) -> (tensor<2x8x1xf32>, tensor<2x8x1x1xi32>)
    %162:2 = call @_take_1(%161#0, %c_13) : (tensor<2x8x1xf32>, tensor<i32>) -> (tensor<2x8xf32>, tensor<1xi32>)
    %163 = stablehlo.reduce(%159 init: %cst_7) applies stablehlo.maximum across dimensions = [2] : (tensor<2x8x23xf32>, tensor<f32>) -> tensor<2x8xf32>
    %164 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %165 = stablehlo.maximum %164, %163 : tensor<2x8xf32>
    %166 = stablehlo.is_finite %165 : (tensor<2x8xf32>) -> tensor<2x8xi1>
    %167 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %168 = stablehlo.select %166, %165, %167 : tensor<2x8xi1>, tensor<2x8xf32>
    %169 = stablehlo.broadcast_in_dim %168, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %170 = stablehlo.broadcast_in_dim %169, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x23xf32>
    %171 = stablehlo.subtract %159, %170 : tensor<2x8x23xf32>
    %172 = stablehlo.exponential %171 : tensor<2x8x23xf32>
    %173 = stablehlo.reduce(%172 init: %cst_18) applies stablehlo.add across dimensions = [2] : (tensor<2x8x23xf32>, tensor<f32>) -> tensor<2x8xf32>
    %174 = stablehlo.abs %173 : tensor<2x8xf32>
    %175 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %176 = stablehlo.compare GE, %173, %175, FLOAT : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xi1>
    %177 = stablehlo.log %174 : tensor<2x8xf32>
    %178 = stablehlo.add %177, %168 : tensor<2x8xf32>
    %179 = stablehlo.subtract %178, %162#0 : tensor<2x8xf32>
    %180 = stablehlo.reduce(%179 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<f32>
    %181 = stablehlo.divide %180, %cst_17 : tensor<f32>
    %182 = stablehlo.divide %cst_6, %cst_17 : tensor<f32>
    %183 = stablehlo.broadcast_in_dim %182, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %184 = stablehlo.negate %183 : tensor<2x8xf32>
    %185 = stablehlo.divide %183, %174 : tensor<2x8xf32>
    %186 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %187 = stablehlo.select %176, %186, %185 : tensor<2x8xi1>, tensor<2x8xf32>
    %188 = stablehlo.select %176, %185, %186 : tensor<2x8xi1>, tensor<2x8xf32>
    %189 = stablehlo.negate %187 : tensor<2x8xf32>
    %190 = stablehlo.add %188, %189 : tensor<2x8xf32>
    %191 = stablehlo.broadcast_in_dim %190, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x23xf32>
    %192 = stablehlo.multiply %191, %172 : tensor<2x8x23xf32>
    %193 = call @_take_3(%162#1, %184) : (tensor<1xi32>, tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %194 = call @take_along_axis_4(%161#1, %193) : (tensor<2x8x1x1xi32>, tensor<2x8x1xf32>) -> tensor<2x8x23xf32>
    %195 = stablehlo.add %192, %194 : tensor<2x8x23xf32>
    %196 = stablehlo.dot_general %195, %158, contracting_dims = [0, 1] x [0, 1] : (tensor<2x8x23xf32>, tensor<2x8x16xf32>) -> tensor<23x16xf32>
    %197 = stablehlo.transpose %196, dims = [1, 0] : (tensor<23x16xf32>) -> tensor<16x23xf32>
    %198 = stablehlo.dot_general %195, %arg3, contracting_dims = [2] x [1] : (tensor<2x8x23xf32>, tensor<16x23xf32>) -> tensor<2x8x16xf32>
    %199 = stablehlo.dot_general %198, %156, contracting_dims = [0, 1] x [0, 1] : (tensor<2x8x16xf32>, tensor<2x8x24xf32>) -> tensor<16x24xf32>
    %200 = stablehlo.transpose %199, dims = [1, 0] : (tensor<16x24xf32>) -> tensor<24x16xf32>
    %201 = stablehlo.dot_general %198, %arg0, contracting_dims = [2] x [1] : (tensor<2x8x16xf32>, tensor<24x16xf32>) -> tensor<2x8x24xf32>
    %202 = stablehlo.multiply %154#0, %201 : tensor<2x8x24xf32>
    %203 = stablehlo.multiply %201, %155 : tensor<2x8x24xf32>
    %204 = stablehlo.dot_general %202, %152, contracting_dims = [0, 1] x [0, 1] : (tensor<2x8x24xf32>, tensor<2x8x16xf32>) -> tensor<24x16xf32>
    %205 = stablehlo.transpose %204, dims = [1, 0] : (tensor<24x16xf32>) -> tensor<16x24xf32>
    %206 = stablehlo.dot_general %202, %arg8, contracting_dims = [2] x [1] : (tensor<2x8x24xf32>, tensor<16x24xf32>) -> tensor<2x8x16xf32>
    %207 = call @silu_5(%154#1, %154#2, %153, %203) : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
    %208 = stablehlo.dot_general %207, %152, contracting_dims = [0, 1] x [0, 1] : (tensor<2x8x24xf32>, tensor<2x8x16xf32>) -> tensor<24x16xf32>
    %209 = stablehlo.transpose %208, dims = [1, 0] : (tensor<24x16xf32>) -> tensor<16x24xf32>
    %210 = stablehlo.dot_general %207, %arg2, contracting_dims = [2] x [1] : (tensor<2x8x24xf32>, tensor<16x24xf32>) -> tensor<2x8x16xf32>
    %211 = stablehlo.add %206, %210 : tensor<2x8x16xf32>
    %212 = stablehlo.multiply %149, %211 : tensor<2x8x16xf32>
    %213 = stablehlo.reduce(%212 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %214 = stablehlo.reshape %213 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %215 = stablehlo.broadcast_in_dim %150, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %216 = stablehlo.multiply %211, %215 : tensor<2x8x16xf32>
    %217 = stablehlo.reduce(%214 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %218 = stablehlo.multiply %136, %216 : tensor<2x8x16xf32>
    %219 = stablehlo.reduce(%218 init: %cst_18) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %220 = stablehlo.reshape %219 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %221 = stablehlo.broadcast_in_dim %144, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %222 = stablehlo.multiply %216, %221 : tensor<2x8x16xf32>
    %223 = stablehlo.add %198, %222 : tensor<2x8x16xf32>
    %224 = stablehlo.multiply %220, %147 : tensor<2x8x1xf32>
    %225 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %226 = stablehlo.divide %224, %225 : tensor<2x8x1xf32>
    %227 = stablehlo.reduce(%226 init: %cst_18) applies stablehlo.add across dimensions = [2] : (tensor<2x8x1xf32>, tensor<f32>) -> tensor<2x8xf32>
    %228 = stablehlo.broadcast_in_dim %227, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x16xf32>
    %229 = stablehlo.multiply %136, %228 : tensor<2x8x16xf32>
    %230 = stablehlo.add %223, %229 : tensor<2x8x16xf32>
    %231 = stablehlo.multiply %228, %136 : tensor<2x8x16xf32>
    %232 = stablehlo.add %230, %231 : tensor<2x8x16xf32>
    %233 = stablehlo.dot_general %232, %134, contracting_dims = [0, 1] x [0, 1] : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<16x16xf32>
    %234 = stablehlo.transpose %233, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %235 = stablehlo.dot_general %232, %arg5, contracting_dims = [2] x [1] : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
    %236 = stablehlo.reshape %235 : (tensor<2x8x16xf32>) -> tensor<2x8x4x4xf32>
    %237 = stablehlo.reshape %236 : (tensor<2x8x4x4xf32>) -> tensor<2x8x2x2x4xf32>
    %238 = stablehlo.transpose %237, dims = [3, 0, 1, 2, 4] : (tensor<2x8x2x2x4xf32>) -> tensor<2x2x8x2x4xf32>
    %239 = stablehlo.transpose %238, dims = [1, 3, 4, 0, 2] : (tensor<2x2x8x2x4xf32>) -> tensor<2x2x4x2x8xf32>
    %240 = stablehlo.dot_general %239, %104, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3] : (tensor<2x2x4x2x8xf32>, tensor<2x8x2x4xf32>) -> tensor<2x2x2x8x8xf32>
    %241 = stablehlo.transpose %240, dims = [2, 0, 1, 3, 4] : (tensor<2x2x2x8x8xf32>) -> tensor<2x2x2x8x8xf32>
    %242 = stablehlo.dot_general %239, %126, batching_dims = [0, 1] x [1, 2], contracting_dims = [3, 4] x [0, 3] : (tensor<2x2x4x2x8xf32>, tensor<2x2x2x8x8xf32>) -> tensor<2x2x4x8xf32>
    %243 = stablehlo.transpose %242, dims = [0, 3, 1, 2] : (tensor<2x2x4x8xf32>) -> tensor<2x8x2x4xf32>
    %244 = stablehlo.broadcast_in_dim %129, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x8x1xf32>) -> tensor<2x2x2x8x8xf32>
    %245 = stablehlo.multiply %241, %244 : tensor<2x2x2x8x8xf32>
    %246 = stablehlo.multiply %245, %122 : tensor<2x2x2x8x8xf32>
    %247 = stablehlo.reduce(%246 init: %cst_18) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x8x8xf32>, tensor<f32>) -> tensor<2x2x2x8xf32>
    %248 = stablehlo.reshape %247 : (tensor<2x2x2x8xf32>) -> tensor<2x2x2x8x1xf32>
    %249 = stablehlo.negate %248 : tensor<2x2x2x8x1xf32>
    %250 = stablehlo.broadcast_in_dim %124, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x8x1xf32>) -> tensor<2x2x2x8x8xf32>
    %251 = stablehlo.divide %241, %250 : tensor<2x2x2x8x8xf32>
    %252 = stablehlo.reduce(%249 init: %cst_18) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x8x1xf32>, tensor<f32>) -> tensor<2x2x2x8xf32>
    %253 = stablehlo.broadcast_in_dim %252, dims = [0, 1, 2, 3] : (tensor<2x2x2x8xf32>) -> tensor<2x2x2x8x8xf32>
    %254 = stablehlo.add %251, %253 : tensor<2x2x2x8x8xf32>
    %255 = stablehlo.multiply %254, %122 : tensor<2x2x2x8x8xf32>
    %256 = call @_where_6(%115#1, %255) : (tensor<2x2x2x8x8xi1>, tensor<2x2x2x8x8xf32>) -> tensor<2x2x8x2x8xf32>
    %257 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<2x2x8x2x8xf32>
    %258 = stablehlo.multiply %256, %257 : tensor<2x2x8x2x8xf32>
    %259 = stablehlo.dot_general %258, %105, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3] : (tensor<2x2x8x2x8xf32>, tensor<2x8x2x2x4xf32>) -> tensor<2x2x8x4xf32>
    %260 = stablehlo.transpose %259, dims = [0, 2, 1, 3] : (tensor<2x2x8x4xf32>) -> tensor<2x8x2x4xf32>
    %261 = stablehlo.dot_general %258, %102, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1] : (tensor<2x2x8x2x8xf32>, tensor<2x8x2x4xf32>) -> tensor<2x2x8x2x4xf32>
    %262 = stablehlo.transpose %261, dims = [0, 2, 1, 3, 4] : (tensor<2x2x8x2x4xf32>) -> tensor<2x8x2x2x4xf32>
    %263 = stablehlo.reshape %262 : (tensor<2x8x2x2x4xf32>) -> tensor<2x8x4x4xf32>
    %264 = stablehlo.reshape %243 : (tensor<2x8x2x4xf32>) -> tensor<2x8x8xf32>
    %265 = stablehlo.dot_general %264, %16, contracting_dims = [0, 1] x [0, 1] : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<8x16xf32>
    %266 = stablehlo.transpose %265, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    %267 = stablehlo.dot_general %264, %arg9, contracting_dims = [2] x [1] : (tensor<2x8x8xf32>, tensor<16x8xf32>) -> tensor<2x8x16xf32>
    %268 = stablehlo.reshape %260 : (tensor<2x8x2x4xf32>) -> tensor<2x8x2x2x2xf32>
    %269 = stablehlo.slice %268 [0:2, 0:8, 0:2, 0:2, 0:1] : (tensor<2x8x2x2x2xf32>) -> tensor<2x8x2x2x1xf32>
    %270 = stablehlo.reshape %269 : (tensor<2x8x2x2x1xf32>) -> tensor<2x8x2x2xf32>
    %271 = stablehlo.slice %268 [0:2, 0:8, 0:2, 0:2, 1:2] : (tensor<2x8x2x2x2xf32>) -> tensor<2x8x2x2x1xf32>
    %272 = stablehlo.reshape %271 : (tensor<2x8x2x2x1xf32>) -> tensor<2x8x2x2xf32>
    %273 = stablehlo.broadcast_in_dim %95, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x2x2xf32>
    %274 = stablehlo.multiply %272, %273 : tensor<2x8x2x2xf32>
    %275 = stablehlo.broadcast_in_dim %92, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x2x2xf32>
    %276 = stablehlo.multiply %272, %275 : tensor<2x8x2x2xf32>
    %277 = stablehlo.negate %270 : tensor<2x8x2x2xf32>
    %278 = stablehlo.broadcast_in_dim %88, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x2x2xf32>
    %279 = stablehlo.multiply %277, %278 : tensor<2x8x2x2xf32>
    %280 = stablehlo.add %274, %279 : tensor<2x8x2x2xf32>
    %281 = stablehlo.broadcast_in_dim %85, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x2x2xf32>
    %282 = stablehlo.multiply %270, %281 : tensor<2x8x2x2xf32>
    %283 = stablehlo.add %276, %282 : tensor<2x8x2x2xf32>
    %284 = stablehlo.pad %280, %cst_18, low = [0, 0, 0, 1], high = [0, 0, 0, 0], interior = [0, 0, 0, 1] : (tensor<2x8x2x2xf32>, tensor<f32>) -> tensor<2x8x2x4xf32>
    %285 = stablehlo.pad %283, %cst_18, low = [0, 0, 0, 0], high = [0, 0, 0, 1], interior = [0, 0, 0, 1] : (tensor<2x8x2x2xf32>, tensor<f32>) -> tensor<2x8x2x4xf32>
    %286 = stablehlo.add %284, %285 : tensor<2x8x2x4xf32>
    %287 = stablehlo.reshape %286 : (tensor<2x8x2x4xf32>) -> tensor<2x8x8xf32>
    %288 = stablehlo.dot_general %287, %16, contracting_dims = [0, 1] x [0, 1] : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<8x16xf32>
    %289 = stablehlo.transpose %288, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    %290 = stablehlo.dot_general %287, %arg4, contracting_dims = [2] x [1] : (tensor<2x8x8xf32>, tensor<16x8xf32>) -> tensor<2x8x16xf32>
    %291 = stablehlo.add %267, %290 : tensor<2x8x16xf32>
    %292 = stablehlo.reshape %263 : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x2x2xf32>
    %293 = stablehlo.slice %292 [0:2, 0:8, 0:4, 0:2, 0:1] : (tensor<2x8x4x2x2xf32>) -> tensor<2x8x4x2x1xf32>
    %294 = stablehlo.reshape %293 : (tensor<2x8x4x2x1xf32>) -> tensor<2x8x4x2xf32>
    %295 = stablehlo.slice %292 [0:2, 0:8, 0:4, 0:2, 1:2] : (tensor<2x8x4x2x2xf32>) -> tensor<2x8x4x2x1xf32>
    %296 = stablehlo.reshape %295 : (tensor<2x8x4x2x1xf32>) -> tensor<2x8x4x2xf32>
    %297 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x4x2xf32>
    %298 = stablehlo.multiply %296, %297 : tensor<2x8x4x2xf32>
    %299 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x4x2xf32>
    %300 = stablehlo.multiply %296, %299 : tensor<2x8x4x2xf32>
    %301 = stablehlo.negate %294 : tensor<2x8x4x2xf32>
    %302 = stablehlo.broadcast_in_dim %45, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x4x2xf32>
    %303 = stablehlo.multiply %301, %302 : tensor<2x8x4x2xf32>
    %304 = stablehlo.add %298, %303 : tensor<2x8x4x2xf32>
    %305 = stablehlo.broadcast_in_dim %42, dims = [0, 1, 2, 3] : (tensor<1x8x1x2xf32>) -> tensor<2x8x4x2xf32>
    %306 = stablehlo.multiply %294, %305 : tensor<2x8x4x2xf32>
    %307 = stablehlo.add %300, %306 : tensor<2x8x4x2xf32>
    %308 = stablehlo.pad %304, %cst_18, low = [0, 0, 0, 1], high = [0, 0, 0, 0], interior = [0, 0, 0, 1] : (tensor<2x8x4x2xf32>, tensor<f32>) -> tensor<2x8x4x4xf32>
    %309 = stablehlo.pad %307, %cst_18, low = [0, 0, 0, 0], high = [0, 0, 0, 1], interior = [0, 0, 0, 1] : (tensor<2x8x4x2xf32>, tensor<f32>) -> tensor<2x8x4x4xf32>
    %310 = stablehlo.add %308, %309 : tensor<2x8x4x4xf32>
    %311 = stablehlo.reshape %310 : (tensor<2x8x4x4xf32>) -> tensor<2x8x16xf32>
    %312 = stablehlo.dot_general %311, %16, contracting_dims = [0, 1] x [0, 1] : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<16x16xf32>
    %313 = stablehlo.transpose %312, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %314 = stablehlo.dot_general %311, %arg6, contracting_dims = [2] x [1] : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
    %315 = stablehlo.add %291, %314 : tensor<2x8x16xf32>
    %316 = stablehlo.multiply %13, %315 : tensor<2x8x16xf32>
    %317 = stablehlo.reduce(%316 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %318 = stablehlo.reshape %317 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %319 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %320 = stablehlo.multiply %315, %319 : tensor<2x8x16xf32>
    %321 = stablehlo.reduce(%318 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %322 = stablehlo.add %217, %321 : tensor<16xf32>
    %323 = stablehlo.multiply %0#0, %320 : tensor<2x8x16xf32>
    %324 = stablehlo.reduce(%323 init: %cst_18) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %325 = stablehlo.reshape %324 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %326 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %327 = stablehlo.multiply %320, %326 : tensor<2x8x16xf32>
    %328 = stablehlo.add %232, %327 : tensor<2x8x16xf32>
    %329 = stablehlo.multiply %325, %11 : tensor<2x8x1xf32>
    %330 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %331 = stablehlo.divide %329, %330 : tensor<2x8x1xf32>
    %332 = stablehlo.reduce(%331 init: %cst_18) applies stablehlo.add across dimensions = [2] : (tensor<2x8x1xf32>, tensor<f32>) -> tensor<2x8xf32>
    %333 = stablehlo.broadcast_in_dim %332, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x16xf32>
    %334 = stablehlo.multiply %0#0, %333 : tensor<2x8x16xf32>
    %335 = stablehlo.add %328, %334 : tensor<2x8x16xf32>
    %336 = stablehlo.multiply %333, %0#0 : tensor<2x8x16xf32>
    %337 = stablehlo.add %335, %336 : tensor<2x8x16xf32>
    %338 = call @_take_7(%0#1, %337) : (tensor<2x8x1xi32>, tensor<2x8x16xf32>) -> tensor<23x16xf32>
    %339 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<24x16xf32>
    %340 = stablehlo.multiply %339, %200 : tensor<24x16xf32>
    %341 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<24x16xf32>
    %342 = stablehlo.multiply %341, %arg11 : tensor<24x16xf32>
    %343 = stablehlo.add %340, %342 : tensor<24x16xf32>
    %344 = stablehlo.sign %343 : tensor<24x16xf32>
    %345 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %346 = stablehlo.multiply %345, %338 : tensor<23x16xf32>
    %347 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %348 = stablehlo.multiply %347, %arg12 : tensor<23x16xf32>
    %349 = stablehlo.add %346, %348 : tensor<23x16xf32>
    %350 = stablehlo.sign %349 : tensor<23x16xf32>
    %351 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %352 = stablehlo.multiply %351, %209 : tensor<16x24xf32>
    %353 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %354 = stablehlo.multiply %353, %arg13 : tensor<16x24xf32>
    %355 = stablehlo.add %352, %354 : tensor<16x24xf32>
    %356 = stablehlo.sign %355 : tensor<16x24xf32>
    %357 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x23xf32>
    %358 = stablehlo.multiply %357, %197 : tensor<16x23xf32>
    %359 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16x23xf32>
    %360 = stablehlo.multiply %359, %arg14 : tensor<16x23xf32>
    %361 = stablehlo.add %358, %360 : tensor<16x23xf32>
    %362 = stablehlo.sign %361 : tensor<16x23xf32>
    %363 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %364 = stablehlo.multiply %363, %289 : tensor<16x8xf32>
    %365 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %366 = stablehlo.multiply %365, %arg15 : tensor<16x8xf32>
    %367 = stablehlo.add %364, %366 : tensor<16x8xf32>
    %368 = stablehlo.sign %367 : tensor<16x8xf32>
    %369 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %370 = stablehlo.multiply %369, %234 : tensor<16x16xf32>
    %371 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %372 = stablehlo.multiply %371, %arg16 : tensor<16x16xf32>
    %373 = stablehlo.add %370, %372 : tensor<16x16xf32>
    %374 = stablehlo.sign %373 : tensor<16x16xf32>
    %375 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %376 = stablehlo.multiply %375, %313 : tensor<16x16xf32>
    %377 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %378 = stablehlo.multiply %377, %arg17 : tensor<16x16xf32>
    %379 = stablehlo.add %376, %378 : tensor<16x16xf32>
    %380 = stablehlo.sign %379 : tensor<16x16xf32>
    %381 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %382 = stablehlo.multiply %381, %322 : tensor<16xf32>
    %383 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %384 = stablehlo.multiply %383, %arg18 : tensor<16xf32>
    %385 = stablehlo.add %382, %384 : tensor<16xf32>
    %386 = stablehlo.sign %385 : tensor<16xf32>
    %387 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %388 = stablehlo.multiply %387, %205 : tensor<16x24xf32>
    %389 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %390 = stablehlo.multiply %389, %arg19 : tensor<16x24xf32>
    %391 = stablehlo.add %388, %390 : tensor<16x24xf32>
    %392 = stablehlo.sign %391 : tensor<16x24xf32>
    %393 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %394 = stablehlo.multiply %393, %266 : tensor<16x8xf32>
    %395 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %396 = stablehlo.multiply %395, %arg20 : tensor<16x8xf32>
    %397 = stablehlo.add %394, %396 : tensor<16x8xf32>
    %398 = stablehlo.sign %397 : tensor<16x8xf32>
    %399 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<24x16xf32>
    %400 = stablehlo.multiply %399, %200 : tensor<24x16xf32>
    %401 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<24x16xf32>
    %402 = stablehlo.multiply %401, %arg11 : tensor<24x16xf32>
    %403 = stablehlo.add %400, %402 : tensor<24x16xf32>
    %404 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %405 = stablehlo.multiply %404, %338 : tensor<23x16xf32>
    %406 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %407 = stablehlo.multiply %406, %arg12 : tensor<23x16xf32>
    %408 = stablehlo.add %405, %407 : tensor<23x16xf32>
    %409 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %410 = stablehlo.multiply %409, %209 : tensor<16x24xf32>
    %411 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %412 = stablehlo.multiply %411, %arg13 : tensor<16x24xf32>
    %413 = stablehlo.add %410, %412 : tensor<16x24xf32>
    %414 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x23xf32>
    %415 = stablehlo.multiply %414, %197 : tensor<16x23xf32>
    %416 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x23xf32>
    %417 = stablehlo.multiply %416, %arg14 : tensor<16x23xf32>
    %418 = stablehlo.add %415, %417 : tensor<16x23xf32>
    %419 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %420 = stablehlo.multiply %419, %289 : tensor<16x8xf32>
    %421 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %422 = stablehlo.multiply %421, %arg15 : tensor<16x8xf32>
    %423 = stablehlo.add %420, %422 : tensor<16x8xf32>
    %424 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %425 = stablehlo.multiply %424, %234 : tensor<16x16xf32>
    %426 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %427 = stablehlo.multiply %426, %arg16 : tensor<16x16xf32>
    %428 = stablehlo.add %425, %427 : tensor<16x16xf32>
    %429 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %430 = stablehlo.multiply %429, %313 : tensor<16x16xf32>
    %431 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %432 = stablehlo.multiply %431, %arg17 : tensor<16x16xf32>
    %433 = stablehlo.add %430, %432 : tensor<16x16xf32>
    %434 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %435 = stablehlo.multiply %434, %322 : tensor<16xf32>
    %436 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %437 = stablehlo.multiply %436, %arg18 : tensor<16xf32>
    %438 = stablehlo.add %435, %437 : tensor<16xf32>
    %439 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %440 = stablehlo.multiply %439, %205 : tensor<16x24xf32>
    %441 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %442 = stablehlo.multiply %441, %arg19 : tensor<16x24xf32>
    %443 = stablehlo.add %440, %442 : tensor<16x24xf32>
    %444 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %445 = stablehlo.multiply %444, %266 : tensor<16x8xf32>
    %446 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %447 = stablehlo.multiply %446, %arg20 : tensor<16x8xf32>
    %448 = stablehlo.add %445, %447 : tensor<16x8xf32>
    %449 = stablehlo.compare LT, %arg10, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %450 = stablehlo.add %arg10, %c : tensor<i32>
    %451 = call @_where_8(%449, %450, %c_1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %452 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<24x16xf32>
    %453 = stablehlo.multiply %452, %arg0 : tensor<24x16xf32>
    %454 = stablehlo.add %344, %453 : tensor<24x16xf32>
    %455 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %456 = stablehlo.multiply %455, %arg1 : tensor<23x16xf32>
    %457 = stablehlo.add %350, %456 : tensor<23x16xf32>
    %458 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %459 = stablehlo.multiply %458, %arg2 : tensor<16x24xf32>
    %460 = stablehlo.add %356, %459 : tensor<16x24xf32>
    %461 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x23xf32>
    %462 = stablehlo.multiply %461, %arg3 : tensor<16x23xf32>
    %463 = stablehlo.add %362, %462 : tensor<16x23xf32>
    %464 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %465 = stablehlo.multiply %464, %arg4 : tensor<16x8xf32>
    %466 = stablehlo.add %368, %465 : tensor<16x8xf32>
    %467 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %468 = stablehlo.multiply %467, %arg5 : tensor<16x16xf32>
    %469 = stablehlo.add %374, %468 : tensor<16x16xf32>
    %470 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %471 = stablehlo.multiply %470, %arg6 : tensor<16x16xf32>
    %472 = stablehlo.add %380, %471 : tensor<16x16xf32>
    %473 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %474 = stablehlo.multiply %473, %arg7 : tensor<16xf32>
    %475 = stablehlo.add %386, %474 : tensor<16xf32>
    %476 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %477 = stablehlo.multiply %476, %arg8 : tensor<16x24xf32>
    %478 = stablehlo.add %392, %477 : tensor<16x24xf32>
    %479 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %480 = stablehlo.multiply %479, %arg9 : tensor<16x8xf32>
    %481 = stablehlo.add %398, %480 : tensor<16x8xf32>
    %482 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<24x16xf32>
    %483 = stablehlo.multiply %482, %454 : tensor<24x16xf32>
    %484 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %485 = stablehlo.multiply %484, %457 : tensor<23x16xf32>
    %486 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %487 = stablehlo.multiply %486, %460 : tensor<16x24xf32>
    %488 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x23xf32>
    %489 = stablehlo.multiply %488, %463 : tensor<16x23xf32>
    %490 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %491 = stablehlo.multiply %490, %466 : tensor<16x8xf32>
    %492 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %493 = stablehlo.multiply %492, %469 : tensor<16x16xf32>
    %494 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %495 = stablehlo.multiply %494, %472 : tensor<16x16xf32>
    %496 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %497 = stablehlo.multiply %496, %475 : tensor<16xf32>
    %498 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x24xf32>
    %499 = stablehlo.multiply %498, %478 : tensor<16x24xf32>
    %500 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %501 = stablehlo.multiply %500, %481 : tensor<16x8xf32>
    %502 = stablehlo.add %arg0, %483 : tensor<24x16xf32>
    %503 = stablehlo.add %arg1, %485 : tensor<23x16xf32>
    %504 = stablehlo.add %arg2, %487 : tensor<16x24xf32>
    %505 = stablehlo.add %arg3, %489 : tensor<16x23xf32>
    %506 = stablehlo.add %arg4, %491 : tensor<16x8xf32>
    %507 = stablehlo.add %arg5, %493 : tensor<16x16xf32>
    %508 = stablehlo.add %arg6, %495 : tensor<16x16xf32>
    %509 = stablehlo.add %arg7, %497 : tensor<16xf32>
    %510 = stablehlo.add %arg8, %499 : tensor<16x24xf32>
    %511 = stablehlo.add %arg9, %501 : tensor<16x8xf32>
    return %502, %503, %504, %505, %506, %507, %508, %509, %510, %511, %451, %403, %408, %413, %418, %423, %428, %433, %438, %443, %448, %181 : tensor<24x16xf32>, tensor<23x16xf32>, tensor<16x24xf32>, tensor<16x23xf32>, tensor<16x8xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x24xf32>, tensor<16x8xf32>, tensor<i32>, tensor<24x16xf32>, tensor<23x16xf32>, tensor<16x24xf32>, tensor<16x23xf32>, tensor<16x8xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x24xf32>, tensor<16x8xf32>, tensor<f32>
  }
  func.func private @_take(%arg0: tensor<23x16xf32>, %arg1: tensor<2x8xi32>) -> (tensor<2x8x16xf32>, tensor<2x8x1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<22> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<23> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2x8xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<2x8xi32>, tensor<2x8xi32>) -> tensor<2x8xi1>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<2x8xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<2x8xi32>
    %4 = call @_where(%1, %3, %arg1) : (tensor<2x8xi1>, tensor<2x8xi32>, tensor<2x8xi32>) -> tensor<2x8xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x8xi32>) -> tensor<2x8x1xi32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2x8x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<2x8x1xi32>, tensor<2x8x1xi32>) -> tensor<2x8x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<2x8x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<2x8x1xi32>, tensor<2x8x1xi32>) -> tensor<2x8x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<2x8x1xi1>
    %12 = stablehlo.reduce(%11 init: %c) applies stablehlo.and across dimensions = [2] : (tensor<2x8x1xi1>, tensor<i1>) -> tensor<2x8xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 16>}> : (tensor<23x16xf32>, tensor<2x8x1xi32>) -> tensor<2x8x16xf32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<2x8xi1>) -> tensor<2x8x16xi1>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x16xf32>
    %16 = stablehlo.select %14, %13, %15 : tensor<2x8x16xi1>, tensor<2x8x16xf32>
    return %16, %5 : tensor<2x8x16xf32>, tensor<2x8x1xi32>
  }
  func.func private @_where(%arg0: tensor<2x8xi1>, %arg1: tensor<2x8xi32>, %arg2: tensor<2x8xi32>) -> tensor<2x8xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<2x8xi1>, tensor<2x8xi32>
    return %0 : tensor<2x8xi32>
  }
  func.func private @tril(%arg0: tensor<8x8xi1>) -> tensor<8x8xi1> {
    %c = stablehlo.constant dense<false> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %2 = stablehlo.add %0, %1 : tensor<8x8xi32>
    %3 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<8x8xi1>, tensor<8x8xi1>
    return %6 : tensor<8x8xi1>
  }
  func.func private @_where_0(%arg0: tensor<2x2x8x8xi1>, %arg1: tensor<2x2x8x2x8xf32>, %arg2: tensor<f32>) -> (tensor<2x2x2x8x8xf32>, tensor<2x2x2x8x8xi1>) {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x2x8x8xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2, 3, 4] : (tensor<2x2x8x8xi1>) -> tensor<2x2x2x8x8xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [1, 2, 3, 4] : (tensor<2x2x8x8xf32>) -> tensor<2x2x2x8x8xf32>
    %3 = stablehlo.transpose %arg1, dims = [3, 0, 1, 2, 4] : (tensor<2x2x8x2x8xf32>) -> tensor<2x2x2x8x8xf32>
    %4 = stablehlo.select %1, %3, %2 : tensor<2x2x2x8x8xi1>, tensor<2x2x2x8x8xf32>
    return %4, %1 : tensor<2x2x2x8x8xf32>, tensor<2x2x2x8x8xi1>
  }
  func.func private @silu(%arg0: tensor<2x8x24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.negate %arg0 : tensor<2x8x24xf32>
    %1 = stablehlo.exponential %0 : tensor<2x8x24xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x24xf32>
    %3 = stablehlo.add %2, %1 : tensor<2x8x24xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x24xf32>
    %5 = stablehlo.divide %4, %3 : tensor<2x8x24xf32>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x24xf32>
    %7 = stablehlo.subtract %6, %5 : tensor<2x8x24xf32>
    %8 = stablehlo.multiply %5, %7 : tensor<2x8x24xf32>
    %9 = stablehlo.multiply %arg0, %5 : tensor<2x8x24xf32>
    return %9, %8, %5 : tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<2x8x23xf32>, %arg1: tensor<2x8x1xi32>) -> (tensor<2x8x1xf32>, tensor<2x8x1x1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<22> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<23> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2x8x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<2x8x1xi32>, tensor<2x8x1xi32>) -> tensor<2x8x1xi1>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<2x8x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<2x8x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<2x8x1xi1>, tensor<2x8x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<2x8x1xi32>) -> tensor<2x8x1x1xi32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2x8x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<2x8x1x1xi32>, tensor<2x8x1x1xi32>) -> tensor<2x8x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<2x8x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<2x8x1x1xi32>, tensor<2x8x1x1xi32>) -> tensor<2x8x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<2x8x1x1xi1>
    %12 = stablehlo.reduce(%11 init: %c) applies stablehlo.and across dimensions = [3] : (tensor<2x8x1x1xi1>, tensor<i1>) -> tensor<2x8x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<2x8x23xf32>, tensor<2x8x1x1xi32>) -> tensor<2x8x1xf32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<2x8x1xi1>, tensor<2x8x1xf32>
    return %15, %5 : tensor<2x8x1xf32>, tensor<2x8x1x1xi32>
  }
  func.func private @_take_1(%arg0: tensor<2x8x1xf32>, %arg1: tensor<i32>) -> (tensor<2x8xf32>, tensor<1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = stablehlo.add %arg1, %c_1 : tensor<i32>
    %2 = call @_where_2(%0, %1, %arg1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.convert %3 : tensor<1xi32>
    %5 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %7 = stablehlo.compare LE, %4, %c_0, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %8 = stablehlo.and %6, %7 : tensor<1xi1>
    %9 = stablehlo.reduce(%8 init: %c) applies stablehlo.and across dimensions = [0] : (tensor<1xi1>, tensor<i1>) -> tensor<i1>
    %10 = "stablehlo.gather"(%arg0, %4) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], collapsed_slice_dims = [2], start_index_map = [2]>, slice_sizes = array<i64: 2, 8, 1>}> : (tensor<2x8x1xf32>, tensor<1xi32>) -> tensor<2x8xf32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<2x8xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %13 = stablehlo.select %11, %10, %12 : tensor<2x8xi1>, tensor<2x8xf32>
    return %13, %3 : tensor<2x8xf32>, tensor<1xi32>
  }
  func.func private @_where_2(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @_take_3(%arg0: tensor<1xi32>, %arg1: tensor<2x8xf32>) -> tensor<2x8x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2]>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<2x8x1xf32>, tensor<1xi32>, tensor<2x8xf32>) -> tensor<2x8x1xf32>
    return %1 : tensor<2x8x1xf32>
  }
  func.func private @take_along_axis_4(%arg0: tensor<2x8x1x1xi32>, %arg1: tensor<2x8x1xf32>) -> tensor<2x8x23xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x23xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<2x8x23xf32>, tensor<2x8x1x1xi32>, tensor<2x8x1xf32>) -> tensor<2x8x23xf32>
    return %1 : tensor<2x8x23xf32>
  }
  func.func private @silu_5(%arg0: tensor<2x8x24xf32>, %arg1: tensor<2x8x24xf32>, %arg2: tensor<2x8x24xf32>, %arg3: tensor<2x8x24xf32>) -> tensor<2x8x24xf32> {
    %0 = stablehlo.multiply %arg2, %arg3 : tensor<2x8x24xf32>
    %1 = stablehlo.multiply %arg3, %arg1 : tensor<2x8x24xf32>
    %2 = stablehlo.multiply %0, %arg0 : tensor<2x8x24xf32>
    %3 = stablehlo.add %1, %2 : tensor<2x8x24xf32>
    return %3 : tensor<2x8x24xf32>
  }
  func.func private @_where_6(%arg0: tensor<2x2x2x8x8xi1>, %arg1: tensor<2x2x2x8x8xf32>) -> tensor<2x2x8x2x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x2x8x8xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x2x2x8x8xi1>, tensor<2x2x2x8x8xf32>
    %2 = stablehlo.transpose %1, dims = [1, 2, 3, 0, 4] : (tensor<2x2x2x8x8xf32>) -> tensor<2x2x8x2x8xf32>
    return %2 : tensor<2x2x8x2x8xf32>
  }
  func.func private @_take_7(%arg0: tensor<2x8x1xi32>, %arg1: tensor<2x8x16xf32>) -> tensor<23x16xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<23x16xf32>, tensor<2x8x1xi32>, tensor<2x8x16xf32>) -> tensor<23x16xf32>
    return %1 : tensor<23x16xf32>
  }
  func.func private @_where_8(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
}
