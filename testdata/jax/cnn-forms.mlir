module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x3x1x8xf32> {tf.aliasing_output = 0 : i32} loc("p['depthwise']"), %arg1: tensor<3x3x12x6xf32> {tf.aliasing_output = 1 : i32} loc("p['dilated']"), %arg2: tensor<3x3x4x12xf32> {tf.aliasing_output = 2 : i32} loc("p['grouped']"), %arg3: tensor<3x3x6x4xf32> {tf.aliasing_output = 3 : i32} loc("p['up']"), %arg4: tensor<4x3xf32> {tf.aliasing_output = 4 : i32} loc("p['w']"), %arg5: tensor<i32> {tf.aliasing_output = 5 : i32} loc("s[0].count"), %arg6: tensor<3x3x1x8xf32> {tf.aliasing_output = 6 : i32} loc("s[0].mu['depthwise']"), %arg7: tensor<3x3x12x6xf32> {tf.aliasing_output = 7 : i32} loc("s[0].mu['dilated']"), %arg8: tensor<3x3x4x12xf32> {tf.aliasing_output = 8 : i32} loc("s[0].mu['grouped']"), %arg9: tensor<3x3x6x4xf32> {tf.aliasing_output = 9 : i32} loc("s[0].mu['up']"), %arg10: tensor<4x3xf32> {tf.aliasing_output = 10 : i32} loc("s[0].mu['w']"), %arg11: tensor<3x3x1x8xf32> {tf.aliasing_output = 11 : i32} loc("s[0].nu['depthwise']"), %arg12: tensor<3x3x12x6xf32> {tf.aliasing_output = 12 : i32} loc("s[0].nu['dilated']"), %arg13: tensor<3x3x4x12xf32> {tf.aliasing_output = 13 : i32} loc("s[0].nu['grouped']"), %arg14: tensor<3x3x6x4xf32> {tf.aliasing_output = 14 : i32} loc("s[0].nu['up']"), %arg15: tensor<4x3xf32> {tf.aliasing_output = 15 : i32} loc("s[0].nu['w']"), %arg16: tensor<4x12x12x8xf32> loc("data[0]"), %arg17: tensor<4xi32> loc("data[1]")) -> (tensor<3x3x1x8xf32> {jax.result_info = "result[0]['depthwise']"}, tensor<3x3x12x6xf32> {jax.result_info = "result[0]['dilated']"}, tensor<3x3x4x12xf32> {jax.result_info = "result[0]['grouped']"}, tensor<3x3x6x4xf32> {jax.result_info = "result[0]['up']"}, tensor<4x3xf32> {jax.result_info = "result[0]['w']"}, tensor<i32> {jax.result_info = "result[1][0].count"}, tensor<3x3x1x8xf32> {jax.result_info = "result[1][0].mu['depthwise']"}, tensor<3x3x12x6xf32> {jax.result_info = "result[1][0].mu['dilated']"}, tensor<3x3x4x12xf32> {jax.result_info = "result[1][0].mu['grouped']"}, tensor<3x3x6x4xf32> {jax.result_info = "result[1][0].mu['up']"}, tensor<4x3xf32> {jax.result_info = "result[1][0].mu['w']"}, tensor<3x3x1x8xf32> {jax.result_info = "result[1][0].nu['depthwise']"}, tensor<3x3x12x6xf32> {jax.result_info = "result[1][0].nu['dilated']"}, tensor<3x3x4x12xf32> {jax.result_info = "result[1][0].nu['grouped']"}, tensor<3x3x6x4xf32> {jax.result_info = "result[1][0].nu['up']"}, tensor<4x3xf32> {jax.result_info = "result[1][0].nu['w']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-0.00999999977> : tensor<f32>
    %cst_0 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_1 = stablehlo.constant dense<2147483647> : tensor<i32>
    %cst_2 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %cst_4 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %cst_5 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %cst_8 = stablehlo.constant dense<1.000000e+02> : tensor<f32>
    %cst_9 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.convolution(%arg16, %arg0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64} : (tensor<4x12x12x8xf32>, tensor<3x3x1x8xf32>) -> tensor<4x12x12x8xf32>
    %1 = stablehlo.tanh %0 : tensor<4x12x12x8xf32>
    %2 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<4x12x12x8xf32>
    %3 = stablehlo.subtract %2, %1 : tensor<4x12x12x8xf32>
    %4 = stablehlo.convolution(%1, %arg2) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<4x12x12x8xf32>, tensor<3x3x4x12xf32>) -> tensor<4x6x6x12xf32>
    %5 = stablehlo.tanh %4 : tensor<4x6x6x12xf32>
    %6 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<4x6x6x12xf32>
    %7 = stablehlo.subtract %6, %5 : tensor<4x6x6x12xf32>
    %8 = stablehlo.convolution(%5, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[2, 1], [0, 3]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x6x6x12xf32>, tensor<3x3x12x6xf32>) -> tensor<4x5x5x6xf32>
    %9 = stablehlo.tanh %8 : tensor<4x5x5x6xf32>
    %10 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<4x5x5x6xf32>
    %11 = stablehlo.subtract %10, %9 : tensor<4x5x5x6xf32>
    %12 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<f32>
    %13 = "stablehlo.reduce_window"(%9, %12) <{padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg18: tensor<f32>, %arg19: tensor<f32>):
      %225 = stablehlo.add %arg18, %arg19 : tensor<f32>
      stablehlo.return %225 : tensor<f32>
    }) : (tensor<4x5x5x6xf32>, tensor<f32>) -> tensor<4x5x5x6xf32>
    %14 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4x5x5x6xf32>
    %15 = stablehlo.divide %13, %14 : tensor<4x5x5x6xf32>
    %16 = stablehlo.convolution(%15, %arg3) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x5x5x6xf32>, tensor<3x3x6x4xf32>) -> tensor<4x10x10x4xf32>
    %17 = stablehlo.tanh %16 : tensor<4x10x10x4xf32>
    %18 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<4x10x10x4xf32>
    %19 = stablehlo.subtract %18, %17 : tensor<4x10x10x4xf32>
    %20 = stablehlo.reduce(%17 init: %cst_10) applies stablehlo.add across dimensions = [1, 2] : (tensor<4x10x10x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    %21 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %22 = stablehlo.divide %20, %21 : tensor<4x4xf32>
    %23 = stablehlo.dot_general %22, %arg4, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %24 = stablehlo.broadcast_in_dim %arg17, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %25:2 = call @take_along_axis(%23, %24) : (tensor<4x3xf32>, tensor<4x1xi32>) -> (tensor<4x1xf32>, tensor<4x1x1xi32>)
    %26:2 = call @_take(%25#0, %c_7) : (tensor<4x1xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<1xi32>)
    %27 = stablehlo.reduce(%23 init: %cst_6) applies stablehlo.maximum across dimensions = [1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    %28 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %29 = stablehlo.maximum %28, %27 : tensor<4xf32>
    %30 = stablehlo.is_finite %29 : (tensor<4xf32>) -> tensor<4xi1>
    %31 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %32 = stablehlo.select %30, %29, %31 : tensor<4xi1>, tensor<4xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x3xf32>
    %35 = stablehlo.subtract %23, %34 : tensor<4x3xf32>
    %36 = stablehlo.exponential %35 : tensor<4x3xf32>
    %37 = stablehlo.reduce(%36 init: %cst_10) applies stablehlo.add across dimensions = [1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    %38 = stablehlo.abs %37 : tensor<4xf32>
    %39 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %40 = stablehlo.compare GE, %37, %39, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %41 = stablehlo.log %38 : tensor<4xf32>
    %42 = stablehlo.add %41, %32 : tensor<4xf32>
    %43 = stablehlo.subtract %42, %26#0 : tensor<4xf32>
    %44 = stablehlo.reduce(%43 init: %cst_10) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %45 = stablehlo.divide %44, %cst_9 : tensor<f32>
    %46 = stablehlo.divide %cst_11, %cst_9 : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %48 = stablehlo.negate %47 : tensor<4xf32>
    %49 = stablehlo.divide %47, %38 : tensor<4xf32>
    %50 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %51 = stablehlo.select %40, %50, %49 : tensor<4xi1>, tensor<4xf32>
    %52 = stablehlo.select %40, %49, %50 : tensor<4xi1>, tensor<4xf32>
    %53 = stablehlo.negate %51 : tensor<4xf32>
    %54 = stablehlo.add %52, %53 : tensor<4xf32>
    %55 = stablehlo.broadcast_in_dim %54, dims = [0] : (tensor<4xf32>) -> tensor<4x3xf32>
    %56 = stablehlo.multiply %55, %36 : tensor<4x3xf32>
    %57 = call @_take_0(%26#1, %48) : (tensor<1xi32>, tensor<4xf32>) -> tensor<4x1xf32>
    %58 = call @take_along_axis_1(%25#1, %57) : (tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x3xf32>
    %59 = stablehlo.add %56, %58 : tensor<4x3xf32>
    %60 = stablehlo.dot_general %59, %22, contracting_dims = [0] x [0] : (tensor<4x3xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %61 = stablehlo.transpose %60, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %62 = stablehlo.dot_general %59, %arg4, contracting_dims = [1] x [1] : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x4xf32>
    %63 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %64 = stablehlo.divide %62, %63 : tensor<4x4xf32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [0, 3] : (tensor<4x4xf32>) -> tensor<4x10x10x4xf32>
    %66 = stablehlo.multiply %65, %19 : tensor<4x10x10x4xf32>
    %67 = stablehlo.multiply %66, %17 : tensor<4x10x10x4xf32>
    %68 = stablehlo.add %66, %67 : tensor<4x10x10x4xf32>
    %69 = stablehlo.convolution(%15, %68) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x5x5x6xf32>, tensor<4x10x10x4xf32>) -> tensor<3x3x6x4xf32>
    %70 = stablehlo.reverse %arg3, dims = [0, 1] : tensor<3x3x6x4xf32>
    %71 = stablehlo.convolution(%68, %70) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x10x10x4xf32>, tensor<3x3x6x4xf32>) -> tensor<4x5x5x6xf32>
    %72 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4x5x5x6xf32>
    %73 = stablehlo.divide %71, %72 : tensor<4x5x5x6xf32>
    %74 = stablehlo.pad %73, %cst_10, low = [0, 1, 1, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<4x5x5x6xf32>, tensor<f32>) -> tensor<4x6x6x6xf32>
    %75 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<f32>
    %76 = "stablehlo.reduce_window"(%74, %75) <{window_dimensions = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg18: tensor<f32>, %arg19: tensor<f32>):
      %225 = stablehlo.add %arg18, %arg19 : tensor<f32>
      stablehlo.return %225 : tensor<f32>
    }) : (tensor<4x6x6x6xf32>, tensor<f32>) -> tensor<4x5x5x6xf32>
    %77 = stablehlo.multiply %76, %11 : tensor<4x5x5x6xf32>
    %78 = stablehlo.multiply %77, %9 : tensor<4x5x5x6xf32>
    %79 = stablehlo.add %77, %78 : tensor<4x5x5x6xf32>
    %80 = stablehlo.convolution(%5, %79) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [2, 2], pad = [[2, 1], [0, 3]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x6x6x12xf32>, tensor<4x5x5x6xf32>) -> tensor<3x3x12x6xf32>
    %81 = stablehlo.reverse %arg1, dims = [0, 1] : tensor<3x3x12x6xf32>
    %82 = stablehlo.convolution(%79, %81) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[2, 3], [4, 1]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x5x5x6xf32>, tensor<3x3x12x6xf32>) -> tensor<4x6x6x12xf32>
    %83 = stablehlo.multiply %82, %7 : tensor<4x6x6x12xf32>
    %84 = stablehlo.multiply %83, %5 : tensor<4x6x6x12xf32>
    %85 = stablehlo.add %83, %84 : tensor<4x6x6x12xf32>
    %86 = stablehlo.convolution(%1, %85) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[0, 1], [0, 1]], rhs_dilate = [2, 2]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<4x12x12x8xf32>, tensor<4x6x6x12xf32>) -> tensor<3x3x4x12xf32>
    %87 = stablehlo.reshape %arg2 : (tensor<3x3x4x12xf32>) -> tensor<3x3x4x2x6xf32>
    %88 = stablehlo.transpose %87, dims = [0, 1, 3, 2, 4] : (tensor<3x3x4x2x6xf32>) -> tensor<3x3x2x4x6xf32>
    %89 = stablehlo.reshape %88 : (tensor<3x3x2x4x6xf32>) -> tensor<3x3x8x6xf32>
    %90 = stablehlo.reverse %89, dims = [0, 1] : tensor<3x3x8x6xf32>
    %91 = stablehlo.convolution(%85, %90) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<4x6x6x12xf32>, tensor<3x3x8x6xf32>) -> tensor<4x12x12x8xf32>
    %92 = stablehlo.multiply %91, %3 : tensor<4x12x12x8xf32>
    %93 = stablehlo.multiply %92, %1 : tensor<4x12x12x8xf32>
    %94 = stablehlo.add %92, %93 : tensor<4x12x12x8xf32>
    %95 = stablehlo.convolution(%arg16, %94) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 8 : i64, feature_group_count = 1 : i64} : (tensor<4x12x12x8xf32>, tensor<4x12x12x8xf32>) -> tensor<3x3x1x8xf32>
    %96 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x3x1x8xf32>
    %97 = stablehlo.multiply %96, %95 : tensor<3x3x1x8xf32>
    %98 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x3x1x8xf32>
    %99 = stablehlo.multiply %98, %arg6 : tensor<3x3x1x8xf32>
    %100 = stablehlo.add %97, %99 : tensor<3x3x1x8xf32>
    %101 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x3x12x6xf32>
    %102 = stablehlo.multiply %101, %80 : tensor<3x3x12x6xf32>
    %103 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x3x12x6xf32>
    %104 = stablehlo.multiply %103, %arg7 : tensor<3x3x12x6xf32>
    %105 = stablehlo.add %102, %104 : tensor<3x3x12x6xf32>
    %106 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x3x4x12xf32>
    %107 = stablehlo.multiply %106, %86 : tensor<3x3x4x12xf32>
    %108 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x3x4x12xf32>
    %109 = stablehlo.multiply %108, %arg8 : tensor<3x3x4x12xf32>
    %110 = stablehlo.add %107, %109 : tensor<3x3x4x12xf32>
    %111 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x3x6x4xf32>
    %112 = stablehlo.multiply %111, %69 : tensor<3x3x6x4xf32>
    %113 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x3x6x4xf32>
    %114 = stablehlo.multiply %113, %arg9 : tensor<3x3x6x4xf32>
    %115 = stablehlo.add %112, %114 : tensor<3x3x6x4xf32>
    %116 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %117 = stablehlo.multiply %116, %61 : tensor<4x3xf32>
    %118 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %119 = stablehlo.multiply %118, %arg10 : tensor<4x3xf32>
    %120 = stablehlo.add %117, %119 : tensor<4x3xf32>
    %121 = stablehlo.multiply %95, %95 : tensor<3x3x1x8xf32>
    %122 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x3x1x8xf32>
    %123 = stablehlo.multiply %122, %121 : tensor<3x3x1x8xf32>
    %124 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x3x1x8xf32>
    %125 = stablehlo.multiply %124, %arg11 : tensor<3x3x1x8xf32>
    %126 = stablehlo.add %123, %125 : tensor<3x3x1x8xf32>
    %127 = stablehlo.multiply %80, %80 : tensor<3x3x12x6xf32>
    %128 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x3x12x6xf32>
    %129 = stablehlo.multiply %128, %127 : tensor<3x3x12x6xf32>
    %130 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x3x12x6xf32>
    %131 = stablehlo.multiply %130, %arg12 : tensor<3x3x12x6xf32>
    %132 = stablehlo.add %129, %131 : tensor<3x3x12x6xf32>
    %133 = stablehlo.multiply %86, %86 : tensor<3x3x4x12xf32>
    %134 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x3x4x12xf32>
    %135 = stablehlo.multiply %134, %133 : tensor<3x3x4x12xf32>
    %136 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x3x4x12xf32>
    %137 = stablehlo.multiply %136, %arg13 : tensor<3x3x4x12xf32>
    %138 = stablehlo.add %135, %137 : tensor<3x3x4x12xf32>
    %139 = stablehlo.multiply %69, %69 : tensor<3x3x6x4xf32>
    %140 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x3x6x4xf32>
    %141 = stablehlo.multiply %140, %139 : tensor<3x3x6x4xf32>
    %142 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x3x6x4xf32>
    %143 = stablehlo.multiply %142, %arg14 : tensor<3x3x6x4xf32>
    %144 = stablehlo.add %141, %143 : tensor<3x3x6x4xf32>
    %145 = stablehlo.multiply %61, %61 : tensor<4x3xf32>
    %146 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %147 = stablehlo.multiply %146, %145 : tensor<4x3xf32>
    %148 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %149 = stablehlo.multiply %148, %arg15 : tensor<4x3xf32>
    %150 = stablehlo.add %147, %149 : tensor<4x3xf32>
    %151 = stablehlo.compare LT, %arg5, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %152 = stablehlo.add %arg5, %c : tensor<i32>
    %153 = call @_where_2(%151, %152, %c_1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %154 = stablehlo.convert %153 : (tensor<i32>) -> tensor<f32>
    %155 = stablehlo.power %cst_4, %154 : tensor<f32>
    %156 = stablehlo.subtract %cst_11, %155 : tensor<f32>
    %157 = stablehlo.broadcast_in_dim %156, dims = [] : (tensor<f32>) -> tensor<3x3x1x8xf32>
    %158 = stablehlo.divide %100, %157 : tensor<3x3x1x8xf32>
    %159 = stablehlo.broadcast_in_dim %156, dims = [] : (tensor<f32>) -> tensor<3x3x12x6xf32>
    %160 = stablehlo.divide %105, %159 : tensor<3x3x12x6xf32>
    %161 = stablehlo.broadcast_in_dim %156, dims = [] : (tensor<f32>) -> tensor<3x3x4x12xf32>
    %162 = stablehlo.divide %110, %161 : tensor<3x3x4x12xf32>
    %163 = stablehlo.broadcast_in_dim %156, dims = [] : (tensor<f32>) -> tensor<3x3x6x4xf32>
    %164 = stablehlo.divide %115, %163 : tensor<3x3x6x4xf32>
    %165 = stablehlo.broadcast_in_dim %156, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %166 = stablehlo.divide %120, %165 : tensor<4x3xf32>
    %167 = stablehlo.convert %153 : (tensor<i32>) -> tensor<f32>
    %168 = stablehlo.power %cst_2, %167 : tensor<f32>
    %169 = stablehlo.subtract %cst_11, %168 : tensor<f32>
    %170 = stablehlo.broadcast_in_dim %169, dims = [] : (tensor<f32>) -> tensor<3x3x1x8xf32>
    %171 = stablehlo.divide %126, %170 : tensor<3x3x1x8xf32>
    %172 = stablehlo.broadcast_in_dim %169, dims = [] : (tensor<f32>) -> tensor<3x3x12x6xf32>
    %173 = stablehlo.divide %132, %172 : tensor<3x3x12x6xf32>
    %174 = stablehlo.broadcast_in_dim %169, dims = [] : (tensor<f32>) -> tensor<3x3x4x12xf32>
    %175 = stablehlo.divide %138, %174 : tensor<3x3x4x12xf32>
    %176 = stablehlo.broadcast_in_dim %169, dims = [] : (tensor<f32>) -> tensor<3x3x6x4xf32>
    %177 = stablehlo.divide %144, %176 : tensor<3x3x6x4xf32>
    %178 = stablehlo.broadcast_in_dim %169, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %179 = stablehlo.divide %150, %178 : tensor<4x3xf32>
    %180 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x3x1x8xf32>
    %181 = stablehlo.add %171, %180 : tensor<3x3x1x8xf32>
    %182 = stablehlo.sqrt %181 : tensor<3x3x1x8xf32>
    %183 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x3x1x8xf32>
    %184 = stablehlo.add %182, %183 : tensor<3x3x1x8xf32>
    %185 = stablehlo.divide %158, %184 : tensor<3x3x1x8xf32>
    %186 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x3x12x6xf32>
    %187 = stablehlo.add %173, %186 : tensor<3x3x12x6xf32>
    %188 = stablehlo.sqrt %187 : tensor<3x3x12x6xf32>
    %189 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x3x12x6xf32>
    %190 = stablehlo.add %188, %189 : tensor<3x3x12x6xf32>
    %191 = stablehlo.divide %160, %190 : tensor<3x3x12x6xf32>
    %192 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x3x4x12xf32>
    %193 = stablehlo.add %175, %192 : tensor<3x3x4x12xf32>
    %194 = stablehlo.sqrt %193 : tensor<3x3x4x12xf32>
    %195 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x3x4x12xf32>
    %196 = stablehlo.add %194, %195 : tensor<3x3x4x12xf32>
    %197 = stablehlo.divide %162, %196 : tensor<3x3x4x12xf32>
    %198 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x3x6x4xf32>
    %199 = stablehlo.add %177, %198 : tensor<3x3x6x4xf32>
    %200 = stablehlo.sqrt %199 : tensor<3x3x6x4xf32>
    %201 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x3x6x4xf32>
    %202 = stablehlo.add %200, %201 : tensor<3x3x6x4xf32>
    %203 = stablehlo.divide %164, %202 : tensor<3x3x6x4xf32>
    %204 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %205 = stablehlo.add %179, %204 : tensor<4x3xf32>
    %206 = stablehlo.sqrt %205 : tensor<4x3xf32>
    %207 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %208 = stablehlo.add %206, %207 : tensor<4x3xf32>
    %209 = stablehlo.divide %166, %208 : tensor<4x3xf32>
    %210 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3x1x8xf32>
    %211 = stablehlo.multiply %210, %185 : tensor<3x3x1x8xf32>
    %212 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3x12x6xf32>
    %213 = stablehlo.multiply %212, %191 : tensor<3x3x12x6xf32>
    %214 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3x4x12xf32>
    %215 = stablehlo.multiply %214, %197 : tensor<3x3x4x12xf32>
    %216 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3x6x4xf32>
    %217 = stablehlo.multiply %216, %203 : tensor<3x3x6x4xf32>
    %218 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %219 = stablehlo.multiply %218, %209 : tensor<4x3xf32>
    %220 = stablehlo.add %arg0, %211 : tensor<3x3x1x8xf32>
    %221 = stablehlo.add %arg1, %213 : tensor<3x3x12x6xf32>
    %222 = stablehlo.add %arg2, %215 : tensor<3x3x4x12xf32>
    %223 = stablehlo.add %arg3, %217 : tensor<3x3x6x4xf32>
    %224 = stablehlo.add %arg4, %219 : tensor<4x3xf32>
    return %220, %221, %222, %223, %224, %153, %100, %105, %110, %115, %120, %126, %132, %138, %144, %150, %45 : tensor<3x3x1x8xf32>, tensor<3x3x12x6xf32>, tensor<3x3x4x12xf32>, tensor<3x3x6x4xf32>, tensor<4x3xf32>, tensor<i32>, tensor<3x3x1x8xf32>, tensor<3x3x12x6xf32>, tensor<3x3x4x12xf32>, tensor<3x3x6x4xf32>, tensor<4x3xf32>, tensor<3x3x1x8xf32>, tensor<3x3x12x6xf32>, tensor<3x3x4x12xf32>, tensor<3x3x6x4xf32>, tensor<4x3xf32>, tensor<f32>
  }
  func.func private @take_along_axis(%arg0: tensor<4x3xf32>, %arg1: tensor<4x1xi32>) -> (tensor<4x1xf32>, tensor<4x1x1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<2> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<3> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi1>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<4x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<4x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<4x1xi1>, tensor<4x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<4x1xi32>) -> tensor<4x1x1xi32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<4x1x1xi32>, tensor<4x1x1xi32>) -> tensor<4x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<4x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<4x1x1xi32>, tensor<4x1x1xi32>) -> tensor<4x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<4x1x1xi1>
    %12 = stablehlo.reduce(%11 init: %c) applies stablehlo.and across dimensions = [2] : (tensor<4x1x1xi1>, tensor<i1>) -> tensor<4x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x3xf32>, tensor<4x1x1xi32>) -> tensor<4x1xf32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<4x1xi1>, tensor<4x1xf32>
    return %15, %5 : tensor<4x1xf32>, tensor<4x1x1xi32>
  }
  func.func private @_take(%arg0: tensor<4x1xf32>, %arg1: tensor<i32>) -> (tensor<4xf32>, tensor<1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = stablehlo.add %arg1, %c_1 : tensor<i32>
    %2 = call @_where(%0, %1, %arg1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.convert %3 : tensor<1xi32>
    %5 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %7 = stablehlo.compare LE, %4, %c_0, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %8 = stablehlo.and %6, %7 : tensor<1xi1>
    %9 = stablehlo.reduce(%8 init: %c) applies stablehlo.and across dimensions = [0] : (tensor<1xi1>, tensor<i1>) -> tensor<i1>
    %10 = "stablehlo.gather"(%arg0, %4) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, slice_sizes = array<i64: 4, 1>}> : (tensor<4x1xf32>, tensor<1xi32>) -> tensor<4xf32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<4xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %13 = stablehlo.select %11, %10, %12 : tensor<4xi1>, tensor<4xf32>
    return %13, %3 : tensor<4xf32>, tensor<1xi32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @_take_0(%arg0: tensor<1xi32>, %arg1: tensor<4xf32>) -> tensor<4x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x1xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<4x1xf32>
    return %1 : tensor<4x1xf32>
  }
  func.func private @take_along_axis_1(%arg0: tensor<4x1x1xi32>, %arg1: tensor<4x1xf32>) -> tensor<4x3xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x3xf32>, tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x3xf32>
    return %1 : tensor<4x3xf32>
  }
  func.func private @_where_2(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
}
