module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x3x3x8xf32> {tf.aliasing_output = 0 : i32} loc("p['k1']"), %arg1: tensor<3x3x8x16xf32> {tf.aliasing_output = 1 : i32} loc("p['k2']"), %arg2: tensor<16x10xf32> {tf.aliasing_output = 2 : i32} loc("p['w']"), %arg3: tensor<3x3x3x8xf32> {tf.aliasing_output = 3 : i32} loc("s[0].trace['k1']"), %arg4: tensor<3x3x8x16xf32> {tf.aliasing_output = 4 : i32} loc("s[0].trace['k2']"), %arg5: tensor<16x10xf32> {tf.aliasing_output = 5 : i32} loc("s[0].trace['w']"), %arg6: tensor<4x32x32x3xf32> loc("data[0]"), %arg7: tensor<4xi32> loc("data[1]")) -> (tensor<3x3x3x8xf32> {jax.result_info = "result[0]['k1']"}, tensor<3x3x8x16xf32> {jax.result_info = "result[0]['k2']"}, tensor<16x10xf32> {jax.result_info = "result[0]['w']"}, tensor<3x3x3x8xf32> {jax.result_info = "result[1][0].trace['k1']"}, tensor<3x3x8x16xf32> {jax.result_info = "result[1][0].trace['k2']"}, tensor<16x10xf32> {jax.result_info = "result[1][0].trace['w']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-1.000000e-01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %cst_1 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst_2 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_5 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_7 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %cst_8 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %cst_9 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %0 = stablehlo.convolution(%arg6, %arg0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x32x32x3xf32>, tensor<3x3x3x8xf32>) -> tensor<4x16x16x8xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<4x16x16x8xf32>
    %2 = stablehlo.multiply %1, %0 : tensor<4x16x16x8xf32>
    %3 = stablehlo.multiply %0, %0 : tensor<4x16x16x8xf32>
    %4 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4x16x16x8xf32>
    %5 = stablehlo.multiply %4, %3 : tensor<4x16x16x8xf32>
    %6 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x16x8xf32>
    %7 = stablehlo.multiply %6, %2 : tensor<4x16x16x8xf32>
    %8 = stablehlo.add %0, %7 : tensor<4x16x16x8xf32>
    %9 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x16x16x8xf32>
    %10 = stablehlo.multiply %9, %8 : tensor<4x16x16x8xf32>
    %11 = stablehlo.tanh %10 : tensor<4x16x16x8xf32>
    %12 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x16x16x8xf32>
    %13 = stablehlo.subtract %12, %11 : tensor<4x16x16x8xf32>
    %14 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x16x16x8xf32>
    %15 = stablehlo.add %14, %11 : tensor<4x16x16x8xf32>
    %16 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x16x16x8xf32>
    %17 = stablehlo.multiply %16, %15 : tensor<4x16x16x8xf32>
    %18 = stablehlo.multiply %0, %17 : tensor<4x16x16x8xf32>
    %19 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<f32>
    %20 = "stablehlo.reduce_window"(%18, %19) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
      %139 = stablehlo.maximum %arg8, %arg9 : tensor<f32>
      stablehlo.return %139 : tensor<f32>
    }) : (tensor<4x16x16x8xf32>, tensor<f32>) -> tensor<4x8x8x8xf32>
    %21 = stablehlo.convolution(%20, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x8xf32>, tensor<3x3x8x16xf32>) -> tensor<4x4x4x16xf32>
    %22 = stablehlo.multiply %21, %21 : tensor<4x4x4x16xf32>
    %23 = stablehlo.multiply %22, %21 : tensor<4x4x4x16xf32>
    %24 = stablehlo.multiply %21, %21 : tensor<4x4x4x16xf32>
    %25 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4x4x4x16xf32>
    %26 = stablehlo.multiply %25, %24 : tensor<4x4x4x16xf32>
    %27 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x4x4x16xf32>
    %28 = stablehlo.multiply %27, %23 : tensor<4x4x4x16xf32>
    %29 = stablehlo.add %21, %28 : tensor<4x4x4x16xf32>
    %30 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x4x4x16xf32>
    %31 = stablehlo.multiply %30, %29 : tensor<4x4x4x16xf32>
    %32 = stablehlo.tanh %31 : tensor<4x4x4x16xf32>
    %33 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x4x4x16xf32>
    %34 = stablehlo.subtract %33, %32 : tensor<4x4x4x16xf32>
    %35 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x4x4x16xf32>
    %36 = stablehlo.add %35, %32 : tensor<4x4x4x16xf32>
    %37 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x4x4x16xf32>
    %38 = stablehlo.multiply %37, %36 : tensor<4x4x4x16xf32>
    %39 = stablehlo.multiply %21, %38 : tensor<4x4x4x16xf32>
    %40 = stablehlo.reduce(%39 init: %cst_3) applies stablehlo.add across dimensions = [1, 2] : (tensor<4x4x4x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    %41 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %42 = stablehlo.divide %40, %41 : tensor<4x16xf32>
    %43 = stablehlo.dot_general %42, %arg2, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x10xf32>) -> tensor<4x10xf32>
    %44 = stablehlo.broadcast_in_dim %arg7, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %45:2 = call @take_along_axis(%43, %44) : (tensor<4x10xf32>, tensor<4x1xi32>) -> (tensor<4x1xf32>, tensor<4x1x1xi32>)
    %46:2 = call @_take(%45#0, %c) : (tensor<4x1xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<1xi32>)
    %47 = stablehlo.reduce(%43 init: %cst_4) applies stablehlo.maximum across dimensions = [1] : (tensor<4x10xf32>, tensor<f32>) -> tensor<4xf32>
    %48 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %49 = stablehlo.maximum %48, %47 : tensor<4xf32>
    %50 = stablehlo.is_finite %49 : (tensor<4xf32>) -> tensor<4xi1>
    %51 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %52 = stablehlo.select %50, %49, %51 : tensor<4xi1>, tensor<4xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %54 = stablehlo.broadcast_in_dim %53, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x10xf32>
    %55 = stablehlo.subtract %43, %54 : tensor<4x10xf32>
    %56 = stablehlo.exponential %55 : tensor<4x10xf32>
    %57 = stablehlo.reduce(%56 init: %cst_3) applies stablehlo.add across dimensions = [1] : (tensor<4x10xf32>, tensor<f32>) -> tensor<4xf32>
    %58 = stablehlo.abs %57 : tensor<4xf32>
    %59 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %60 = stablehlo.compare GE, %57, %59, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %61 = stablehlo.log %58 : tensor<4xf32>
    %62 = stablehlo.add %61, %52 : tensor<4xf32>
    %63 = stablehlo.subtract %62, %46#0 : tensor<4xf32>
    %64 = stablehlo.reduce(%63 init: %cst_3) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %65 = stablehlo.divide %64, %cst_1 : tensor<f32>
    %66 = stablehlo.divide %cst_6, %cst_1 : tensor<f32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %68 = stablehlo.negate %67 : tensor<4xf32>
    %69 = stablehlo.divide %67, %58 : tensor<4xf32>
    %70 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %71 = stablehlo.select %60, %70, %69 : tensor<4xi1>, tensor<4xf32>
    %72 = stablehlo.select %60, %69, %70 : tensor<4xi1>, tensor<4xf32>
    %73 = stablehlo.negate %71 : tensor<4xf32>
    %74 = stablehlo.add %72, %73 : tensor<4xf32>
    %75 = stablehlo.broadcast_in_dim %74, dims = [0] : (tensor<4xf32>) -> tensor<4x10xf32>
    %76 = stablehlo.multiply %75, %56 : tensor<4x10xf32>
    %77 = call @_take_0(%46#1, %68) : (tensor<1xi32>, tensor<4xf32>) -> tensor<4x1xf32>
    %78 = call @take_along_axis_1(%45#1, %77) : (tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x10xf32>
    %79 = stablehlo.add %76, %78 : tensor<4x10xf32>
    %80 = stablehlo.dot_general %79, %42, contracting_dims = [0] x [0] : (tensor<4x10xf32>, tensor<4x16xf32>) -> tensor<10x16xf32>
    %81 = stablehlo.transpose %80, dims = [1, 0] : (tensor<10x16xf32>) -> tensor<16x10xf32>
    %82 = stablehlo.dot_general %79, %arg2, contracting_dims = [1] x [1] : (tensor<4x10xf32>, tensor<16x10xf32>) -> tensor<4x16xf32>
    %83 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
    %84 = stablehlo.divide %82, %83 : tensor<4x16xf32>
    %85 = stablehlo.broadcast_in_dim %84, dims = [0, 3] : (tensor<4x16xf32>) -> tensor<4x4x4x16xf32>
    %86 = stablehlo.multiply %21, %85 : tensor<4x4x4x16xf32>
    %87 = stablehlo.multiply %85, %38 : tensor<4x4x4x16xf32>
    %88 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x4x4x16xf32>
    %89 = stablehlo.multiply %88, %86 : tensor<4x4x4x16xf32>
    %90 = stablehlo.multiply %89, %34 : tensor<4x4x4x16xf32>
    %91 = stablehlo.multiply %90, %32 : tensor<4x4x4x16xf32>
    %92 = stablehlo.add %90, %91 : tensor<4x4x4x16xf32>
    %93 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x4x4x16xf32>
    %94 = stablehlo.multiply %93, %92 : tensor<4x4x4x16xf32>
    %95 = stablehlo.add %87, %94 : tensor<4x4x4x16xf32>
    %96 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x4x4x16xf32>
    %97 = stablehlo.multiply %96, %94 : tensor<4x4x4x16xf32>
    %98 = stablehlo.multiply %97, %26 : tensor<4x4x4x16xf32>
    %99 = stablehlo.add %95, %98 : tensor<4x4x4x16xf32>
    %100 = stablehlo.convolution(%20, %99) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[0, 1], [0, 1]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x8xf32>, tensor<4x4x4x16xf32>) -> tensor<3x3x8x16xf32>
    %101 = stablehlo.reverse %arg1, dims = [0, 1] : tensor<3x3x8x16xf32>
    %102 = stablehlo.convolution(%99, %101) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x4x4x16xf32>, tensor<3x3x8x16xf32>) -> tensor<4x8x8x8xf32>
    %103 = stablehlo.pad %18, %cst_4, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<4x16x16x8xf32>, tensor<f32>) -> tensor<4x16x16x8xf32>
    %104 = "stablehlo.select_and_scatter"(%103, %102, %cst_3) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
      %139 = stablehlo.compare GE, %arg8, %arg9, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %139 : tensor<i1>
    }, {
    ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
      %139 = stablehlo.add %arg8, %arg9 : tensor<f32>
      stablehlo.return %139 : tensor<f32>
    }) : (tensor<4x16x16x8xf32>, tensor<4x8x8x8xf32>, tensor<f32>) -> tensor<4x16x16x8xf32>
    %105 = stablehlo.slice %104 [0:4, 0:16, 0:16, 0:8] : (tensor<4x16x16x8xf32>) -> tensor<4x16x16x8xf32>
    %106 = stablehlo.multiply %0, %105 : tensor<4x16x16x8xf32>
    %107 = stablehlo.multiply %105, %17 : tensor<4x16x16x8xf32>
    %108 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x16x16x8xf32>
    %109 = stablehlo.multiply %108, %106 : tensor<4x16x16x8xf32>
    %110 = stablehlo.multiply %109, %13 : tensor<4x16x16x8xf32>
    %111 = stablehlo.multiply %110, %11 : tensor<4x16x16x8xf32>
    %112 = stablehlo.add %110, %111 : tensor<4x16x16x8xf32>
    %113 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x16x16x8xf32>
    %114 = stablehlo.multiply %113, %112 : tensor<4x16x16x8xf32>
    %115 = stablehlo.add %107, %114 : tensor<4x16x16x8xf32>
    %116 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x16x16x8xf32>
    %117 = stablehlo.multiply %116, %114 : tensor<4x16x16x8xf32>
    %118 = stablehlo.multiply %117, %5 : tensor<4x16x16x8xf32>
    %119 = stablehlo.add %115, %118 : tensor<4x16x16x8xf32>
    %120 = stablehlo.convolution(%arg6, %119) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[0, 1], [0, 1]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x32x32x3xf32>, tensor<4x16x16x8xf32>) -> tensor<3x3x3x8xf32>
    %121 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x3x3x8xf32>
    %122 = stablehlo.multiply %121, %arg3 : tensor<3x3x3x8xf32>
    %123 = stablehlo.add %120, %122 : tensor<3x3x3x8xf32>
    %124 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x3x8x16xf32>
    %125 = stablehlo.multiply %124, %arg4 : tensor<3x3x8x16xf32>
    %126 = stablehlo.add %100, %125 : tensor<3x3x8x16xf32>
    %127 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x10xf32>
    %128 = stablehlo.multiply %127, %arg5 : tensor<16x10xf32>
    %129 = stablehlo.add %81, %128 : tensor<16x10xf32>
    %130 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3x3x8xf32>
    %131 = stablehlo.multiply %130, %123 : tensor<3x3x3x8xf32>
    %132 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x3x8x16xf32>
    %133 = stablehlo.multiply %132, %126 : tensor<3x3x8x16xf32>
    %134 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x10xf32>
    %135 = stablehlo.multiply %134, %129 : tensor<16x10xf32>
    %136 = stablehlo.add %arg0, %131 : tensor<3x3x3x8xf32>
    %137 = stablehlo.add %arg1, %133 : tensor<3x3x8x16xf32>
    %138 = stablehlo.add %arg2, %135 : tensor<16x10xf32>
    return %136, %137, %138, %123, %126, %129, %65 : tensor<3x3x3x8xf32>, tensor<3x3x8x16xf32>, tensor<16x10xf32>, tensor<3x3x3x8xf32>, tensor<3x3x8x16xf32>, tensor<16x10xf32>, tensor<f32>
  }
  func.func private @take_along_axis(%arg0: tensor<4x10xf32>, %arg1: tensor<4x1xi32>) -> (tensor<4x1xf32>, tensor<4x1x1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<9> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<10> : tensor<i32>
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
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x10xf32>, tensor<4x1x1xi32>) -> tensor<4x1xf32>
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
  func.func private @take_along_axis_1(%arg0: tensor<4x1x1xi32>, %arg1: tensor<4x1xf32>) -> tensor<4x10xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x10xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x10xf32>, tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x10xf32>
    return %1 : tensor<4x10xf32>
  }
}
