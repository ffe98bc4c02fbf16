module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6x6xf32> {tf.aliasing_output = 0 : i32} loc("p['e']"), %arg1: tensor<6x4xf32> {tf.aliasing_output = 1 : i32} loc("p['r']"), %arg2: tensor<6x3xf32> {tf.aliasing_output = 2 : i32} loc("p['v']"), %arg3: tensor<i32> {tf.aliasing_output = 3 : i32} loc("s[0].count"), %arg4: tensor<4x6xf32> {tf.aliasing_output = 4 : i32} loc("s[0].v_row['e']"), %arg5: tensor<4xf32> {tf.aliasing_output = 5 : i32} loc("s[0].v_row['r']"), %arg6: tensor<3xf32> {tf.aliasing_output = 6 : i32} loc("s[0].v_row['v']"), %arg7: tensor<4x6xf32> {tf.aliasing_output = 7 : i32} loc("s[0].v_col['e']"), %arg8: tensor<6xf32> {tf.aliasing_output = 8 : i32} loc("s[0].v_col['r']"), %arg9: tensor<6xf32> {tf.aliasing_output = 9 : i32} loc("s[0].v_col['v']"), %arg10: tensor<8x6xf32> loc("data[0]"), %arg11: tensor<8xi32> loc("data[1]")) -> (tensor<4x6x6xf32> {jax.result_info = "result[0]['e']"}, tensor<6x4xf32> {jax.result_info = "result[0]['r']"}, tensor<6x3xf32> {jax.result_info = "result[0]['v']"}, tensor<i32> {jax.result_info = "result[1][0].count"}, tensor<4x6xf32> {jax.result_info = "result[1][0].v_row['e']"}, tensor<4xf32> {jax.result_info = "result[1][0].v_row['r']"}, tensor<3xf32> {jax.result_info = "result[1][0].v_row['v']"}, tensor<4x6xf32> {jax.result_info = "result[1][0].v_col['e']"}, tensor<6xf32> {jax.result_info = "result[1][0].v_col['r']"}, tensor<6xf32> {jax.result_info = "result[1][0].v_col['v']"}, tensor<1xf32> {jax.result_info = "result[1][0].v['e']"}, tensor<1xf32> {jax.result_info = "result[1][0].v['r']"}, tensor<1xf32> {jax.result_info = "result[1][0].v['v']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.800000e+01> : tensor<f32>
    %cst_1 = stablehlo.constant dense<2.400000e+01> : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.440000e+02> : tensor<f32>
    %c = stablehlo.constant dense<2147483647> : tensor<i32>
    %cst_3 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %cst_4 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %cst_5 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %cst_6 = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %cst_7 = stablehlo.constant dense<1.000000e-30> : tensor<f32>
    %cst_8 = stablehlo.constant dense<-8.000000e-01> : tensor<f32>
    %c_9 = stablehlo.constant dense<1> : tensor<i32>
    %c_10 = stablehlo.constant dense<8> : tensor<i32>
    %cst_11 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %cst_12 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %cst_13 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %c_14 = stablehlo.constant dense<4> : tensor<i32>
    %c_15 = stablehlo.constant dense<0> : tensor<i32>
    %cst_16 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_17 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_18 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.dot_general %arg10, %arg1, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.reduce(%0 init: %cst_18) applies stablehlo.maximum across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %3 = stablehlo.maximum %2, %1 : tensor<8xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x4xf32>
    %6 = stablehlo.subtract %0, %5 : tensor<8x4xf32>
    %7 = stablehlo.exponential %6 : tensor<8x4xf32>
    %8 = stablehlo.reduce(%7 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x4xf32>
    %11 = stablehlo.divide %7, %10 : tensor<8x4xf32>
    %12 = stablehlo.multiply %9, %9 : tensor<8x1xf32>
    %13 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<8x1xf32>
    %14 = stablehlo.divide %13, %12 : tensor<8x1xf32>
    %15:2 = stablehlo.composite "chlo.top_k" %11 {composite_attributes = {k = 2 : i64}, decomposition = @chlo.top_k.impl, version = 1 : i32} : (tensor<8x4xf32>) -> (tensor<8x2xf32>, tensor<8x2xi32>)
    %16 = stablehlo.reshape %15#1 : (tensor<8x2xi32>) -> tensor<8x2x1xi32>
    %17 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<i32>) -> tensor<8x2xi32>
    %18 = stablehlo.compare LT, %15#1, %17, SIGNED : (tensor<8x2xi32>, tensor<8x2xi32>) -> tensor<8x2xi1>
    %19 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<i32>) -> tensor<8x2xi32>
    %20 = stablehlo.add %15#1, %19 : tensor<8x2xi32>
    %21 = stablehlo.select %18, %20, %15#1 : tensor<8x2xi1>, tensor<8x2xi32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1] : (tensor<8x2xi32>) -> tensor<8x2x1xi32>
    %23 = "stablehlo.gather"(%arg0, %22) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 6, 6>}> : (tensor<4x6x6xf32>, tensor<8x2x1xi32>) -> tensor<8x2x6x6xf32>
    %24 = stablehlo.dot_general %arg10, %23, batching_dims = [0] x [0], contracting_dims = [1] x [2] : (tensor<8x6xf32>, tensor<8x2x6x6xf32>) -> tensor<8x2x6xf32>
    %25 = stablehlo.broadcast_in_dim %15#0, dims = [0, 1] : (tensor<8x2xf32>) -> tensor<8x2x1xf32>
    %26 = stablehlo.tanh %24 : tensor<8x2x6xf32>
    %27 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<8x2x6xf32>
    %28 = stablehlo.subtract %27, %26 : tensor<8x2x6xf32>
    %29 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2] : (tensor<8x2x1xf32>) -> tensor<8x2x6xf32>
    %30 = stablehlo.multiply %29, %26 : tensor<8x2x6xf32>
    %31 = stablehlo.reduce(%30 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<8x2x6xf32>, tensor<f32>) -> tensor<8x6xf32>
    %32 = stablehlo.slice %15#1 [0:8, 0:1] : (tensor<8x2xi32>) -> tensor<8x1xi32>
    %33 = stablehlo.reshape %32 : (tensor<8x1xi32>) -> tensor<8xi32>
    %34 = call @_one_hot(%33) : (tensor<8xi32>) -> tensor<8x4xf32>
    %35 = call @cumsum(%34) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %36 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %37 = stablehlo.slice %15#1 [0:8, 0:1] : (tensor<8x2xi32>) -> tensor<8x1xi32>
    %38 = stablehlo.reshape %37 : (tensor<8x1xi32>) -> tensor<8xi32>
    %39 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %40 = stablehlo.compare LT, %38, %39, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    %41 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %42 = stablehlo.add %38, %41 : tensor<8xi32>
    %43 = stablehlo.select %40, %42, %38 : tensor<8xi1>, tensor<8xi32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %45 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %46 = "stablehlo.scatter"(%36, %44, %45) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg12: tensor<f32>, %arg13: tensor<f32>):
      %385 = stablehlo.add %arg12, %arg13 : tensor<f32>
      stablehlo.return %385 : tensor<f32>
    }) : (tensor<4xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<4xf32>
    %47 = stablehlo.slice %11 [0:8, 0:1] : (tensor<8x4xf32>) -> tensor<8x1xf32>
    %48 = stablehlo.reshape %47 : (tensor<8x1xf32>) -> tensor<8xf32>
    %49 = call @argsort(%48) : (tensor<8xf32>) -> tensor<8xi32>
    %50 = stablehlo.dot_general %31, %arg2, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x3xf32>) -> tensor<8x3xf32>
    %51 = call @argmax(%50) : (tensor<8x3xf32>) -> tensor<8xi32>
    %52 = stablehlo.compare EQ, %51, %arg11, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    %53 = stablehlo.convert %52 : (tensor<8xi1>) -> tensor<8xi32>
    %54 = stablehlo.convert %53 : (tensor<8xi32>) -> tensor<8xf32>
    %55 = stablehlo.reduce(%54 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %56 = stablehlo.divide %55, %cst_13 : tensor<f32>
    %57:2 = call @sort(%11) : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4x1xui32>)
    %58 = stablehlo.multiply %57#0, %35 : tensor<8x4xf32>
    %59 = stablehlo.reduce(%58 init: %cst_17) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    %60 = stablehlo.multiply %59, %cst_12 : tensor<f32>
    %61 = stablehlo.reduce(%11 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    %62 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %63 = stablehlo.divide %61, %62 : tensor<4xf32>
    %64 = stablehlo.multiply %46, %63 : tensor<4xf32>
    %65 = stablehlo.reduce(%64 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %66 = stablehlo.multiply %65, %cst_11 : tensor<f32>
    %67 = stablehlo.add %60, %66 : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %69 = stablehlo.compare LT, %49, %68, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    %70 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %71 = stablehlo.add %49, %70 : tensor<8xi32>
    %72 = stablehlo.select %69, %71, %49 : tensor<8xi1>, tensor<8xi32>
    %73 = stablehlo.broadcast_in_dim %72, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %74 = "stablehlo.gather"(%31, %73) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<8x6xf32>, tensor<8x1xi32>) -> tensor<8x6xf32>
    %75 = stablehlo.dot_general %74, %arg2, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x3xf32>) -> tensor<8x3xf32>
    %76 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %77 = stablehlo.compare LT, %49, %76, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    %78 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %79 = stablehlo.add %49, %78 : tensor<8xi32>
    %80 = stablehlo.select %77, %79, %49 : tensor<8xi1>, tensor<8xi32>
    %81 = stablehlo.broadcast_in_dim %80, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %82 = "stablehlo.gather"(%arg11, %81) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<8xi32>, tensor<8x1xi32>) -> tensor<8xi32>
    %83 = stablehlo.broadcast_in_dim %82, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %84:2 = call @take_along_axis(%75, %83) : (tensor<8x3xf32>, tensor<8x1xi32>) -> (tensor<8x1xf32>, tensor<8x1x1xi32>)
    %85:2 = call @_take(%84#0, %c_15) : (tensor<8x1xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<1xi32>)
    %86 = stablehlo.reduce(%75 init: %cst_18) applies stablehlo.maximum across dimensions = [1] : (tensor<8x3xf32>, tensor<f32>) -> tensor<8xf32>
    %87 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %88 = stablehlo.maximum %87, %86 : tensor<8xf32>
    %89 = stablehlo.is_finite %88 : (tensor<8xf32>) -> tensor<8xi1>
    %90 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %91 = stablehlo.select %89, %88, %90 : tensor<8xi1>, tensor<8xf32>
    %92 = stablehlo.broadcast_in_dim %91, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
    %93 = stablehlo.broadcast_in_dim %92, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x3xf32>
    %94 = stablehlo.subtract %75, %93 : tensor<8x3xf32>
    %95 = stablehlo.exponential %94 : tensor<8x3xf32>
    %96 = stablehlo.reduce(%95 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<8x3xf32>, tensor<f32>) -> tensor<8xf32>
    %97 = stablehlo.abs %96 : tensor<8xf32>
    %98 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %99 = stablehlo.compare GE, %96, %98, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %100 = stablehlo.log %97 : tensor<8xf32>
    %101 = stablehlo.add %100, %91 : tensor<8xf32>
    %102 = stablehlo.subtract %101, %85#0 : tensor<8xf32>
    %103 = stablehlo.reduce(%102 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %104 = stablehlo.divide %103, %cst_13 : tensor<f32>
    %105 = stablehlo.add %104, %67 : tensor<f32>
    %106 = stablehlo.multiply %cst_17, %56 : tensor<f32>
    %107 = stablehlo.add %105, %106 : tensor<f32>
    %108 = stablehlo.divide %cst_16, %cst_13 : tensor<f32>
    %109 = stablehlo.broadcast_in_dim %108, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %110 = stablehlo.negate %109 : tensor<8xf32>
    %111 = stablehlo.divide %109, %97 : tensor<8xf32>
    %112 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %113 = stablehlo.select %99, %112, %111 : tensor<8xi1>, tensor<8xf32>
    %114 = stablehlo.select %99, %111, %112 : tensor<8xi1>, tensor<8xf32>
    %115 = stablehlo.negate %113 : tensor<8xf32>
    %116 = stablehlo.add %114, %115 : tensor<8xf32>
    %117 = stablehlo.broadcast_in_dim %116, dims = [0] : (tensor<8xf32>) -> tensor<8x3xf32>
    %118 = stablehlo.multiply %117, %95 : tensor<8x3xf32>
    %119 = call @_take_1(%85#1, %110) : (tensor<1xi32>, tensor<8xf32>) -> tensor<8x1xf32>
    %120 = call @take_along_axis_2(%84#1, %119) : (tensor<8x1x1xi32>, tensor<8x1xf32>) -> tensor<8x3xf32>
    %121 = stablehlo.add %118, %120 : tensor<8x3xf32>
    %122 = stablehlo.dot_general %121, %74, contracting_dims = [0] x [0] : (tensor<8x3xf32>, tensor<8x6xf32>) -> tensor<3x6xf32>
    %123 = stablehlo.transpose %122, dims = [1, 0] : (tensor<3x6xf32>) -> tensor<6x3xf32>
    %124 = stablehlo.dot_general %121, %arg2, contracting_dims = [1] x [1] : (tensor<8x3xf32>, tensor<6x3xf32>) -> tensor<8x6xf32>
    %125 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
    %126 = "stablehlo.scatter"(%125, %73, %124) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg12: tensor<f32>, %arg13: tensor<f32>):
      %385 = stablehlo.add %arg12, %arg13 : tensor<f32>
      stablehlo.return %385 : tensor<f32>
    }) : (tensor<8x6xf32>, tensor<8x1xi32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %127 = stablehlo.multiply %cst_16, %cst_11 : tensor<f32>
    %128 = stablehlo.broadcast_in_dim %127, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %129 = stablehlo.multiply %46, %128 : tensor<4xf32>
    %130 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %131 = stablehlo.divide %129, %130 : tensor<4xf32>
    %132 = stablehlo.broadcast_in_dim %131, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
    %133 = stablehlo.multiply %cst_16, %cst_12 : tensor<f32>
    %134 = stablehlo.broadcast_in_dim %133, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %135 = stablehlo.multiply %134, %35 : tensor<8x4xf32>
    %136 = call @sort_3(%57#1, %135) : (tensor<8x4x1xui32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %137 = stablehlo.add %132, %136 : tensor<8x4xf32>
    %138 = stablehlo.broadcast_in_dim %126, dims = [0, 2] : (tensor<8x6xf32>) -> tensor<8x2x6xf32>
    %139 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2] : (tensor<8x2x1xf32>) -> tensor<8x2x6xf32>
    %140 = stablehlo.multiply %139, %138 : tensor<8x2x6xf32>
    %141 = stablehlo.multiply %138, %26 : tensor<8x2x6xf32>
    %142 = stablehlo.reduce(%141 init: %cst_17) applies stablehlo.add across dimensions = [2] : (tensor<8x2x6xf32>, tensor<f32>) -> tensor<8x2xf32>
    %143 = stablehlo.reshape %142 : (tensor<8x2xf32>) -> tensor<8x2x1xf32>
    %144 = stablehlo.multiply %140, %28 : tensor<8x2x6xf32>
    %145 = stablehlo.multiply %144, %26 : tensor<8x2x6xf32>
    %146 = stablehlo.add %144, %145 : tensor<8x2x6xf32>
    %147 = stablehlo.reduce(%143 init: %cst_17) applies stablehlo.add across dimensions = [2] : (tensor<8x2x1xf32>, tensor<f32>) -> tensor<8x2xf32>
    %148 = stablehlo.dot_general %146, %arg10, batching_dims = [0] x [0], contracting_dims = [] x [] : (tensor<8x2x6xf32>, tensor<8x6xf32>) -> tensor<8x2x6x6xf32>
    %149 = stablehlo.transpose %148, dims = [0, 1, 3, 2] : (tensor<8x2x6x6xf32>) -> tensor<8x2x6x6xf32>
    %150 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4x6x6xf32>
    %151 = "stablehlo.scatter"(%150, %22, %149) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2, 3], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
    ^bb0(%arg12: tensor<f32>, %arg13: tensor<f32>):
      %385 = stablehlo.add %arg12, %arg13 : tensor<f32>
      stablehlo.return %385 : tensor<f32>
    }) : (tensor<4x6x6xf32>, tensor<8x2x1xi32>, tensor<8x2x6x6xf32>) -> tensor<4x6x6xf32>
    %152 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %153 = "stablehlo.scatter"(%152, %16, %147) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%arg12: tensor<f32>, %arg13: tensor<f32>):
      %385 = stablehlo.add %arg12, %arg13 : tensor<f32>
      stablehlo.return %385 : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<8x2x1xi32>, tensor<8x2xf32>) -> tensor<8x4xf32>
    %154 = stablehlo.add %137, %153 : tensor<8x4xf32>
    %155 = stablehlo.broadcast_in_dim %14, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x4xf32>
    %156 = stablehlo.multiply %154, %155 : tensor<8x4xf32>
    %157 = stablehlo.multiply %156, %7 : tensor<8x4xf32>
    %158 = stablehlo.reduce(%157 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %159 = stablehlo.reshape %158 : (tensor<8xf32>) -> tensor<8x1xf32>
    %160 = stablehlo.negate %159 : tensor<8x1xf32>
    %161 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x4xf32>
    %162 = stablehlo.divide %154, %161 : tensor<8x4xf32>
    %163 = stablehlo.reduce(%160 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<8x1xf32>, tensor<f32>) -> tensor<8xf32>
    %164 = stablehlo.broadcast_in_dim %163, dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>
    %165 = stablehlo.add %162, %164 : tensor<8x4xf32>
    %166 = stablehlo.multiply %165, %7 : tensor<8x4xf32>
    %167 = stablehlo.dot_general %166, %arg10, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %168 = stablehlo.transpose %167, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %169 = stablehlo.subtract %arg3, %c_15 : tensor<i32>
    %170 = stablehlo.add %169, %c_9 : tensor<i32>
    %171 = stablehlo.convert %170 : (tensor<i32>) -> tensor<f32>
    %172 = stablehlo.power %171, %cst_8 : tensor<f32>
    %173 = stablehlo.subtract %cst_16, %172 : tensor<f32>
    %174 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %175 = stablehlo.multiply %151, %151 : tensor<4x6x6xf32>
    %176 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x6x6xf32>
    %177 = stablehlo.add %175, %176 : tensor<4x6x6xf32>
    %178 = stablehlo.broadcast_in_dim %173, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %179 = stablehlo.multiply %178, %arg4 : tensor<4x6xf32>
    %180 = stablehlo.subtract %cst_16, %173 : tensor<f32>
    %181 = stablehlo.reduce(%177 init: %cst_17) applies stablehlo.add across dimensions = [2] : (tensor<4x6x6xf32>, tensor<f32>) -> tensor<4x6xf32>
    %182 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %183 = stablehlo.divide %181, %182 : tensor<4x6xf32>
    %184 = stablehlo.broadcast_in_dim %180, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %185 = stablehlo.multiply %184, %183 : tensor<4x6xf32>
    %186 = stablehlo.add %179, %185 : tensor<4x6xf32>
    %187 = stablehlo.broadcast_in_dim %173, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %188 = stablehlo.multiply %187, %arg7 : tensor<4x6xf32>
    %189 = stablehlo.subtract %cst_16, %173 : tensor<f32>
    %190 = stablehlo.reduce(%177 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<4x6x6xf32>, tensor<f32>) -> tensor<4x6xf32>
    %191 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %192 = stablehlo.divide %190, %191 : tensor<4x6xf32>
    %193 = stablehlo.broadcast_in_dim %189, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %194 = stablehlo.multiply %193, %192 : tensor<4x6xf32>
    %195 = stablehlo.add %188, %194 : tensor<4x6xf32>
    %196 = stablehlo.reduce(%186 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    %197 = stablehlo.broadcast_in_dim %196, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %198 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %199 = stablehlo.divide %197, %198 : tensor<4x1xf32>
    %200 = stablehlo.broadcast_in_dim %199, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x6xf32>
    %201 = stablehlo.divide %186, %200 : tensor<4x6xf32>
    %202 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %203 = stablehlo.power %201, %202 : tensor<4x6xf32>
    %204 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %205 = stablehlo.power %195, %204 : tensor<4x6xf32>
    %206 = stablehlo.broadcast_in_dim %203, dims = [0, 1] : (tensor<4x6xf32>) -> tensor<4x6x1xf32>
    %207 = stablehlo.broadcast_in_dim %206, dims = [0, 1, 2] : (tensor<4x6x1xf32>) -> tensor<4x6x6xf32>
    %208 = stablehlo.multiply %151, %207 : tensor<4x6x6xf32>
    %209 = stablehlo.broadcast_in_dim %205, dims = [0, 2] : (tensor<4x6xf32>) -> tensor<4x1x6xf32>
    %210 = stablehlo.broadcast_in_dim %209, dims = [0, 1, 2] : (tensor<4x1x6xf32>) -> tensor<4x6x6xf32>
    %211 = stablehlo.multiply %208, %210 : tensor<4x6x6xf32>
    %212 = stablehlo.subtract %arg3, %c_15 : tensor<i32>
    %213 = stablehlo.add %212, %c_9 : tensor<i32>
    %214 = stablehlo.convert %213 : (tensor<i32>) -> tensor<f32>
    %215 = stablehlo.power %214, %cst_8 : tensor<f32>
    %216 = stablehlo.subtract %cst_16, %215 : tensor<f32>
    %217 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %218 = stablehlo.multiply %168, %168 : tensor<6x4xf32>
    %219 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %220 = stablehlo.add %218, %219 : tensor<6x4xf32>
    %221 = stablehlo.broadcast_in_dim %216, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %222 = stablehlo.multiply %221, %arg5 : tensor<4xf32>
    %223 = stablehlo.subtract %cst_16, %216 : tensor<f32>
    %224 = stablehlo.reduce(%220 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<6x4xf32>, tensor<f32>) -> tensor<4xf32>
    %225 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %226 = stablehlo.divide %224, %225 : tensor<4xf32>
    %227 = stablehlo.broadcast_in_dim %223, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %228 = stablehlo.multiply %227, %226 : tensor<4xf32>
    %229 = stablehlo.add %222, %228 : tensor<4xf32>
    %230 = stablehlo.broadcast_in_dim %216, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %231 = stablehlo.multiply %230, %arg8 : tensor<6xf32>
    %232 = stablehlo.subtract %cst_16, %216 : tensor<f32>
    %233 = stablehlo.reduce(%220 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<6x4xf32>, tensor<f32>) -> tensor<6xf32>
    %234 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %235 = stablehlo.divide %233, %234 : tensor<6xf32>
    %236 = stablehlo.broadcast_in_dim %232, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %237 = stablehlo.multiply %236, %235 : tensor<6xf32>
    %238 = stablehlo.add %231, %237 : tensor<6xf32>
    %239 = stablehlo.reduce(%229 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %240 = stablehlo.broadcast_in_dim %239, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %241 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %242 = stablehlo.divide %240, %241 : tensor<1xf32>
    %243 = stablehlo.broadcast_in_dim %242, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
    %244 = stablehlo.divide %229, %243 : tensor<4xf32>
    %245 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %246 = stablehlo.power %244, %245 : tensor<4xf32>
    %247 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %248 = stablehlo.power %238, %247 : tensor<6xf32>
    %249 = stablehlo.broadcast_in_dim %246, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %250 = stablehlo.broadcast_in_dim %249, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<6x4xf32>
    %251 = stablehlo.multiply %168, %250 : tensor<6x4xf32>
    %252 = stablehlo.broadcast_in_dim %248, dims = [0] : (tensor<6xf32>) -> tensor<6x1xf32>
    %253 = stablehlo.broadcast_in_dim %252, dims = [0, 1] : (tensor<6x1xf32>) -> tensor<6x4xf32>
    %254 = stablehlo.multiply %251, %253 : tensor<6x4xf32>
    %255 = stablehlo.subtract %arg3, %c_15 : tensor<i32>
    %256 = stablehlo.add %255, %c_9 : tensor<i32>
    %257 = stablehlo.convert %256 : (tensor<i32>) -> tensor<f32>
    %258 = stablehlo.power %257, %cst_8 : tensor<f32>
    %259 = stablehlo.subtract %cst_16, %258 : tensor<f32>
    %260 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %261 = stablehlo.multiply %123, %123 : tensor<6x3xf32>
    %262 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<6x3xf32>
    %263 = stablehlo.add %261, %262 : tensor<6x3xf32>
    %264 = stablehlo.broadcast_in_dim %259, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %265 = stablehlo.multiply %264, %arg6 : tensor<3xf32>
    %266 = stablehlo.subtract %cst_16, %259 : tensor<f32>
    %267 = stablehlo.reduce(%263 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<6x3xf32>, tensor<f32>) -> tensor<3xf32>
    %268 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %269 = stablehlo.divide %267, %268 : tensor<3xf32>
    %270 = stablehlo.broadcast_in_dim %266, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %271 = stablehlo.multiply %270, %269 : tensor<3xf32>
    %272 = stablehlo.add %265, %271 : tensor<3xf32>
    %273 = stablehlo.broadcast_in_dim %259, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %274 = stablehlo.multiply %273, %arg9 : tensor<6xf32>
    %275 = stablehlo.subtract %cst_16, %259 : tensor<f32>
    %276 = stablehlo.reduce(%263 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<6x3xf32>, tensor<f32>) -> tensor<6xf32>
    %277 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %278 = stablehlo.divide %276, %277 : tensor<6xf32>
    %279 = stablehlo.broadcast_in_dim %275, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %280 = stablehlo.multiply %279, %278 : tensor<6xf32>
    %281 = stablehlo.add %274, %280 : tensor<6xf32>
    %282 = stablehlo.reduce(%272 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %283 = stablehlo.broadcast_in_dim %282, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %284 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %285 = stablehlo.divide %283, %284 : tensor<1xf32>
    %286 = stablehlo.broadcast_in_dim %285, dims = [0] : (tensor<1xf32>) -> tensor<3xf32>
    %287 = stablehlo.divide %272, %286 : tensor<3xf32>
    %288 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %289 = stablehlo.power %287, %288 : tensor<3xf32>
    %290 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %291 = stablehlo.power %281, %290 : tensor<6xf32>
    %292 = stablehlo.broadcast_in_dim %289, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
    %293 = stablehlo.broadcast_in_dim %292, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<6x3xf32>
    %294 = stablehlo.multiply %123, %293 : tensor<6x3xf32>
    %295 = stablehlo.broadcast_in_dim %291, dims = [0] : (tensor<6xf32>) -> tensor<6x1xf32>
    %296 = stablehlo.broadcast_in_dim %295, dims = [0, 1] : (tensor<6x1xf32>) -> tensor<6x3xf32>
    %297 = stablehlo.multiply %294, %296 : tensor<6x3xf32>
    %298 = stablehlo.compare LT, %arg3, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %299 = stablehlo.add %arg3, %c_9 : tensor<i32>
    %300 = call @_where_4(%298, %299, %c) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %301 = stablehlo.multiply %211, %211 : tensor<4x6x6xf32>
    %302 = stablehlo.reduce(%301 init: %cst_17) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x6x6xf32>, tensor<f32>) -> tensor<f32>
    %303 = stablehlo.divide %302, %cst_2 : tensor<f32>
    %304 = stablehlo.sqrt %303 : tensor<f32>
    %305 = stablehlo.divide %304, %cst_16 : tensor<f32>
    %306 = stablehlo.maximum %cst_16, %305 : tensor<f32>
    %307 = stablehlo.broadcast_in_dim %306, dims = [] : (tensor<f32>) -> tensor<4x6x6xf32>
    %308 = stablehlo.divide %211, %307 : tensor<4x6x6xf32>
    %309 = stablehlo.multiply %254, %254 : tensor<6x4xf32>
    %310 = stablehlo.reduce(%309 init: %cst_17) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x4xf32>, tensor<f32>) -> tensor<f32>
    %311 = stablehlo.divide %310, %cst_1 : tensor<f32>
    %312 = stablehlo.sqrt %311 : tensor<f32>
    %313 = stablehlo.divide %312, %cst_16 : tensor<f32>
    %314 = stablehlo.maximum %cst_16, %313 : tensor<f32>
    %315 = stablehlo.broadcast_in_dim %314, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %316 = stablehlo.divide %254, %315 : tensor<6x4xf32>
    %317 = stablehlo.multiply %297, %297 : tensor<6x3xf32>
    %318 = stablehlo.reduce(%317 init: %cst_17) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x3xf32>, tensor<f32>) -> tensor<f32>
    %319 = stablehlo.divide %318, %cst_0 : tensor<f32>
    %320 = stablehlo.sqrt %319 : tensor<f32>
    %321 = stablehlo.divide %320, %cst_16 : tensor<f32>
    %322 = stablehlo.maximum %cst_16, %321 : tensor<f32>
    %323 = stablehlo.broadcast_in_dim %322, dims = [] : (tensor<f32>) -> tensor<6x3xf32>
    %324 = stablehlo.divide %297, %323 : tensor<6x3xf32>
    %325 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<4x6x6xf32>
    %326 = stablehlo.multiply %325, %308 : tensor<4x6x6xf32>
    %327 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %328 = stablehlo.multiply %327, %316 : tensor<6x4xf32>
    %329 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<6x3xf32>
    %330 = stablehlo.multiply %329, %324 : tensor<6x3xf32>
    %331 = stablehlo.multiply %arg0, %arg0 : tensor<4x6x6xf32>
    %332 = stablehlo.reduce(%331 init: %cst_17) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x6x6xf32>, tensor<f32>) -> tensor<f32>
    %333 = stablehlo.divide %332, %cst_2 : tensor<f32>
    %334 = stablehlo.sqrt %333 : tensor<f32>
    %335 = stablehlo.compare LE, %334, %cst_12, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %336 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<4x6x6xf32>
    %337 = call @_where_5(%335, %336, %arg0) : (tensor<i1>, tensor<4x6x6xf32>, tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
    %338 = stablehlo.compare LE, %334, %cst_12, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %339 = stablehlo.multiply %337, %337 : tensor<4x6x6xf32>
    %340 = stablehlo.reduce(%339 init: %cst_17) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x6x6xf32>, tensor<f32>) -> tensor<f32>
    %341 = stablehlo.divide %340, %cst_2 : tensor<f32>
    %342 = stablehlo.sqrt %341 : tensor<f32>
    %343 = call @_where_6(%338, %cst_12, %342) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %344 = stablehlo.broadcast_in_dim %343, dims = [] : (tensor<f32>) -> tensor<4x6x6xf32>
    %345 = stablehlo.multiply %326, %344 : tensor<4x6x6xf32>
    %346 = stablehlo.multiply %arg1, %arg1 : tensor<6x4xf32>
    %347 = stablehlo.reduce(%346 init: %cst_17) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x4xf32>, tensor<f32>) -> tensor<f32>
    %348 = stablehlo.divide %347, %cst_1 : tensor<f32>
    %349 = stablehlo.sqrt %348 : tensor<f32>
    %350 = stablehlo.compare LE, %349, %cst_12, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %351 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %352 = call @_where_7(%350, %351, %arg1) : (tensor<i1>, tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    %353 = stablehlo.compare LE, %349, %cst_12, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %354 = stablehlo.multiply %352, %352 : tensor<6x4xf32>
    %355 = stablehlo.reduce(%354 init: %cst_17) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x4xf32>, tensor<f32>) -> tensor<f32>
    %356 = stablehlo.divide %355, %cst_1 : tensor<f32>
    %357 = stablehlo.sqrt %356 : tensor<f32>
    %358 = call @_where_6(%353, %cst_12, %357) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %359 = stablehlo.broadcast_in_dim %358, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %360 = stablehlo.multiply %328, %359 : tensor<6x4xf32>
    %361 = stablehlo.multiply %arg2, %arg2 : tensor<6x3xf32>
    %362 = stablehlo.reduce(%361 init: %cst_17) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x3xf32>, tensor<f32>) -> tensor<f32>
    %363 = stablehlo.divide %362, %cst_0 : tensor<f32>
    %364 = stablehlo.sqrt %363 : tensor<f32>
    %365 = stablehlo.compare LE, %364, %cst_12, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %366 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<6x3xf32>
    %367 = call @_where_8(%365, %366, %arg2) : (tensor<i1>, tensor<6x3xf32>, tensor<6x3xf32>) -> tensor<6x3xf32>
    %368 = stablehlo.compare LE, %364, %cst_12, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %369 = stablehlo.multiply %367, %367 : tensor<6x3xf32>
    %370 = stablehlo.reduce(%369 init: %cst_17) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x3xf32>, tensor<f32>) -> tensor<f32>
    %371 = stablehlo.divide %370, %cst_0 : tensor<f32>
    %372 = stablehlo.sqrt %371 : tensor<f32>
    %373 = call @_where_6(%368, %cst_12, %372) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %374 = stablehlo.broadcast_in_dim %373, dims = [] : (tensor<f32>) -> tensor<6x3xf32>
    %375 = stablehlo.multiply %330, %374 : tensor<6x3xf32>
    %376 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x6x6xf32>
    %377 = stablehlo.multiply %376, %345 : tensor<4x6x6xf32>
    %378 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %379 = stablehlo.multiply %378, %360 : tensor<6x4xf32>
    %380 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x3xf32>
    %381 = stablehlo.multiply %380, %375 : tensor<6x3xf32>
    %382 = stablehlo.add %arg0, %377 : tensor<4x6x6xf32>
    %383 = stablehlo.add %arg1, %379 : tensor<6x4xf32>
    %384 = stablehlo.add %arg2, %381 : tensor<6x3xf32>
    return %382, %383, %384, %300, %186, %229, %272, %195, %238, %281, %174, %217, %260, %107 : tensor<4x6x6xf32>, tensor<6x4xf32>, tensor<6x3xf32>, tensor<i32>, tensor<4x6xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<f32>
  }
  func.func private @chlo.top_k.impl(%arg0: tensor<8x4xf32>) -> (tensor<8x2xf32>, tensor<8x2xi32>) {
    %0 = stablehlo.iota dim = 1 : tensor<8x4xi32>
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<i32>, %arg4: tensor<i32>):
      %4 = stablehlo.compare GT, %arg1, %arg2, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }) : (tensor<8x4xf32>, tensor<8x4xi32>) -> (tensor<8x4xf32>, tensor<8x4xi32>)
    %2 = stablehlo.slice %1#0 [0:8, 0:2] : (tensor<8x4xf32>) -> tensor<8x2xf32>
    %3 = stablehlo.slice %1#1 [0:8, 0:2] : (tensor<8x4xi32>) -> tensor<8x2xi32>
    return %2, %3 : tensor<8x2xf32>, tensor<8x2xi32>
  }
  func.func private @_one_hot(%arg0: tensor<8xi32>) -> tensor<8x4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %1 = stablehlo.iota dim = 1 : tensor<1x4xi32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<8x1xi32>) -> tensor<8x4xi32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x4xi32>) -> tensor<8x4xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi1>
    %5 = stablehlo.convert %4 : (tensor<8x4xi1>) -> tensor<8x4xf32>
    return %5 : tensor<8x4xf32>
  }
  func.func private @cumsum(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = call @cumsum_0(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
  func.func private @cumsum_0(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 8, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
  func.func private @argsort(%arg0: tensor<8xf32>) -> tensor<8xi32> {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.iota dim = 0 : tensor<8xi32>
    %1 = stablehlo.iota dim = 0 : tensor<8xui32>
    %2:3 = "stablehlo.sort"(%arg0, %0, %1) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<i32>, %arg4: tensor<i32>, %arg5: tensor<ui32>, %arg6: tensor<ui32>):
      %3 = stablehlo.compare EQ, %arg1, %cst_0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.select %3, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %5 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.select %5, %cst, %4 : tensor<i1>, tensor<f32>
      %7 = stablehlo.compare EQ, %arg2, %cst_0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %8 = stablehlo.select %7, %cst_0, %arg2 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.select %9, %cst, %8 : tensor<i1>, tensor<f32>
      %11 = stablehlo.compare LT, %6, %10, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    }) : (tensor<8xf32>, tensor<8xi32>, tensor<8xui32>) -> (tensor<8xf32>, tensor<8xi32>, tensor<8xui32>)
    return %2#1 : tensor<8xi32>
  }
  func.func private @argmax(%arg0: tensor<8x3xf32>) -> tensor<8xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.iota dim = 1 : tensor<8x3xi32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<8x3xf32>, tensor<8x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<8xi32>
  }
  func.func private @sort(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4x1xui32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.iota dim = 0 : tensor<8x4xui32>
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<ui32>, %arg4: tensor<ui32>):
      %3 = stablehlo.compare EQ, %arg1, %cst_0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.select %3, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %5 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.select %5, %cst, %4 : tensor<i1>, tensor<f32>
      %7 = stablehlo.compare EQ, %arg2, %cst_0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %8 = stablehlo.select %7, %cst_0, %arg2 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.select %9, %cst, %8 : tensor<i1>, tensor<f32>
      %11 = stablehlo.compare LT, %6, %10, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    }) : (tensor<8x4xf32>, tensor<8x4xui32>) -> (tensor<8x4xf32>, tensor<8x4xui32>)
    %2 = stablehlo.broadcast_in_dim %1#1, dims = [0, 1] : (tensor<8x4xui32>) -> tensor<8x4x1xui32>
    return %1#0, %2 : tensor<8x4xf32>, tensor<8x4x1xui32>
  }
  func.func private @take_along_axis(%arg0: tensor<8x3xf32>, %arg1: tensor<8x1xi32>) -> (tensor<8x1xf32>, tensor<8x1x1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<2> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<3> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<8x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x1xi1>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<8x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<8x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<8x1xi1>, tensor<8x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<8x1xi32>) -> tensor<8x1x1xi32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<8x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<8x1x1xi32>, tensor<8x1x1xi32>) -> tensor<8x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<8x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<8x1x1xi32>, tensor<8x1x1xi32>) -> tensor<8x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<8x1x1xi1>
    %12 = stablehlo.reduce(%11 init: %c) applies stablehlo.and across dimensions = [2] : (tensor<8x1x1xi1>, tensor<i1>) -> tensor<8x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x3xf32>, tensor<8x1x1xi32>) -> tensor<8x1xf32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<8x1xi1>, tensor<8x1xf32>
    return %15, %5 : tensor<8x1xf32>, tensor<8x1x1xi32>
  }
  func.func private @_take(%arg0: tensor<8x1xf32>, %arg1: tensor<i32>) -> (tensor<8xf32>, tensor<1xi32>) {
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
    %10 = "stablehlo.gather"(%arg0, %4) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, slice_sizes = array<i64: 8, 1>}> : (tensor<8x1xf32>, tensor<1xi32>) -> tensor<8xf32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<8xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %13 = stablehlo.select %11, %10, %12 : tensor<8xi1>, tensor<8xf32>
    return %13, %3 : tensor<8xf32>, tensor<1xi32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @_take_1(%arg0: tensor<1xi32>, %arg1: tensor<8xf32>) -> tensor<8x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x1xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<8x1xf32>, tensor<1xi32>, tensor<8xf32>) -> tensor<8x1xf32>
    return %1 : tensor<8x1xf32>
  }
  func.func private @take_along_axis_2(%arg0: tensor<8x1x1xi32>, %arg1: tensor<8x1xf32>) -> tensor<8x3xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x3xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<8x3xf32>, tensor<8x1x1xi32>, tensor<8x1xf32>) -> tensor<8x3xf32>
    return %1 : tensor<8x3xf32>
  }
  func.func private @sort_3(%arg0: tensor<8x4x1xui32>, %arg1: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], input_batching_dims = [1], scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<8x4x1xui32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
  func.func private @_where_4(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @_where_5(%arg0: tensor<i1>, %arg1: tensor<4x6x6xf32>, %arg2: tensor<4x6x6xf32>) -> tensor<4x6x6xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<4x6x6xf32>
    return %0 : tensor<4x6x6xf32>
  }
  func.func private @_where_6(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.select %arg0, %0, %arg2 : tensor<i1>, tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @_where_7(%arg0: tensor<i1>, %arg1: tensor<6x4xf32>, %arg2: tensor<6x4xf32>) -> tensor<6x4xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<6x4xf32>
    return %0 : tensor<6x4xf32>
  }
  func.func private @_where_8(%arg0: tensor<i1>, %arg1: tensor<6x3xf32>, %arg2: tensor<6x3xf32>) -> tensor<6x3xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<6x3xf32>
    return %0 : tensor<6x3xf32>
  }
}
