module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<20xf32> {tf.aliasing_output = 0 : i32} loc("p['b']"), %arg1: tensor<5x2xf32> {tf.aliasing_output = 1 : i32} loc("p['v']"), %arg2: tensor<9x20xf32> {tf.aliasing_output = 2 : i32} loc("p['w']"), %arg3: tensor<20xf32> {tf.aliasing_output = 3 : i32} loc("s[0].sum_of_squares['b']"), %arg4: tensor<5x2xf32> {tf.aliasing_output = 4 : i32} loc("s[0].sum_of_squares['v']"), %arg5: tensor<9x20xf32> {tf.aliasing_output = 5 : i32} loc("s[0].sum_of_squares['w']"), %arg6: tensor<3x7x4xf32> loc("data[0]"), %arg7: tensor<3xi32> loc("data[1]")) -> (tensor<20xf32> {jax.result_info = "result[0]['b']"}, tensor<5x2xf32> {jax.result_info = "result[0]['v']"}, tensor<9x20xf32> {jax.result_info = "result[0]['w']"}, tensor<20xf32> {jax.result_info = "result[1][0].sum_of_squares['b']"}, tensor<5x2xf32> {jax.result_info = "result[1][0].sum_of_squares['v']"}, tensor<9x20xf32> {jax.result_info = "result[1][0].sum_of_squares['w']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-1.000000e-01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e-07> : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_4 = stablehlo.constant dense<7.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_5 = stablehlo.constant dense<7> : tensor<i32>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %1 = stablehlo.transpose %arg6, dims = [1, 0, 2] : (tensor<3x7x4xf32>) -> tensor<7x3x4xf32>
    %2 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<20xf32>) -> tensor<1x20xf32>
    %3 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %4 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x9xf32>
    %5 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %6 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %7 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %8 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %9 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %10 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %11 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %12 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %13 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %14 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %15 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %16:19 = stablehlo.while(%iterArg = %1, %iterArg_8 = %arg2, %iterArg_9 = %2, %iterArg_10 = %c_6, %iterArg_11 = %0, %iterArg_12 = %0, %iterArg_13 = %3, %iterArg_14 = %4, %iterArg_15 = %5, %iterArg_16 = %6, %iterArg_17 = %7, %iterArg_18 = %8, %iterArg_19 = %9, %iterArg_20 = %10, %iterArg_21 = %11, %iterArg_22 = %12, %iterArg_23 = %13, %iterArg_24 = %14, %iterArg_25 = %15) : tensor<7x3x4xf32>, tensor<9x20xf32>, tensor<1x20xf32>, tensor<i32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x9xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>
    cond {
      %128 = stablehlo.compare LT, %iterArg_10, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %128 : tensor<i1>
    } do {
      %128 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_10) : (tensor<7x3x4xf32>, tensor<i32>) -> tensor<3x4xf32>
      %129:15 = func.call @closed_call(%iterArg_8, %iterArg_9, %iterArg_11, %iterArg_12, %128) : (tensor<9x20xf32>, tensor<1x20xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x4xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x9xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
      %130 = func.call @dynamic_update_index_in_dim(%iterArg_13, %129#2, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %131 = func.call @dynamic_update_index_in_dim_0(%iterArg_14, %129#3, %iterArg_10) : (tensor<7x3x9xf32>, tensor<3x9xf32>, tensor<i32>) -> tensor<7x3x9xf32>
      %132 = func.call @dynamic_update_index_in_dim(%iterArg_15, %129#4, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %133 = func.call @dynamic_update_index_in_dim(%iterArg_16, %129#5, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %134 = func.call @dynamic_update_index_in_dim(%iterArg_17, %129#6, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %135 = func.call @dynamic_update_index_in_dim(%iterArg_18, %129#7, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %136 = func.call @dynamic_update_index_in_dim(%iterArg_19, %129#8, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %137 = func.call @dynamic_update_index_in_dim(%iterArg_20, %129#9, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %138 = func.call @dynamic_update_index_in_dim(%iterArg_21, %129#10, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %139 = func.call @dynamic_update_index_in_dim(%iterArg_22, %129#11, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %140 = func.call @dynamic_update_index_in_dim(%iterArg_23, %129#12, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %141 = func.call @dynamic_update_index_in_dim(%iterArg_24, %129#13, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %142 = func.call @dynamic_update_index_in_dim(%iterArg_25, %129#14, %iterArg_10) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %143 = stablehlo.add %iterArg_10, %c : tensor<i32>
      stablehlo.return %iterArg, %iterArg_8, %iterArg_9, %143, %129#0, %129#1, %130, %131, %132, %133, %134, %135, %136, %137, %138, %139, %140, %141, %142 : tensor<7x3x4xf32>, tensor<9x20xf32>, tensor<1x20xf32>, tensor<i32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x9xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>
    }
    %17 = stablehlo.transpose %arg6, dims = [1, 0, 2] : (tensor<3x7x4xf32>) -> tensor<7x3x4xf32>
    %18 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<20xf32>) -> tensor<1x20xf32>
    %19 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %20 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x9xf32>
    %21 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %22 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %23 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %24 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %25 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %26 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %27 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %28 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %29 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %30 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %31 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x3x5xf32>
    %32:19 = stablehlo.while(%iterArg = %17, %iterArg_8 = %arg2, %iterArg_9 = %18, %iterArg_10 = %c_6, %iterArg_11 = %0, %iterArg_12 = %0, %iterArg_13 = %19, %iterArg_14 = %20, %iterArg_15 = %21, %iterArg_16 = %22, %iterArg_17 = %23, %iterArg_18 = %24, %iterArg_19 = %25, %iterArg_20 = %26, %iterArg_21 = %27, %iterArg_22 = %28, %iterArg_23 = %29, %iterArg_24 = %30, %iterArg_25 = %31) : tensor<7x3x4xf32>, tensor<9x20xf32>, tensor<1x20xf32>, tensor<i32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x9xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>
    cond {
      %128 = stablehlo.compare LT, %iterArg_10, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %128 : tensor<i1>
    } do {
      %128 = stablehlo.subtract %c_5, %iterArg_10 : tensor<i32>
      %129 = stablehlo.subtract %128, %c : tensor<i32>
      %130 = func.call @dynamic_index_in_dim(%iterArg, %129) : (tensor<7x3x4xf32>, tensor<i32>) -> tensor<3x4xf32>
      %131:15 = func.call @closed_call_1(%iterArg_8, %iterArg_9, %iterArg_11, %iterArg_12, %130) : (tensor<9x20xf32>, tensor<1x20xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x4xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x9xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
      %132 = func.call @dynamic_update_index_in_dim(%iterArg_13, %131#2, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %133 = func.call @dynamic_update_index_in_dim_0(%iterArg_14, %131#3, %129) : (tensor<7x3x9xf32>, tensor<3x9xf32>, tensor<i32>) -> tensor<7x3x9xf32>
      %134 = func.call @dynamic_update_index_in_dim(%iterArg_15, %131#4, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %135 = func.call @dynamic_update_index_in_dim(%iterArg_16, %131#5, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %136 = func.call @dynamic_update_index_in_dim(%iterArg_17, %131#6, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %137 = func.call @dynamic_update_index_in_dim(%iterArg_18, %131#7, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %138 = func.call @dynamic_update_index_in_dim(%iterArg_19, %131#8, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %139 = func.call @dynamic_update_index_in_dim(%iterArg_20, %131#9, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %140 = func.call @dynamic_update_index_in_dim(%iterArg_21, %131#10, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %141 = func.call @dynamic_update_index_in_dim(%iterArg_22, %131#11, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %142 = func.call @dynamic_update_index_in_dim(%iterArg_23, %131#12, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %143 = func.call @dynamic_update_index_in_dim(%iterArg_24, %131#13, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %144 = func.call @dynamic_update_index_in_dim(%iterArg_25, %131#14, %129) : (tensor<7x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<7x3x5xf32>
      %145 = stablehlo.add %iterArg_10, %c : tensor<i32>
      stablehlo.return %iterArg, %iterArg_8, %iterArg_9, %145, %131#0, %131#1, %132, %133, %134, %135, %136, %137, %138, %139, %140, %141, %142, %143, %144 : tensor<7x3x4xf32>, tensor<9x20xf32>, tensor<1x20xf32>, tensor<i32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x9xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>
    }
    %33 = stablehlo.add %16#6, %32#6 : tensor<7x3x5xf32>
    %34 = stablehlo.reduce(%33 init: %cst_7) applies stablehlo.add across dimensions = [0] : (tensor<7x3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
    %35 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %36 = stablehlo.divide %34, %35 : tensor<3x5xf32>
    %37 = stablehlo.dot_general %36, %arg1, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x2xf32>) -> tensor<3x2xf32>
    %38 = stablehlo.broadcast_in_dim %arg7, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %39:2 = call @take_along_axis(%37, %38) : (tensor<3x2xf32>, tensor<3x1xi32>) -> (tensor<3x1xf32>, tensor<3x1x1xi32>)
    %40:2 = call @_take(%39#0, %c_6) : (tensor<3x1xf32>, tensor<i32>) -> (tensor<3xf32>, tensor<1xi32>)
    %41 = stablehlo.reduce(%37 init: %cst_3) applies stablehlo.maximum across dimensions = [1] : (tensor<3x2xf32>, tensor<f32>) -> tensor<3xf32>
    %42 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %43 = stablehlo.maximum %42, %41 : tensor<3xf32>
    %44 = stablehlo.is_finite %43 : (tensor<3xf32>) -> tensor<3xi1>
    %45 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %46 = stablehlo.select %44, %43, %45 : tensor<3xi1>, tensor<3xf32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0] : (tensor<3xf32>) -> tensor<3x1xf32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x2xf32>
    %49 = stablehlo.subtract %37, %48 : tensor<3x2xf32>
    %50 = stablehlo.exponential %49 : tensor<3x2xf32>
    %51 = stablehlo.reduce(%50 init: %cst_7) applies stablehlo.add across dimensions = [1] : (tensor<3x2xf32>, tensor<f32>) -> tensor<3xf32>
    %52 = stablehlo.abs %51 : tensor<3xf32>
    %53 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %54 = stablehlo.compare GE, %51, %53, FLOAT : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %55 = stablehlo.log %52 : tensor<3xf32>
    %56 = stablehlo.add %55, %46 : tensor<3xf32>
    %57 = stablehlo.subtract %56, %40#0 : tensor<3xf32>
    %58 = stablehlo.reduce(%57 init: %cst_7) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %59 = stablehlo.divide %58, %cst_2 : tensor<f32>
    %60 = stablehlo.divide %cst_1, %cst_2 : tensor<f32>
    %61 = stablehlo.broadcast_in_dim %60, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %62 = stablehlo.negate %61 : tensor<3xf32>
    %63 = stablehlo.divide %61, %52 : tensor<3xf32>
    %64 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %65 = stablehlo.select %54, %64, %63 : tensor<3xi1>, tensor<3xf32>
    %66 = stablehlo.select %54, %63, %64 : tensor<3xi1>, tensor<3xf32>
    %67 = stablehlo.negate %65 : tensor<3xf32>
    %68 = stablehlo.add %66, %67 : tensor<3xf32>
    %69 = stablehlo.broadcast_in_dim %68, dims = [0] : (tensor<3xf32>) -> tensor<3x2xf32>
    %70 = stablehlo.multiply %69, %50 : tensor<3x2xf32>
    %71 = call @_take_2(%40#1, %62) : (tensor<1xi32>, tensor<3xf32>) -> tensor<3x1xf32>
    %72 = call @take_along_axis_3(%39#1, %71) : (tensor<3x1x1xi32>, tensor<3x1xf32>) -> tensor<3x2xf32>
    %73 = stablehlo.add %70, %72 : tensor<3x2xf32>
    %74 = stablehlo.dot_general %73, %36, contracting_dims = [0] x [0] : (tensor<3x2xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
    %75 = stablehlo.transpose %74, dims = [1, 0] : (tensor<2x5xf32>) -> tensor<5x2xf32>
    %76 = stablehlo.dot_general %73, %arg1, contracting_dims = [1] x [1] : (tensor<3x2xf32>, tensor<5x2xf32>) -> tensor<3x5xf32>
    %77 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %78 = stablehlo.divide %76, %77 : tensor<3x5xf32>
    %79 = stablehlo.broadcast_in_dim %78, dims = [1, 2] : (tensor<3x5xf32>) -> tensor<7x3x5xf32>
    %80 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %81 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %82 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<9x20xf32>
    %83 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %84:19 = stablehlo.while(%iterArg = %79, %iterArg_8 = %32#7, %iterArg_9 = %32#8, %iterArg_10 = %32#9, %iterArg_11 = %32#10, %iterArg_12 = %32#11, %iterArg_13 = %32#12, %iterArg_14 = %32#13, %iterArg_15 = %32#14, %iterArg_16 = %32#15, %iterArg_17 = %32#16, %iterArg_18 = %32#17, %iterArg_19 = %32#18, %iterArg_20 = %arg2, %iterArg_21 = %c_6, %iterArg_22 = %82, %iterArg_23 = %83, %iterArg_24 = %80, %iterArg_25 = %81) : tensor<7x3x5xf32>, tensor<7x3x9xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<9x20xf32>, tensor<i32>, tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>
    cond {
      %128 = stablehlo.compare LT, %iterArg_21, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %128 : tensor<i1>
    } do {
      %128 = func.call @dynamic_index_in_dim_4(%iterArg, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %129 = func.call @dynamic_index_in_dim_5(%iterArg_8, %iterArg_21) : (tensor<7x3x9xf32>, tensor<i32>) -> tensor<3x9xf32>
      %130 = func.call @dynamic_index_in_dim_4(%iterArg_9, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %131 = func.call @dynamic_index_in_dim_4(%iterArg_10, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %132 = func.call @dynamic_index_in_dim_4(%iterArg_11, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %133 = func.call @dynamic_index_in_dim_4(%iterArg_12, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %134 = func.call @dynamic_index_in_dim_4(%iterArg_13, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %135 = func.call @dynamic_index_in_dim_4(%iterArg_14, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %136 = func.call @dynamic_index_in_dim_4(%iterArg_15, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %137 = func.call @dynamic_index_in_dim_4(%iterArg_16, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %138 = func.call @dynamic_index_in_dim_4(%iterArg_17, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %139 = func.call @dynamic_index_in_dim_4(%iterArg_18, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %140 = func.call @dynamic_index_in_dim_4(%iterArg_19, %iterArg_21) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %141:4 = func.call @closed_call_6(%iterArg_20, %iterArg_22, %iterArg_23, %iterArg_24, %iterArg_25, %128, %129, %130, %131, %132, %133, %134, %135, %136, %137, %138, %139, %140) : (tensor<9x20xf32>, tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x9xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
      %142 = stablehlo.add %iterArg_21, %c : tensor<i32>
      stablehlo.return %iterArg, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %iterArg_16, %iterArg_17, %iterArg_18, %iterArg_19, %iterArg_20, %142, %141#0, %141#1, %141#2, %141#3 : tensor<7x3x5xf32>, tensor<7x3x9xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<9x20xf32>, tensor<i32>, tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>
    }
    %85 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %86 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %87 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<9x20xf32>
    %88 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %89:19 = stablehlo.while(%iterArg = %79, %iterArg_8 = %16#7, %iterArg_9 = %16#8, %iterArg_10 = %16#9, %iterArg_11 = %16#10, %iterArg_12 = %16#11, %iterArg_13 = %16#12, %iterArg_14 = %16#13, %iterArg_15 = %16#14, %iterArg_16 = %16#15, %iterArg_17 = %16#16, %iterArg_18 = %16#17, %iterArg_19 = %16#18, %iterArg_20 = %arg2, %iterArg_21 = %c_6, %iterArg_22 = %87, %iterArg_23 = %88, %iterArg_24 = %85, %iterArg_25 = %86) : tensor<7x3x5xf32>, tensor<7x3x9xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<9x20xf32>, tensor<i32>, tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>
    cond {
      %128 = stablehlo.compare LT, %iterArg_21, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %128 : tensor<i1>
    } do {
      %128 = stablehlo.subtract %c_5, %iterArg_21 : tensor<i32>
      %129 = stablehlo.subtract %128, %c : tensor<i32>
      %130 = func.call @dynamic_index_in_dim_4(%iterArg, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %131 = func.call @dynamic_index_in_dim_5(%iterArg_8, %129) : (tensor<7x3x9xf32>, tensor<i32>) -> tensor<3x9xf32>
      %132 = func.call @dynamic_index_in_dim_4(%iterArg_9, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %133 = func.call @dynamic_index_in_dim_4(%iterArg_10, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %134 = func.call @dynamic_index_in_dim_4(%iterArg_11, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %135 = func.call @dynamic_index_in_dim_4(%iterArg_12, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %136 = func.call @dynamic_index_in_dim_4(%iterArg_13, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %137 = func.call @dynamic_index_in_dim_4(%iterArg_14, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %138 = func.call @dynamic_index_in_dim_4(%iterArg_15, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %139 = func.call @dynamic_index_in_dim_4(%iterArg_16, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %140 = func.call @dynamic_index_in_dim_4(%iterArg_17, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %141 = func.call @dynamic_index_in_dim_4(%iterArg_18, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %142 = func.call @dynamic_index_in_dim_4(%iterArg_19, %129) : (tensor<7x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %143:4 = func.call @closed_call_7(%iterArg_20, %iterArg_22, %iterArg_23, %iterArg_24, %iterArg_25, %130, %131, %132, %133, %134, %135, %136, %137, %138, %139, %140, %141, %142) : (tensor<9x20xf32>, tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x9xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
      %144 = stablehlo.add %iterArg_21, %c : tensor<i32>
      stablehlo.return %iterArg, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %iterArg_16, %iterArg_17, %iterArg_18, %iterArg_19, %iterArg_20, %144, %143#0, %143#1, %143#2, %143#3 : tensor<7x3x5xf32>, tensor<7x3x9xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<7x3x5xf32>, tensor<9x20xf32>, tensor<i32>, tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>
    }
    %90 = stablehlo.add %84#15, %89#15 : tensor<9x20xf32>
    %91 = stablehlo.add %84#16, %89#16 : tensor<20xf32>
    %92 = stablehlo.multiply %91, %91 : tensor<20xf32>
    %93 = stablehlo.add %92, %arg3 : tensor<20xf32>
    %94 = stablehlo.multiply %75, %75 : tensor<5x2xf32>
    %95 = stablehlo.add %94, %arg4 : tensor<5x2xf32>
    %96 = stablehlo.multiply %90, %90 : tensor<9x20xf32>
    %97 = stablehlo.add %96, %arg5 : tensor<9x20xf32>
    %98 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %99 = stablehlo.compare GT, %93, %98, FLOAT : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xi1>
    %100 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %101 = stablehlo.add %93, %100 : tensor<20xf32>
    %102 = stablehlo.rsqrt %101 : tensor<20xf32>
    %103 = call @_where_8(%99, %102, %cst_7) : (tensor<20xi1>, tensor<20xf32>, tensor<f32>) -> tensor<20xf32>
    %104 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<5x2xf32>
    %105 = stablehlo.compare GT, %95, %104, FLOAT : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x2xi1>
    %106 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5x2xf32>
    %107 = stablehlo.add %95, %106 : tensor<5x2xf32>
    %108 = stablehlo.rsqrt %107 : tensor<5x2xf32>
    %109 = call @_where_9(%105, %108, %cst_7) : (tensor<5x2xi1>, tensor<5x2xf32>, tensor<f32>) -> tensor<5x2xf32>
    %110 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<9x20xf32>
    %111 = stablehlo.compare GT, %97, %110, FLOAT : (tensor<9x20xf32>, tensor<9x20xf32>) -> tensor<9x20xi1>
    %112 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<9x20xf32>
    %113 = stablehlo.add %97, %112 : tensor<9x20xf32>
    %114 = stablehlo.rsqrt %113 : tensor<9x20xf32>
    %115 = call @_where_10(%111, %114, %cst_7) : (tensor<9x20xi1>, tensor<9x20xf32>, tensor<f32>) -> tensor<9x20xf32>
    %116 = stablehlo.multiply %103, %91 : tensor<20xf32>
    %117 = stablehlo.multiply %109, %75 : tensor<5x2xf32>
    %118 = stablehlo.multiply %115, %90 : tensor<9x20xf32>
    %119 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %120 = stablehlo.multiply %119, %116 : tensor<20xf32>
    %121 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x2xf32>
    %122 = stablehlo.multiply %121, %117 : tensor<5x2xf32>
    %123 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<9x20xf32>
    %124 = stablehlo.multiply %123, %118 : tensor<9x20xf32>
    %125 = stablehlo.add %arg0, %120 : tensor<20xf32>
    %126 = stablehlo.add %arg1, %122 : tensor<5x2xf32>
    %127 = stablehlo.add %arg2, %124 : tensor<9x20xf32>
    return %125, %126, %127, %93, %95, %97, %59 : tensor<20xf32>, tensor<5x2xf32>, tensor<9x20xf32>, tensor<20xf32>, tensor<5x2xf32>, tensor<9x20xf32>, tensor<f32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<7x3x4xf32>, %arg1: tensor<i32>) -> tensor<3x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, sizes = [1, 3, 4] : (tensor<7x3x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
    return %1 : tensor<3x4xf32>
  }
  func.func private @closed_call(%arg0: tensor<9x20xf32>, %arg1: tensor<1x20xf32>, %arg2: tensor<3x5xf32>, %arg3: tensor<3x5xf32>, %arg4: tensor<3x4xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x9xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.concatenate %arg4, %arg2, dim = 1 : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<3x9xf32>
    %1 = stablehlo.dot_general %0, %arg0, contracting_dims = [1] x [0] : (tensor<3x9xf32>, tensor<9x20xf32>) -> tensor<3x20xf32>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<1x20xf32>) -> tensor<3x20xf32>
    %3 = stablehlo.add %1, %2 : tensor<3x20xf32>
    %4 = stablehlo.slice %3 [0:3, 0:5] : (tensor<3x20xf32>) -> tensor<3x5xf32>
    %5 = stablehlo.slice %3 [0:3, 5:10] : (tensor<3x20xf32>) -> tensor<3x5xf32>
    %6 = stablehlo.slice %3 [0:3, 10:15] : (tensor<3x20xf32>) -> tensor<3x5xf32>
    %7 = stablehlo.slice %3 [0:3, 15:20] : (tensor<3x20xf32>) -> tensor<3x5xf32>
    %8 = stablehlo.negate %5 : tensor<3x5xf32>
    %9 = stablehlo.exponential %8 : tensor<3x5xf32>
    %10 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %11 = stablehlo.add %10, %9 : tensor<3x5xf32>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %13 = stablehlo.divide %12, %11 : tensor<3x5xf32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %15 = stablehlo.subtract %14, %13 : tensor<3x5xf32>
    %16 = stablehlo.multiply %13, %15 : tensor<3x5xf32>
    %17 = stablehlo.multiply %13, %arg3 : tensor<3x5xf32>
    %18 = stablehlo.negate %4 : tensor<3x5xf32>
    %19 = stablehlo.exponential %18 : tensor<3x5xf32>
    %20 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %21 = stablehlo.add %20, %19 : tensor<3x5xf32>
    %22 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %23 = stablehlo.divide %22, %21 : tensor<3x5xf32>
    %24 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %25 = stablehlo.subtract %24, %23 : tensor<3x5xf32>
    %26 = stablehlo.multiply %23, %25 : tensor<3x5xf32>
    %27 = stablehlo.tanh %6 : tensor<3x5xf32>
    %28 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %29 = stablehlo.subtract %28, %27 : tensor<3x5xf32>
    %30 = stablehlo.multiply %23, %27 : tensor<3x5xf32>
    %31 = stablehlo.add %17, %30 : tensor<3x5xf32>
    %32 = stablehlo.negate %7 : tensor<3x5xf32>
    %33 = stablehlo.exponential %32 : tensor<3x5xf32>
    %34 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %35 = stablehlo.add %34, %33 : tensor<3x5xf32>
    %36 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %37 = stablehlo.divide %36, %35 : tensor<3x5xf32>
    %38 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %39 = stablehlo.subtract %38, %37 : tensor<3x5xf32>
    %40 = stablehlo.multiply %37, %39 : tensor<3x5xf32>
    %41 = stablehlo.tanh %31 : tensor<3x5xf32>
    %42 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %43 = stablehlo.subtract %42, %41 : tensor<3x5xf32>
    %44 = stablehlo.multiply %37, %41 : tensor<3x5xf32>
    return %44, %31, %44, %0, %16, %arg3, %13, %26, %27, %29, %23, %40, %41, %43, %37 : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x9xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<7x3x5xf32>, %arg1: tensor<3x5xf32>, %arg2: tensor<i32>) -> tensor<7x3x5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<3x5xf32>) -> tensor<1x3x5xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c : (tensor<7x3x5xf32>, tensor<1x3x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<7x3x5xf32>
    return %1 : tensor<7x3x5xf32>
  }
  func.func private @dynamic_update_index_in_dim_0(%arg0: tensor<7x3x9xf32>, %arg1: tensor<3x9xf32>, %arg2: tensor<i32>) -> tensor<7x3x9xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<3x9xf32>) -> tensor<1x3x9xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c : (tensor<7x3x9xf32>, tensor<1x3x9xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<7x3x9xf32>
    return %1 : tensor<7x3x9xf32>
  }
  func.func private @closed_call_1(%arg0: tensor<9x20xf32>, %arg1: tensor<1x20xf32>, %arg2: tensor<3x5xf32>, %arg3: tensor<3x5xf32>, %arg4: tensor<3x4xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x9xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.concatenate %arg4, %arg2, dim = 1 : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<3x9xf32>
    %1 = stablehlo.dot_general %0, %arg0, contracting_dims = [1] x [0] : (tensor<3x9xf32>, tensor<9x20xf32>) -> tensor<3x20xf32>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<1x20xf32>) -> tensor<3x20xf32>
    %3 = stablehlo.add %1, %2 : tensor<3x20xf32>
    %4 = stablehlo.slice %3 [0:3, 0:5] : (tensor<3x20xf32>) -> tensor<3x5xf32>
    %5 = stablehlo.slice %3 [0:3, 5:10] : (tensor<3x20xf32>) -> tensor<3x5xf32>
    %6 = stablehlo.slice %3 [0:3, 10:15] : (tensor<3x20xf32>) -> tensor<3x5xf32>
    %7 = stablehlo.slice %3 [0:3, 15:20] : (tensor<3x20xf32>) -> tensor<3x5xf32>
    %8 = stablehlo.negate %5 : tensor<3x5xf32>
    %9 = stablehlo.exponential %8 : tensor<3x5xf32>
    %10 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %11 = stablehlo.add %10, %9 : tensor<3x5xf32>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %13 = stablehlo.divide %12, %11 : tensor<3x5xf32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %15 = stablehlo.subtract %14, %13 : tensor<3x5xf32>
    %16 = stablehlo.multiply %13, %15 : tensor<3x5xf32>
    %17 = stablehlo.multiply %13, %arg3 : tensor<3x5xf32>
    %18 = stablehlo.negate %4 : tensor<3x5xf32>
    %19 = stablehlo.exponential %18 : tensor<3x5xf32>
    %20 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %21 = stablehlo.add %20, %19 : tensor<3x5xf32>
    %22 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %23 = stablehlo.divide %22, %21 : tensor<3x5xf32>
    %24 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %25 = stablehlo.subtract %24, %23 : tensor<3x5xf32>
    %26 = stablehlo.multiply %23, %25 : tensor<3x5xf32>
    %27 = stablehlo.tanh %6 : tensor<3x5xf32>
    %28 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %29 = stablehlo.subtract %28, %27 : tensor<3x5xf32>
    %30 = stablehlo.multiply %23, %27 : tensor<3x5xf32>
    %31 = stablehlo.add %17, %30 : tensor<3x5xf32>
    %32 = stablehlo.negate %7 : tensor<3x5xf32>
    %33 = stablehlo.exponential %32 : tensor<3x5xf32>
    %34 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %35 = stablehlo.add %34, %33 : tensor<3x5xf32>
    %36 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %37 = stablehlo.divide %36, %35 : tensor<3x5xf32>
    %38 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %39 = stablehlo.subtract %38, %37 : tensor<3x5xf32>
    %40 = stablehlo.multiply %37, %39 : tensor<3x5xf32>
    %41 = stablehlo.tanh %31 : tensor<3x5xf32>
    %42 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %43 = stablehlo.subtract %42, %41 : tensor<3x5xf32>
    %44 = stablehlo.multiply %37, %41 : tensor<3x5xf32>
    return %44, %31, %44, %0, %16, %arg3, %13, %26, %27, %29, %23, %40, %41, %43, %37 : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x9xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<3x2xf32>, %arg1: tensor<3x1xi32>) -> (tensor<3x1xf32>, tensor<3x1x1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<3x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x1xi1>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<3x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<3x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<3x1xi1>, tensor<3x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<3x1xi32>) -> tensor<3x1x1xi32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<3x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<3x1x1xi32>, tensor<3x1x1xi32>) -> tensor<3x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<3x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<3x1x1xi32>, tensor<3x1x1xi32>) -> tensor<3x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<3x1x1xi1>
    %12 = stablehlo.reduce(%11 init: %c) applies stablehlo.and across dimensions = [2] : (tensor<3x1x1xi1>, tensor<i1>) -> tensor<3x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<3x2xf32>, tensor<3x1x1xi32>) -> tensor<3x1xf32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<3x1xi1>, tensor<3x1xf32>
    return %15, %5 : tensor<3x1xf32>, tensor<3x1x1xi32>
  }
  func.func private @_take(%arg0: tensor<3x1xf32>, %arg1: tensor<i32>) -> (tensor<3xf32>, tensor<1xi32>) {
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
    %10 = "stablehlo.gather"(%arg0, %4) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, slice_sizes = array<i64: 3, 1>}> : (tensor<3x1xf32>, tensor<1xi32>) -> tensor<3xf32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<3xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %13 = stablehlo.select %11, %10, %12 : tensor<3xi1>, tensor<3xf32>
    return %13, %3 : tensor<3xf32>, tensor<1xi32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @_take_2(%arg0: tensor<1xi32>, %arg1: tensor<3xf32>) -> tensor<3x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x1xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<3x1xf32>, tensor<1xi32>, tensor<3xf32>) -> tensor<3x1xf32>
    return %1 : tensor<3x1xf32>
  }
  func.func private @take_along_axis_3(%arg0: tensor<3x1x1xi32>, %arg1: tensor<3x1xf32>) -> tensor<3x2xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x2xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<3x2xf32>, tensor<3x1x1xi32>, tensor<3x1xf32>) -> tensor<3x2xf32>
    return %1 : tensor<3x2xf32>
  }
  func.func private @dynamic_index_in_dim_4(%arg0: tensor<7x3x5xf32>, %arg1: tensor<i32>) -> tensor<3x5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, sizes = [1, 3, 5] : (tensor<7x3x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x5xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x5xf32>) -> tensor<3x5xf32>
    return %1 : tensor<3x5xf32>
  }
  func.func private @dynamic_index_in_dim_5(%arg0: tensor<7x3x9xf32>, %arg1: tensor<i32>) -> tensor<3x9xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, sizes = [1, 3, 9] : (tensor<7x3x9xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x9xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x9xf32>) -> tensor<3x9xf32>
    return %1 : tensor<3x9xf32>
  }
  func.func private @closed_call_6(%arg0: tensor<9x20xf32>, %arg1: tensor<9x20xf32>, %arg2: tensor<20xf32>, %arg3: tensor<3x5xf32>, %arg4: tensor<3x5xf32>, %arg5: tensor<3x5xf32>, %arg6: tensor<3x9xf32>, %arg7: tensor<3x5xf32>, %arg8: tensor<3x5xf32>, %arg9: tensor<3x5xf32>, %arg10: tensor<3x5xf32>, %arg11: tensor<3x5xf32>, %arg12: tensor<3x5xf32>, %arg13: tensor<3x5xf32>, %arg14: tensor<3x5xf32>, %arg15: tensor<3x5xf32>, %arg16: tensor<3x5xf32>, %arg17: tensor<3x5xf32>) -> (tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.add %arg3, %arg5 : tensor<3x5xf32>
    %1 = stablehlo.multiply %arg17, %0 : tensor<3x5xf32>
    %2 = stablehlo.multiply %0, %arg15 : tensor<3x5xf32>
    %3 = stablehlo.multiply %1, %arg16 : tensor<3x5xf32>
    %4 = stablehlo.add %arg4, %3 : tensor<3x5xf32>
    %5 = stablehlo.multiply %3, %arg15 : tensor<3x5xf32>
    %6 = stablehlo.add %4, %5 : tensor<3x5xf32>
    %7 = stablehlo.multiply %2, %arg14 : tensor<3x5xf32>
    %8 = stablehlo.multiply %arg13, %6 : tensor<3x5xf32>
    %9 = stablehlo.multiply %6, %arg11 : tensor<3x5xf32>
    %10 = stablehlo.multiply %8, %arg12 : tensor<3x5xf32>
    %11 = stablehlo.multiply %10, %arg11 : tensor<3x5xf32>
    %12 = stablehlo.add %10, %11 : tensor<3x5xf32>
    %13 = stablehlo.multiply %9, %arg10 : tensor<3x5xf32>
    %14 = stablehlo.multiply %arg9, %6 : tensor<3x5xf32>
    %15 = stablehlo.multiply %6, %arg8 : tensor<3x5xf32>
    %16 = stablehlo.multiply %15, %arg7 : tensor<3x5xf32>
    %17 = stablehlo.concatenate %13, %16, %12, %7, dim = 1 : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x20xf32>
    %18 = stablehlo.reduce(%17 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<3x20xf32>, tensor<f32>) -> tensor<20xf32>
    %19 = stablehlo.reshape %18 : (tensor<20xf32>) -> tensor<1x20xf32>
    %20 = stablehlo.reduce(%19 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<1x20xf32>, tensor<f32>) -> tensor<20xf32>
    %21 = stablehlo.add %arg2, %20 : tensor<20xf32>
    %22 = stablehlo.dot_general %17, %arg6, contracting_dims = [0] x [0] : (tensor<3x20xf32>, tensor<3x9xf32>) -> tensor<20x9xf32>
    %23 = stablehlo.transpose %22, dims = [1, 0] : (tensor<20x9xf32>) -> tensor<9x20xf32>
    %24 = stablehlo.add %arg1, %23 : tensor<9x20xf32>
    %25 = stablehlo.dot_general %17, %arg0, contracting_dims = [1] x [1] : (tensor<3x20xf32>, tensor<9x20xf32>) -> tensor<3x9xf32>
    %26 = stablehlo.slice %25 [0:3, 4:9] : (tensor<3x9xf32>) -> tensor<3x5xf32>
    return %24, %21, %26, %14 : tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>
  }
  func.func private @closed_call_7(%arg0: tensor<9x20xf32>, %arg1: tensor<9x20xf32>, %arg2: tensor<20xf32>, %arg3: tensor<3x5xf32>, %arg4: tensor<3x5xf32>, %arg5: tensor<3x5xf32>, %arg6: tensor<3x9xf32>, %arg7: tensor<3x5xf32>, %arg8: tensor<3x5xf32>, %arg9: tensor<3x5xf32>, %arg10: tensor<3x5xf32>, %arg11: tensor<3x5xf32>, %arg12: tensor<3x5xf32>, %arg13: tensor<3x5xf32>, %arg14: tensor<3x5xf32>, %arg15: tensor<3x5xf32>, %arg16: tensor<3x5xf32>, %arg17: tensor<3x5xf32>) -> (tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.add %arg3, %arg5 : tensor<3x5xf32>
    %1 = stablehlo.multiply %arg17, %0 : tensor<3x5xf32>
    %2 = stablehlo.multiply %0, %arg15 : tensor<3x5xf32>
    %3 = stablehlo.multiply %1, %arg16 : tensor<3x5xf32>
    %4 = stablehlo.add %arg4, %3 : tensor<3x5xf32>
    %5 = stablehlo.multiply %3, %arg15 : tensor<3x5xf32>
    %6 = stablehlo.add %4, %5 : tensor<3x5xf32>
    %7 = stablehlo.multiply %2, %arg14 : tensor<3x5xf32>
    %8 = stablehlo.multiply %arg13, %6 : tensor<3x5xf32>
    %9 = stablehlo.multiply %6, %arg11 : tensor<3x5xf32>
    %10 = stablehlo.multiply %8, %arg12 : tensor<3x5xf32>
    %11 = stablehlo.multiply %10, %arg11 : tensor<3x5xf32>
    %12 = stablehlo.add %10, %11 : tensor<3x5xf32>
    %13 = stablehlo.multiply %9, %arg10 : tensor<3x5xf32>
    %14 = stablehlo.multiply %arg9, %6 : tensor<3x5xf32>
    %15 = stablehlo.multiply %6, %arg8 : tensor<3x5xf32>
    %16 = stablehlo.multiply %15, %arg7 : tensor<3x5xf32>
    %17 = stablehlo.concatenate %13, %16, %12, %7, dim = 1 : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x20xf32>
    %18 = stablehlo.reduce(%17 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<3x20xf32>, tensor<f32>) -> tensor<20xf32>
    %19 = stablehlo.reshape %18 : (tensor<20xf32>) -> tensor<1x20xf32>
    %20 = stablehlo.reduce(%19 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<1x20xf32>, tensor<f32>) -> tensor<20xf32>
    %21 = stablehlo.add %arg2, %20 : tensor<20xf32>
    %22 = stablehlo.dot_general %17, %arg6, contracting_dims = [0] x [0] : (tensor<3x20xf32>, tensor<3x9xf32>) -> tensor<20x9xf32>
    %23 = stablehlo.transpose %22, dims = [1, 0] : (tensor<20x9xf32>) -> tensor<9x20xf32>
    %24 = stablehlo.add %arg1, %23 : tensor<9x20xf32>
    %25 = stablehlo.dot_general %17, %arg0, contracting_dims = [1] x [1] : (tensor<3x20xf32>, tensor<9x20xf32>) -> tensor<3x9xf32>
    %26 = stablehlo.slice %25 [0:3, 4:9] : (tensor<3x9xf32>) -> tensor<3x5xf32>
    return %24, %21, %26, %14 : tensor<9x20xf32>, tensor<20xf32>, tensor<3x5xf32>, tensor<3x5xf32>
  }
  func.func private @_where_8(%arg0: tensor<20xi1>, %arg1: tensor<20xf32>, %arg2: tensor<f32>) -> tensor<20xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<20xi1>, tensor<20xf32>
    return %2 : tensor<20xf32>
  }
  func.func private @_where_9(%arg0: tensor<5x2xi1>, %arg1: tensor<5x2xf32>, %arg2: tensor<f32>) -> tensor<5x2xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5x2xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<5x2xi1>, tensor<5x2xf32>
    return %2 : tensor<5x2xf32>
  }
  func.func private @_where_10(%arg0: tensor<9x20xi1>, %arg1: tensor<9x20xf32>, %arg2: tensor<f32>) -> tensor<9x20xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9x20xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<9x20xi1>, tensor<9x20xf32>
    return %2 : tensor<9x20xf32>
  }
}
