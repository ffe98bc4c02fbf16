module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xf32> {tf.aliasing_output = 0 : i32} loc("p['s']"), %arg1: tensor<6x4xf32> {tf.aliasing_output = 1 : i32} loc("p['u']"), %arg2: tensor<5x6x4xf32> {tf.aliasing_output = 2 : i32} loc("p['w']"), %arg3: tensor<6xi32> loc("data[0]"), %arg4: tensor<6xi32> loc("data[1]"), %arg5: tensor<6x4xf32> loc("data[2]")) -> (tensor<3xf32> {jax.result_info = "result[0]['s']"}, tensor<6x4xf32> {jax.result_info = "result[0]['u']"}, tensor<5x6x4xf32> {jax.result_info = "result[0]['w']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-1.000000e-01> : tensor<f32>
    %c = stablehlo.constant dense<[5, 3]> : tensor<2xi32>
    %c_0 = stablehlo.constant dense<5> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<true> : tensor<i1>
    %c_2 = stablehlo.constant dense<4> : tensor<1xi32>
    %cst_3 = stablehlo.constant dense<6.000000e+01> : tensor<f32>
    %cst_4 = stablehlo.constant dense<6.300000e+01> : tensor<f32>
    %cst_5 = stablehlo.constant dense<2.000000e+01> : tensor<f32>
    %cst_6 = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %cst_7 = stablehlo.constant dense<1.200000e+02> : tensor<f32>
    %cst_8 = stablehlo.constant dense<2.400000e+01> : tensor<f32>
    %c_9 = stablehlo.constant dense<3> : tensor<i32>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_11 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c_12 = stablehlo.constant dense<1> : tensor<i32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c_14 = stablehlo.constant dense<0> : tensor<ui32>
    %c_15 = stablehlo.constant dense<1> : tensor<ui32>
    %cst_16 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %c_17 = stablehlo.constant dense<4> : tensor<i32>
    %c_18 = stablehlo.constant dense<6> : tensor<i32>
    %c_19 = stablehlo.constant dense<5> : tensor<i32>
    %c_20 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %1 = stablehlo.compare LT, %arg3, %0, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %2 = stablehlo.broadcast_in_dim %c_19, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %3 = stablehlo.add %arg3, %2 : tensor<6xi32>
    %4 = stablehlo.select %1, %3, %arg3 : tensor<6xi1>, tensor<6xi32>
    %5 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %6 = stablehlo.compare LT, %arg4, %5, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %7 = stablehlo.broadcast_in_dim %c_18, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %8 = stablehlo.add %arg4, %7 : tensor<6xi32>
    %9 = stablehlo.select %6, %8, %arg4 : tensor<6xi1>, tensor<6xi32>
    %10 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<6xi32>) -> tensor<6x1xi32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<6xi32>) -> tensor<6x1xi32>
    %12 = stablehlo.concatenate %10, %11, dim = 1 : (tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x2xi32>
    %13 = "stablehlo.gather"(%arg2, %12) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<5x6x4xf32>, tensor<6x2xi32>) -> tensor<6x4xf32>
    %14 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %15 = stablehlo.compare LT, %arg3, %14, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %16 = stablehlo.broadcast_in_dim %c_18, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %17 = stablehlo.add %arg3, %16 : tensor<6xi32>
    %18 = stablehlo.select %15, %17, %arg3 : tensor<6xi1>, tensor<6xi32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0] : (tensor<6xi32>) -> tensor<6x1xi32>
    %20 = "stablehlo.gather"(%arg2, %19) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 5, 1, 4>}> : (tensor<5x6x4xf32>, tensor<6x1xi32>) -> tensor<5x6x4xf32>
    %21 = call @remainder(%arg4, %c_17) : (tensor<6xi32>, tensor<i32>) -> tensor<6xi32>
    %22 = stablehlo.slice %arg0 [0:1] : (tensor<3xf32>) -> tensor<1xf32>
    %23 = stablehlo.reshape %22 : (tensor<1xf32>) -> tensor<f32>
    %24 = stablehlo.multiply %cst_16, %23 : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %26 = stablehlo.compare LT, %arg3, %25, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %27 = stablehlo.broadcast_in_dim %c_18, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %28 = stablehlo.add %arg3, %27 : tensor<6xi32>
    %29 = stablehlo.select %26, %28, %arg3 : tensor<6xi1>, tensor<6xi32>
    %30 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %31 = stablehlo.compare LT, %21, %30, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %32 = stablehlo.broadcast_in_dim %c_17, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %33 = stablehlo.add %21, %32 : tensor<6xi32>
    %34 = stablehlo.select %31, %33, %21 : tensor<6xi1>, tensor<6xi32>
    %35 = stablehlo.broadcast_in_dim %29, dims = [0] : (tensor<6xi32>) -> tensor<6x1xi32>
    %36 = stablehlo.broadcast_in_dim %34, dims = [0] : (tensor<6xi32>) -> tensor<6x1xi32>
    %37 = stablehlo.concatenate %35, %36, dim = 1 : (tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x2xi32>
    %38 = stablehlo.broadcast_in_dim %24, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %39 = stablehlo.iota dim = 0 : tensor<6xui32>
    %40 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<ui32>) -> tensor<6xui32>
    %41 = stablehlo.add %39, %40 : tensor<6xui32>
    %42 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<ui32>) -> tensor<6x4xui32>
    %43 = "stablehlo.scatter"(%42, %37, %41) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
    ^bb0(%arg6: tensor<ui32>, %arg7: tensor<ui32>):
      stablehlo.return %arg7 : tensor<ui32>
    }) : (tensor<6x4xui32>, tensor<6x2xi32>, tensor<6xui32>) -> tensor<6x4xui32>
    %44 = "stablehlo.gather"(%43, %37) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<6x4xui32>, tensor<6x2xi32>) -> tensor<6xui32>
    %45 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<ui32>) -> tensor<6x4xui32>
    %46 = stablehlo.compare EQ, %43, %45, UNSIGNED : (tensor<6x4xui32>, tensor<6x4xui32>) -> tensor<6x4xi1>
    %47 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %48 = stablehlo.select %46, %arg1, %47 : tensor<6x4xi1>, tensor<6x4xf32>
    %49 = stablehlo.compare EQ, %41, %44, UNSIGNED : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xi1>
    %50 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %51 = stablehlo.select %49, %38, %50 : tensor<6xi1>, tensor<6xf32>
    %52 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<ui32>) -> tensor<6x4xui32>
    %53 = stablehlo.compare EQ, %43, %52, UNSIGNED : (tensor<6x4xui32>, tensor<6x4xui32>) -> tensor<6x4xi1>
    %54 = stablehlo.compare EQ, %41, %44, UNSIGNED : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xi1>
    %55 = "stablehlo.scatter"(%48, %37, %51) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %357 = stablehlo.add %arg6, %arg7 : tensor<f32>
      stablehlo.return %357 : tensor<f32>
    }) : (tensor<6x4xf32>, tensor<6x2xi32>, tensor<6xf32>) -> tensor<6x4xf32>
    %56 = stablehlo.slice %arg0 [1:2] : (tensor<3xf32>) -> tensor<1xf32>
    %57 = stablehlo.reshape %56 : (tensor<1xf32>) -> tensor<f32>
    %58 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %59 = stablehlo.broadcast_in_dim %57, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %60 = "stablehlo.scatter"(%55, %58, %59) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %357 = stablehlo.multiply %arg6, %arg7 : tensor<f32>
      stablehlo.return %357 : tensor<f32>
    }) : (tensor<6x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<6x4xf32>
    %61 = stablehlo.slice %arg3 [0:1] : (tensor<6xi32>) -> tensor<1xi32>
    %62 = stablehlo.reshape %61 : (tensor<1xi32>) -> tensor<i32>
    %63 = stablehlo.slice %arg4 [0:1] : (tensor<6xi32>) -> tensor<1xi32>
    %64 = stablehlo.reshape %63 : (tensor<1xi32>) -> tensor<i32>
    %65 = stablehlo.compare LT, %62, %c_20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %66 = stablehlo.add %62, %c_19 : tensor<i32>
    %67 = stablehlo.select %65, %66, %62 : tensor<i1>, tensor<i32>
    %68 = stablehlo.compare LT, %64, %c_20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %69 = stablehlo.add %64, %c_17 : tensor<i32>
    %70 = stablehlo.select %68, %69, %64 : tensor<i1>, tensor<i32>
    %71 = stablehlo.dynamic_slice %arg2, %67, %c_12, %70, sizes = [2, 3, 1] : (tensor<5x6x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x1xf32>
    %72 = stablehlo.slice %arg5 [0:2, 0:2] : (tensor<6x4xf32>) -> tensor<2x2xf32>
    %73 = stablehlo.slice %arg0 [2:3] : (tensor<3xf32>) -> tensor<1xf32>
    %74 = stablehlo.reshape %73 : (tensor<1xf32>) -> tensor<f32>
    %75 = stablehlo.broadcast_in_dim %74, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %76 = stablehlo.multiply %72, %75 : tensor<2x2xf32>
    %77 = stablehlo.slice %arg3 [1:2] : (tensor<6xi32>) -> tensor<1xi32>
    %78 = stablehlo.reshape %77 : (tensor<1xi32>) -> tensor<i32>
    %79 = stablehlo.slice %arg4 [1:2] : (tensor<6xi32>) -> tensor<1xi32>
    %80 = stablehlo.reshape %79 : (tensor<1xi32>) -> tensor<i32>
    %81 = stablehlo.compare LT, %78, %c_20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %82 = stablehlo.add %78, %c_18 : tensor<i32>
    %83 = stablehlo.select %81, %82, %78 : tensor<i1>, tensor<i32>
    %84 = stablehlo.compare LT, %80, %c_20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %85 = stablehlo.add %80, %c_17 : tensor<i32>
    %86 = stablehlo.select %84, %85, %80 : tensor<i1>, tensor<i32>
    %87 = stablehlo.dynamic_update_slice %arg1, %76, %83, %86 : (tensor<6x4xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>
    %88 = stablehlo.slice %arg0 [1:2] : (tensor<3xf32>) -> tensor<1xf32>
    %89 = stablehlo.reshape %88 : (tensor<1xf32>) -> tensor<f32>
    %90 = stablehlo.broadcast_in_dim %89, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %91 = stablehlo.multiply %arg5, %90 : tensor<6x4xf32>
    %92 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %93 = stablehlo.broadcast_in_dim %arg3, dims = [0] : (tensor<6xi32>) -> tensor<6x1xi32>
    %94 = "stablehlo.scatter"(%92, %93, %91) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %357 = stablehlo.maximum %arg6, %arg7 : tensor<f32>
      stablehlo.return %357 : tensor<f32>
    }) : (tensor<5x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<5x4xf32>
    %95 = "stablehlo.gather"(%92, %93) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<5x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
    %96 = "stablehlo.gather"(%94, %93) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<5x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
    %97 = stablehlo.compare EQ, %91, %96, FLOAT : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xi1>
    %98 = stablehlo.compare EQ, %95, %96, FLOAT : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xi1>
    %99 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %100 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %101 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %102 = stablehlo.select %97, %100, %101 : tensor<6x4xi1>, tensor<6x4xf32>
    %103 = "stablehlo.scatter"(%99, %93, %102) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %357 = stablehlo.add %arg6, %arg7 : tensor<f32>
      stablehlo.return %357 : tensor<f32>
    }) : (tensor<5x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<5x4xf32>
    %104 = "stablehlo.gather"(%103, %93) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<5x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
    %105 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %106 = stablehlo.add %104, %105 : tensor<6x4xf32>
    %107 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %108 = stablehlo.divide %107, %106 : tensor<6x4xf32>
    %109 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %110 = stablehlo.divide %109, %104 : tensor<6x4xf32>
    %111 = stablehlo.select %98, %108, %110 : tensor<6x4xi1>, tensor<6x4xf32>
    %112 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %113 = stablehlo.select %97, %111, %112 : tensor<6x4xi1>, tensor<6x4xf32>
    %114 = stablehlo.broadcast_in_dim %arg3, dims = [0] : (tensor<6xi32>) -> tensor<6x1xi32>
    %115 = stablehlo.iota dim = 0 : tensor<4xi32>
    %116 = stablehlo.broadcast_in_dim %115, dims = [1] : (tensor<4xi32>) -> tensor<1x4xi32>
    %117 = stablehlo.broadcast_in_dim %114, dims = [0, 1] : (tensor<6x1xi32>) -> tensor<6x4xi32>
    %118 = stablehlo.broadcast_in_dim %116, dims = [0, 1] : (tensor<1x4xi32>) -> tensor<6x4xi32>
    %119 = stablehlo.add %117, %118 : tensor<6x4xi32>
    %120 = call @remainder_0(%119, %c_18) : (tensor<6x4xi32>, tensor<i32>) -> tensor<6x4xi32>
    %121:2 = call @take_along_axis(%arg1, %120) : (tensor<6x4xf32>, tensor<6x4xi32>) -> (tensor<6x4xf32>, tensor<6x4x1xi32>)
    %122 = call @_pad(%arg1) : (tensor<6x4xf32>) -> tensor<9x7xf32>
    %123 = call @_flip_3(%arg2) : (tensor<5x6x4xf32>) -> tensor<5x6x4xf32>
    %124 = stablehlo.slice %123 [0:5:2, 1:6, 0:4] : (tensor<5x6x4xf32>) -> tensor<3x5x4xf32>
    %125 = stablehlo.reverse %124, dims = [2] : tensor<3x5x4xf32>
    %126 = stablehlo.is_finite %94 : (tensor<5x4xf32>) -> tensor<5x4xi1>
    %127 = call @_where_4(%126, %94, %c_20) : (tensor<5x4xi1>, tensor<5x4xf32>, tensor<i32>) -> tensor<5x4xf32>
    %128 = stablehlo.iota dim = 0 : tensor<24xi32>
    %129 = stablehlo.reshape %128 : (tensor<24xi32>) -> tensor<6x4xi32>
    %130 = call @remainder_0(%129, %c_9) : (tensor<6x4xi32>, tensor<i32>) -> tensor<6x4xi32>
    %131 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %132 = stablehlo.add %131, %130 : tensor<6x4xi32>
    %133 = stablehlo.convert %132 : (tensor<6x4xi32>) -> tensor<6x4xf32>
    %134 = stablehlo.multiply %13, %133 : tensor<6x4xf32>
    %135 = stablehlo.reduce(%134 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x4xf32>, tensor<f32>) -> tensor<f32>
    %136 = stablehlo.divide %135, %cst_8 : tensor<f32>
    %137 = stablehlo.multiply %136, %136 : tensor<f32>
    %138 = stablehlo.multiply %cst_16, %136 : tensor<f32>
    %139 = stablehlo.add %cst_13, %137 : tensor<f32>
    %140 = stablehlo.iota dim = 0 : tensor<120xi32>
    %141 = stablehlo.reshape %140 : (tensor<120xi32>) -> tensor<5x6x4xi32>
    %142 = call @remainder_5(%141, %c_9) : (tensor<5x6x4xi32>, tensor<i32>) -> tensor<5x6x4xi32>
    %143 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<5x6x4xi32>
    %144 = stablehlo.add %143, %142 : tensor<5x6x4xi32>
    %145 = stablehlo.convert %144 : (tensor<5x6x4xi32>) -> tensor<5x6x4xf32>
    %146 = stablehlo.multiply %20, %145 : tensor<5x6x4xf32>
    %147 = stablehlo.reduce(%146 init: %cst_13) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<5x6x4xf32>, tensor<f32>) -> tensor<f32>
    %148 = stablehlo.divide %147, %cst_7 : tensor<f32>
    %149 = stablehlo.multiply %148, %148 : tensor<f32>
    %150 = stablehlo.multiply %cst_16, %148 : tensor<f32>
    %151 = stablehlo.add %139, %149 : tensor<f32>
    %152 = stablehlo.iota dim = 0 : tensor<24xi32>
    %153 = stablehlo.reshape %152 : (tensor<24xi32>) -> tensor<6x4xi32>
    %154 = call @remainder_0(%153, %c_9) : (tensor<6x4xi32>, tensor<i32>) -> tensor<6x4xi32>
    %155 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %156 = stablehlo.add %155, %154 : tensor<6x4xi32>
    %157 = stablehlo.convert %156 : (tensor<6x4xi32>) -> tensor<6x4xf32>
    %158 = stablehlo.multiply %60, %157 : tensor<6x4xf32>
    %159 = stablehlo.reduce(%158 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x4xf32>, tensor<f32>) -> tensor<f32>
    %160 = stablehlo.divide %159, %cst_8 : tensor<f32>
    %161 = stablehlo.multiply %160, %160 : tensor<f32>
    %162 = stablehlo.multiply %cst_16, %160 : tensor<f32>
    %163 = stablehlo.add %151, %161 : tensor<f32>
    %164 = stablehlo.iota dim = 0 : tensor<6xi32>
    %165 = stablehlo.reshape %164 : (tensor<6xi32>) -> tensor<2x3x1xi32>
    %166 = call @remainder_6(%165, %c_9) : (tensor<2x3x1xi32>, tensor<i32>) -> tensor<2x3x1xi32>
    %167 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<2x3x1xi32>
    %168 = stablehlo.add %167, %166 : tensor<2x3x1xi32>
    %169 = stablehlo.convert %168 : (tensor<2x3x1xi32>) -> tensor<2x3x1xf32>
    %170 = stablehlo.multiply %71, %169 : tensor<2x3x1xf32>
    %171 = stablehlo.reduce(%170 init: %cst_13) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<f32>
    %172 = stablehlo.divide %171, %cst_6 : tensor<f32>
    %173 = stablehlo.multiply %172, %172 : tensor<f32>
    %174 = stablehlo.multiply %cst_16, %172 : tensor<f32>
    %175 = stablehlo.add %163, %173 : tensor<f32>
    %176 = stablehlo.iota dim = 0 : tensor<24xi32>
    %177 = stablehlo.reshape %176 : (tensor<24xi32>) -> tensor<6x4xi32>
    %178 = call @remainder_0(%177, %c_9) : (tensor<6x4xi32>, tensor<i32>) -> tensor<6x4xi32>
    %179 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %180 = stablehlo.add %179, %178 : tensor<6x4xi32>
    %181 = stablehlo.convert %180 : (tensor<6x4xi32>) -> tensor<6x4xf32>
    %182 = stablehlo.multiply %87, %181 : tensor<6x4xf32>
    %183 = stablehlo.reduce(%182 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x4xf32>, tensor<f32>) -> tensor<f32>
    %184 = stablehlo.divide %183, %cst_8 : tensor<f32>
    %185 = stablehlo.multiply %184, %184 : tensor<f32>
    %186 = stablehlo.multiply %cst_16, %184 : tensor<f32>
    %187 = stablehlo.add %175, %185 : tensor<f32>
    %188 = stablehlo.iota dim = 0 : tensor<20xi32>
    %189 = stablehlo.reshape %188 : (tensor<20xi32>) -> tensor<5x4xi32>
    %190 = call @remainder_7(%189, %c_9) : (tensor<5x4xi32>, tensor<i32>) -> tensor<5x4xi32>
    %191 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<5x4xi32>
    %192 = stablehlo.add %191, %190 : tensor<5x4xi32>
    %193 = stablehlo.convert %192 : (tensor<5x4xi32>) -> tensor<5x4xf32>
    %194 = stablehlo.multiply %127, %193 : tensor<5x4xf32>
    %195 = stablehlo.reduce(%194 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x4xf32>, tensor<f32>) -> tensor<f32>
    %196 = stablehlo.divide %195, %cst_5 : tensor<f32>
    %197 = stablehlo.multiply %196, %196 : tensor<f32>
    %198 = stablehlo.multiply %cst_16, %196 : tensor<f32>
    %199 = stablehlo.add %187, %197 : tensor<f32>
    %200 = stablehlo.iota dim = 0 : tensor<24xi32>
    %201 = stablehlo.reshape %200 : (tensor<24xi32>) -> tensor<6x4xi32>
    %202 = call @remainder_0(%201, %c_9) : (tensor<6x4xi32>, tensor<i32>) -> tensor<6x4xi32>
    %203 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %204 = stablehlo.add %203, %202 : tensor<6x4xi32>
    %205 = stablehlo.convert %204 : (tensor<6x4xi32>) -> tensor<6x4xf32>
    %206 = stablehlo.multiply %121#0, %205 : tensor<6x4xf32>
    %207 = stablehlo.reduce(%206 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x4xf32>, tensor<f32>) -> tensor<f32>
    %208 = stablehlo.divide %207, %cst_8 : tensor<f32>
    %209 = stablehlo.multiply %208, %208 : tensor<f32>
    %210 = stablehlo.multiply %cst_16, %208 : tensor<f32>
    %211 = stablehlo.add %199, %209 : tensor<f32>
    %212 = stablehlo.iota dim = 0 : tensor<63xi32>
    %213 = stablehlo.reshape %212 : (tensor<63xi32>) -> tensor<9x7xi32>
    %214 = call @remainder_8(%213, %c_9) : (tensor<9x7xi32>, tensor<i32>) -> tensor<9x7xi32>
    %215 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<9x7xi32>
    %216 = stablehlo.add %215, %214 : tensor<9x7xi32>
    %217 = stablehlo.convert %216 : (tensor<9x7xi32>) -> tensor<9x7xf32>
    %218 = stablehlo.multiply %122, %217 : tensor<9x7xf32>
    %219 = stablehlo.reduce(%218 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<9x7xf32>, tensor<f32>) -> tensor<f32>
    %220 = stablehlo.divide %219, %cst_4 : tensor<f32>
    %221 = stablehlo.multiply %220, %220 : tensor<f32>
    %222 = stablehlo.multiply %cst_16, %220 : tensor<f32>
    %223 = stablehlo.add %211, %221 : tensor<f32>
    %224 = stablehlo.iota dim = 0 : tensor<60xi32>
    %225 = stablehlo.reshape %224 : (tensor<60xi32>) -> tensor<3x5x4xi32>
    %226 = call @remainder_9(%225, %c_9) : (tensor<3x5x4xi32>, tensor<i32>) -> tensor<3x5x4xi32>
    %227 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i32>) -> tensor<3x5x4xi32>
    %228 = stablehlo.add %227, %226 : tensor<3x5x4xi32>
    %229 = stablehlo.convert %228 : (tensor<3x5x4xi32>) -> tensor<3x5x4xf32>
    %230 = stablehlo.multiply %125, %229 : tensor<3x5x4xf32>
    %231 = stablehlo.reduce(%230 init: %cst_13) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x5x4xf32>, tensor<f32>) -> tensor<f32>
    %232 = stablehlo.divide %231, %cst_3 : tensor<f32>
    %233 = stablehlo.multiply %232, %232 : tensor<f32>
    %234 = stablehlo.multiply %cst_16, %232 : tensor<f32>
    %235 = stablehlo.add %223, %233 : tensor<f32>
    %236 = stablehlo.multiply %cst_10, %234 : tensor<f32>
    %237 = stablehlo.divide %236, %cst_3 : tensor<f32>
    %238 = stablehlo.broadcast_in_dim %237, dims = [] : (tensor<f32>) -> tensor<3x5x4xf32>
    %239 = stablehlo.multiply %238, %229 : tensor<3x5x4xf32>
    %240 = stablehlo.multiply %cst_10, %222 : tensor<f32>
    %241 = stablehlo.divide %240, %cst_4 : tensor<f32>
    %242 = stablehlo.broadcast_in_dim %241, dims = [] : (tensor<f32>) -> tensor<9x7xf32>
    %243 = stablehlo.multiply %242, %217 : tensor<9x7xf32>
    %244 = stablehlo.multiply %cst_10, %210 : tensor<f32>
    %245 = stablehlo.divide %244, %cst_8 : tensor<f32>
    %246 = stablehlo.broadcast_in_dim %245, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %247 = stablehlo.multiply %246, %205 : tensor<6x4xf32>
    %248 = stablehlo.multiply %cst_10, %198 : tensor<f32>
    %249 = stablehlo.divide %248, %cst_5 : tensor<f32>
    %250 = stablehlo.broadcast_in_dim %249, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %251 = stablehlo.multiply %250, %193 : tensor<5x4xf32>
    %252 = stablehlo.multiply %cst_10, %186 : tensor<f32>
    %253 = stablehlo.divide %252, %cst_8 : tensor<f32>
    %254 = stablehlo.broadcast_in_dim %253, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %255 = stablehlo.multiply %254, %181 : tensor<6x4xf32>
    %256 = stablehlo.multiply %cst_10, %174 : tensor<f32>
    %257 = stablehlo.divide %256, %cst_6 : tensor<f32>
    %258 = stablehlo.broadcast_in_dim %257, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %259 = stablehlo.multiply %258, %169 : tensor<2x3x1xf32>
    %260 = stablehlo.multiply %cst_10, %162 : tensor<f32>
    %261 = stablehlo.divide %260, %cst_8 : tensor<f32>
    %262 = stablehlo.broadcast_in_dim %261, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %263 = stablehlo.multiply %262, %157 : tensor<6x4xf32>
    %264 = stablehlo.multiply %cst_10, %150 : tensor<f32>
    %265 = stablehlo.divide %264, %cst_7 : tensor<f32>
    %266 = stablehlo.broadcast_in_dim %265, dims = [] : (tensor<f32>) -> tensor<5x6x4xf32>
    %267 = stablehlo.multiply %266, %145 : tensor<5x6x4xf32>
    %268 = stablehlo.multiply %cst_10, %138 : tensor<f32>
    %269 = stablehlo.divide %268, %cst_8 : tensor<f32>
    %270 = stablehlo.broadcast_in_dim %269, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %271 = stablehlo.multiply %270, %133 : tensor<6x4xf32>
    %272 = call @_where_10(%126, %251) : (tensor<5x4xi1>, tensor<5x4xf32>) -> tensor<5x4xf32>
    %273 = stablehlo.reverse %239, dims = [2] : tensor<3x5x4xf32>
    %274 = stablehlo.pad %273, %cst_13, low = [0, 1, 0], high = [0, 0, 0], interior = [1, 0, 0] : (tensor<3x5x4xf32>, tensor<f32>) -> tensor<5x6x4xf32>
    %275 = call @_flip_11(%274) : (tensor<5x6x4xf32>) -> tensor<5x6x4xf32>
    %276 = call @_pad_12(%243) : (tensor<9x7xf32>) -> tensor<6x4xf32>
    %277 = call @take_along_axis_16(%121#1, %247) : (tensor<6x4x1xi32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    %278 = stablehlo.add %276, %277 : tensor<6x4xf32>
    %279 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<6x1xi32>
    %280 = stablehlo.compare GE, %93, %279, SIGNED : (tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x1xi1>
    %281 = stablehlo.broadcast_in_dim %c_2, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %282 = stablehlo.broadcast_in_dim %281, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<6x1xi32>
    %283 = stablehlo.compare LE, %93, %282, SIGNED : (tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x1xi1>
    %284 = stablehlo.and %280, %283 : tensor<6x1xi1>
    %285 = stablehlo.reduce(%284 init: %c_1) applies stablehlo.and across dimensions = [1] : (tensor<6x1xi1>, tensor<i1>) -> tensor<6xi1>
    %286 = "stablehlo.gather"(%272, %93) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<5x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
    %287 = stablehlo.broadcast_in_dim %285, dims = [0] : (tensor<6xi1>) -> tensor<6x4xi1>
    %288 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %289 = stablehlo.select %287, %286, %288 : tensor<6x4xi1>, tensor<6x4xf32>
    %290 = stablehlo.multiply %289, %113 : tensor<6x4xf32>
    %291 = stablehlo.multiply %arg5, %290 : tensor<6x4xf32>
    %292 = stablehlo.reduce(%291 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x4xf32>, tensor<f32>) -> tensor<f32>
    %293 = stablehlo.broadcast_in_dim %292, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %294 = stablehlo.pad %293, %cst_13, low = [1], high = [1], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<3xf32>
    %295 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %296 = stablehlo.dynamic_update_slice %255, %295, %83, %86 : (tensor<6x4xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>
    %297 = stablehlo.dynamic_slice %255, %83, %86, sizes = [2, 2] : (tensor<6x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %298 = stablehlo.add %278, %296 : tensor<6x4xf32>
    %299 = stablehlo.multiply %72, %297 : tensor<2x2xf32>
    %300 = stablehlo.reduce(%299 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<f32>
    %301 = stablehlo.broadcast_in_dim %300, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %302 = stablehlo.pad %301, %cst_13, low = [2], high = [0], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<3xf32>
    %303 = stablehlo.add %294, %302 : tensor<3xf32>
    %304 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<5x6x4xf32>
    %305 = stablehlo.dynamic_update_slice %304, %259, %67, %c_12, %70 : (tensor<5x6x4xf32>, tensor<2x3x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x6x4xf32>
    %306 = stablehlo.add %275, %305 : tensor<5x6x4xf32>
    %307 = stablehlo.multiply %55, %263 : tensor<6x4xf32>
    %308 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %309 = stablehlo.compare GE, %58, %308, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %310 = stablehlo.compare LE, %58, %c_0, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %311 = stablehlo.and %309, %310 : tensor<1xi1>
    %312 = stablehlo.reduce(%311 init: %c_1) applies stablehlo.and across dimensions = [0] : (tensor<1xi1>, tensor<i1>) -> tensor<i1>
    %313 = "stablehlo.gather"(%307, %58) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1, 4>}> : (tensor<6x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %314 = stablehlo.broadcast_in_dim %312, dims = [] : (tensor<i1>) -> tensor<4xi1>
    %315 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %316 = stablehlo.select %314, %313, %315 : tensor<4xi1>, tensor<4xf32>
    %317 = "stablehlo.scatter"(%263, %58, %59) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %357 = stablehlo.multiply %arg6, %arg7 : tensor<f32>
      stablehlo.return %357 : tensor<f32>
    }) : (tensor<6x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<6x4xf32>
    %318 = stablehlo.reduce(%316 init: %cst_13) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %319 = stablehlo.broadcast_in_dim %318, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %320 = stablehlo.pad %319, %cst_13, low = [1], high = [1], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<3xf32>
    %321 = stablehlo.add %303, %320 : tensor<3xf32>
    %322 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i32>) -> tensor<6x2xi32>
    %323 = stablehlo.compare GE, %37, %322, SIGNED : (tensor<6x2xi32>, tensor<6x2xi32>) -> tensor<6x2xi1>
    %324 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<2xi32>) -> tensor<1x2xi32>
    %325 = stablehlo.broadcast_in_dim %324, dims = [0, 1] : (tensor<1x2xi32>) -> tensor<6x2xi32>
    %326 = stablehlo.compare LE, %37, %325, SIGNED : (tensor<6x2xi32>, tensor<6x2xi32>) -> tensor<6x2xi1>
    %327 = stablehlo.and %323, %326 : tensor<6x2xi1>
    %328 = stablehlo.reduce(%327 init: %c_1) applies stablehlo.and across dimensions = [1] : (tensor<6x2xi1>, tensor<i1>) -> tensor<6xi1>
    %329 = "stablehlo.gather"(%317, %37) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<6x4xf32>, tensor<6x2xi32>) -> tensor<6xf32>
    %330 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %331 = stablehlo.select %328, %329, %330 : tensor<6xi1>, tensor<6xf32>
    %332 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %333 = stablehlo.select %54, %331, %332 : tensor<6xi1>, tensor<6xf32>
    %334 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %335 = stablehlo.select %53, %317, %334 : tensor<6x4xi1>, tensor<6x4xf32>
    %336 = stablehlo.add %298, %335 : tensor<6x4xf32>
    %337 = stablehlo.reduce(%333 init: %cst_13) applies stablehlo.add across dimensions = [0] : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
    %338 = stablehlo.multiply %cst_16, %337 : tensor<f32>
    %339 = stablehlo.broadcast_in_dim %338, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %340 = stablehlo.pad %339, %cst_13, low = [0], high = [2], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<3xf32>
    %341 = stablehlo.add %321, %340 : tensor<3xf32>
    %342 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<5x6x4xf32>
    %343 = "stablehlo.scatter"(%342, %19, %267) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 2], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %357 = stablehlo.add %arg6, %arg7 : tensor<f32>
      stablehlo.return %357 : tensor<f32>
    }) : (tensor<5x6x4xf32>, tensor<6x1xi32>, tensor<5x6x4xf32>) -> tensor<5x6x4xf32>
    %344 = stablehlo.add %306, %343 : tensor<5x6x4xf32>
    %345 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<5x6x4xf32>
    %346 = "stablehlo.scatter"(%345, %12, %271) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %357 = stablehlo.add %arg6, %arg7 : tensor<f32>
      stablehlo.return %357 : tensor<f32>
    }) : (tensor<5x6x4xf32>, tensor<6x2xi32>, tensor<6x4xf32>) -> tensor<5x6x4xf32>
    %347 = stablehlo.add %344, %346 : tensor<5x6x4xf32>
    %348 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %349 = stablehlo.multiply %348, %341 : tensor<3xf32>
    %350 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %351 = stablehlo.multiply %350, %336 : tensor<6x4xf32>
    %352 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x6x4xf32>
    %353 = stablehlo.multiply %352, %347 : tensor<5x6x4xf32>
    %354 = stablehlo.add %arg0, %349 : tensor<3xf32>
    %355 = stablehlo.add %arg1, %351 : tensor<6x4xf32>
    %356 = stablehlo.add %arg2, %353 : tensor<5x6x4xf32>
    return %354, %355, %356, %235 : tensor<3xf32>, tensor<6x4xf32>, tensor<5x6x4xf32>, tensor<f32>
  }
  func.func private @remainder(%arg0: tensor<6xi32>, %arg1: tensor<i32>) -> tensor<6xi32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = call @_where(%1, %c, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<6xi32>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %9 = stablehlo.compare LT, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<6xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<6xi1>, tensor<6xi1>) -> tensor<6xi1>
    %12 = stablehlo.and %11, %6 : tensor<6xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %14 = stablehlo.add %4, %13 : tensor<6xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<6xi1>, tensor<6xi32>
    return %15 : tensor<6xi32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @remainder_0(%arg0: tensor<6x4xi32>, %arg1: tensor<i32>) -> tensor<6x4xi32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = call @_where(%1, %c, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<6x4xi32>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<6x4xi32>, tensor<6x4xi32>) -> tensor<6x4xi1>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<6x4xi32>, tensor<6x4xi32>) -> tensor<6x4xi1>
    %9 = stablehlo.compare LT, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<6x4xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<6x4xi1>, tensor<6x4xi1>) -> tensor<6x4xi1>
    %12 = stablehlo.and %11, %6 : tensor<6x4xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %14 = stablehlo.add %4, %13 : tensor<6x4xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<6x4xi1>, tensor<6x4xi32>
    return %15 : tensor<6x4xi32>
  }
  func.func private @take_along_axis(%arg0: tensor<6x4xf32>, %arg1: tensor<6x4xi32>) -> (tensor<6x4xf32>, tensor<6x4x1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<5> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<6> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<6x4xi32>, tensor<6x4xi32>) -> tensor<6x4xi1>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<6x4xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<6x4xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<6x4xi1>, tensor<6x4xi32>
    %5 = stablehlo.reshape %4 : (tensor<6x4xi32>) -> tensor<6x4x1xi32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<6x4x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<6x4x1xi32>, tensor<6x4x1xi32>) -> tensor<6x4x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<6x4x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<6x4x1xi32>, tensor<6x4x1xi32>) -> tensor<6x4x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<6x4x1xi1>
    %12 = stablehlo.reduce(%11 init: %c) applies stablehlo.and across dimensions = [2] : (tensor<6x4x1xi1>, tensor<i1>) -> tensor<6x4xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], operand_batching_dims = [1], start_indices_batching_dims = [1], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<6x4xf32>, tensor<6x4x1xi32>) -> tensor<6x4xf32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<6x4xi1>, tensor<6x4xf32>
    return %15, %5 : tensor<6x4xf32>, tensor<6x4x1xi32>
  }
  func.func private @_pad(%arg0: tensor<6x4xf32>) -> tensor<9x7xf32> {
    %0 = stablehlo.slice %arg0 [1:2, 0:4] : (tensor<6x4xf32>) -> tensor<1x4xf32>
    %1 = call @_flip(%0) : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %2 = stablehlo.concatenate %1, %arg0, dim = 0 : (tensor<1x4xf32>, tensor<6x4xf32>) -> tensor<7x4xf32>
    %3 = stablehlo.slice %2 [4:6, 0:4] : (tensor<7x4xf32>) -> tensor<2x4xf32>
    %4 = call @_flip_1(%3) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %5 = stablehlo.concatenate %2, %4, dim = 0 : (tensor<7x4xf32>, tensor<2x4xf32>) -> tensor<9x4xf32>
    %6 = stablehlo.slice %5 [0:9, 0:3] : (tensor<9x4xf32>) -> tensor<9x3xf32>
    %7 = call @_flip_2(%6) : (tensor<9x3xf32>) -> tensor<9x3xf32>
    %8 = stablehlo.concatenate %5, %7, dim = 1 : (tensor<9x4xf32>, tensor<9x3xf32>) -> tensor<9x7xf32>
    return %8 : tensor<9x7xf32>
  }
  func.func private @_flip(%arg0: tensor<1x4xf32>) -> tensor<1x4xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<1x4xf32>
    return %0 : tensor<1x4xf32>
  }
  func.func private @_flip_1(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func private @_flip_2(%arg0: tensor<9x3xf32>) -> tensor<9x3xf32> {
    %0 = stablehlo.reverse %arg0, dims = [1] : tensor<9x3xf32>
    return %0 : tensor<9x3xf32>
  }
  func.func private @_flip_3(%arg0: tensor<5x6x4xf32>) -> tensor<5x6x4xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0, 2] : tensor<5x6x4xf32>
    return %0 : tensor<5x6x4xf32>
  }
  func.func private @_where_4(%arg0: tensor<5x4xi1>, %arg1: tensor<5x4xf32>, %arg2: tensor<i32>) -> tensor<5x4xf32> {
    %0 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<5x4xi1>, tensor<5x4xf32>
    return %2 : tensor<5x4xf32>
  }
  func.func private @remainder_5(%arg0: tensor<5x6x4xi32>, %arg1: tensor<i32>) -> tensor<5x6x4xi32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = call @_where(%1, %c, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<5x6x4xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<5x6x4xi32>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5x6x4xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<5x6x4xi32>, tensor<5x6x4xi32>) -> tensor<5x6x4xi1>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5x6x4xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<5x6x4xi32>, tensor<5x6x4xi32>) -> tensor<5x6x4xi1>
    %9 = stablehlo.compare LT, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<5x6x4xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<5x6x4xi1>, tensor<5x6x4xi1>) -> tensor<5x6x4xi1>
    %12 = stablehlo.and %11, %6 : tensor<5x6x4xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<5x6x4xi32>
    %14 = stablehlo.add %4, %13 : tensor<5x6x4xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<5x6x4xi1>, tensor<5x6x4xi32>
    return %15 : tensor<5x6x4xi32>
  }
  func.func private @remainder_6(%arg0: tensor<2x3x1xi32>, %arg1: tensor<i32>) -> tensor<2x3x1xi32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = call @_where(%1, %c, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<2x3x1xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<2x3x1xi32>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x3x1xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi1>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x3x1xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<2x3x1xi32>, tensor<2x3x1xi32>) -> tensor<2x3x1xi1>
    %9 = stablehlo.compare LT, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<2x3x1xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<2x3x1xi1>, tensor<2x3x1xi1>) -> tensor<2x3x1xi1>
    %12 = stablehlo.and %11, %6 : tensor<2x3x1xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<2x3x1xi32>
    %14 = stablehlo.add %4, %13 : tensor<2x3x1xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<2x3x1xi1>, tensor<2x3x1xi32>
    return %15 : tensor<2x3x1xi32>
  }
  func.func private @remainder_7(%arg0: tensor<5x4xi32>, %arg1: tensor<i32>) -> tensor<5x4xi32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = call @_where(%1, %c, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<5x4xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<5x4xi32>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5x4xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<5x4xi32>, tensor<5x4xi32>) -> tensor<5x4xi1>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5x4xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<5x4xi32>, tensor<5x4xi32>) -> tensor<5x4xi1>
    %9 = stablehlo.compare LT, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<5x4xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<5x4xi1>, tensor<5x4xi1>) -> tensor<5x4xi1>
    %12 = stablehlo.and %11, %6 : tensor<5x4xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<5x4xi32>
    %14 = stablehlo.add %4, %13 : tensor<5x4xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<5x4xi1>, tensor<5x4xi32>
    return %15 : tensor<5x4xi32>
  }
  func.func private @remainder_8(%arg0: tensor<9x7xi32>, %arg1: tensor<i32>) -> tensor<9x7xi32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = call @_where(%1, %c, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<9x7xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<9x7xi32>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<9x7xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<9x7xi32>, tensor<9x7xi32>) -> tensor<9x7xi1>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<9x7xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<9x7xi32>, tensor<9x7xi32>) -> tensor<9x7xi1>
    %9 = stablehlo.compare LT, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<9x7xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<9x7xi1>, tensor<9x7xi1>) -> tensor<9x7xi1>
    %12 = stablehlo.and %11, %6 : tensor<9x7xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<9x7xi32>
    %14 = stablehlo.add %4, %13 : tensor<9x7xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<9x7xi1>, tensor<9x7xi32>
    return %15 : tensor<9x7xi32>
  }
  func.func private @remainder_9(%arg0: tensor<3x5x4xi32>, %arg1: tensor<i32>) -> tensor<3x5x4xi32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = call @_where(%1, %c, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<3x5x4xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<3x5x4xi32>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<3x5x4xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<3x5x4xi32>, tensor<3x5x4xi32>) -> tensor<3x5x4xi1>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<3x5x4xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<3x5x4xi32>, tensor<3x5x4xi32>) -> tensor<3x5x4xi1>
    %9 = stablehlo.compare LT, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<3x5x4xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<3x5x4xi1>, tensor<3x5x4xi1>) -> tensor<3x5x4xi1>
    %12 = stablehlo.and %11, %6 : tensor<3x5x4xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<3x5x4xi32>
    %14 = stablehlo.add %4, %13 : tensor<3x5x4xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<3x5x4xi1>, tensor<3x5x4xi32>
    return %15 : tensor<3x5x4xi32>
  }
  func.func private @_where_10(%arg0: tensor<5x4xi1>, %arg1: tensor<5x4xf32>) -> tensor<5x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<5x4xi1>, tensor<5x4xf32>
    return %1 : tensor<5x4xf32>
  }
  func.func private @_flip_11(%arg0: tensor<5x6x4xf32>) -> tensor<5x6x4xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0, 2] : tensor<5x6x4xf32>
    return %0 : tensor<5x6x4xf32>
  }
  func.func private @_pad_12(%arg0: tensor<9x7xf32>) -> tensor<6x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.slice %arg0 [0:9, 0:4] : (tensor<9x7xf32>) -> tensor<9x4xf32>
    %1 = stablehlo.slice %arg0 [0:9, 4:7] : (tensor<9x7xf32>) -> tensor<9x3xf32>
    %2 = call @_flip_13(%1) : (tensor<9x3xf32>) -> tensor<9x3xf32>
    %3 = stablehlo.pad %2, %cst, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<9x3xf32>, tensor<f32>) -> tensor<9x4xf32>
    %4 = stablehlo.add %0, %3 : tensor<9x4xf32>
    %5 = stablehlo.slice %4 [0:7, 0:4] : (tensor<9x4xf32>) -> tensor<7x4xf32>
    %6 = stablehlo.slice %4 [7:9, 0:4] : (tensor<9x4xf32>) -> tensor<2x4xf32>
    %7 = call @_flip_14(%6) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %8 = stablehlo.pad %7, %cst, low = [4, 0], high = [1, 0], interior = [0, 0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<7x4xf32>
    %9 = stablehlo.add %5, %8 : tensor<7x4xf32>
    %10 = stablehlo.slice %9 [0:1, 0:4] : (tensor<7x4xf32>) -> tensor<1x4xf32>
    %11 = stablehlo.slice %9 [1:7, 0:4] : (tensor<7x4xf32>) -> tensor<6x4xf32>
    %12 = call @_flip_15(%10) : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %13 = stablehlo.pad %12, %cst, low = [1, 0], high = [4, 0], interior = [0, 0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<6x4xf32>
    %14 = stablehlo.add %11, %13 : tensor<6x4xf32>
    return %14 : tensor<6x4xf32>
  }
  func.func private @_flip_13(%arg0: tensor<9x3xf32>) -> tensor<9x3xf32> {
    %0 = stablehlo.reverse %arg0, dims = [1] : tensor<9x3xf32>
    return %0 : tensor<9x3xf32>
  }
  func.func private @_flip_14(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func private @_flip_15(%arg0: tensor<1x4xf32>) -> tensor<1x4xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<1x4xf32>
    return %0 : tensor<1x4xf32>
  }
  func.func private @take_along_axis_16(%arg0: tensor<6x4x1xi32>, %arg1: tensor<6x4xf32>) -> tensor<6x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], input_batching_dims = [1], scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<6x4xf32>, tensor<6x4x1xi32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    return %1 : tensor<6x4xf32>
  }
}
