module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x6xf32> {tf.aliasing_output = 0 : i32} loc("p['w']"), %arg1: tensor<i32> {tf.aliasing_output = 1 : i32} loc("s.mini_step"), %arg2: tensor<i32> {tf.aliasing_output = 2 : i32} loc("s.gradient_step"), %arg3: tensor<i32> {tf.aliasing_output = 3 : i32} loc("s.inner_opt_state.notfinite_count"), %arg4: tensor<i1> {tf.aliasing_output = 4 : i32} loc("s.inner_opt_state.last_finite"), %arg5: tensor<i32> {tf.aliasing_output = 5 : i32} loc("s.inner_opt_state.total_notfinite"), %arg6: tensor<i32> {tf.aliasing_output = 6 : i32} loc("s.inner_opt_state.inner_state[0].count"), %arg7: tensor<6x6xf32> {tf.aliasing_output = 7 : i32} loc("s.inner_opt_state.inner_state[0].mu['w']"), %arg8: tensor<6x6xf32> {tf.aliasing_output = 8 : i32} loc("s.inner_opt_state.inner_state[0].nu['w']"), %arg9: tensor<6x6xf32> {tf.aliasing_output = 9 : i32} loc("s.acc_grads['w']"), %arg10: tensor<3x6xf32> loc("data[0]")) -> (tensor<6x6xf32> {jax.result_info = "result[0]['w']"}, tensor<i32> {jax.result_info = "result[1].mini_step"}, tensor<i32> {jax.result_info = "result[1].gradient_step"}, tensor<i32> {jax.result_info = "result[1].inner_opt_state.notfinite_count"}, tensor<i1> {jax.result_info = "result[1].inner_opt_state.last_finite"}, tensor<i32> {jax.result_info = "result[1].inner_opt_state.total_notfinite"}, tensor<i32> {jax.result_info = "result[1].inner_opt_state.inner_state[0].count"}, tensor<6x6xf32> {jax.result_info = "result[1].inner_opt_state.inner_state[0].mu['w']"}, tensor<6x6xf32> {jax.result_info = "result[1].inner_opt_state.inner_state[0].nu['w']"}, tensor<6x6xf32> {jax.result_info = "result[1].acc_grads['w']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-0.00999999977> : tensor<f32>
    %cst_0 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %cst_1 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %cst_4 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %c_5 = stablehlo.constant dense<2147483647> : tensor<i32>
    %c_6 = stablehlo.constant dense<true> : tensor<i1>
    %cst_7 = stablehlo.constant dense<1.800000e+01> : tensor<f32>
    %cst_8 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c_10 = stablehlo.constant dense<1> : tensor<i32>
    %c_11 = stablehlo.constant dense<4> : tensor<i32>
    %c_12 = stablehlo.constant dense<0> : tensor<i32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4x3x6xf32>
    %1 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4x3x6xf32>
    %2 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4x3x6xf32>
    %3:7 = stablehlo.while(%iterArg = %arg0, %iterArg_14 = %c_12, %iterArg_15 = %c_12, %iterArg_16 = %arg10, %iterArg_17 = %0, %iterArg_18 = %1, %iterArg_19 = %2) : tensor<6x6xf32>, tensor<i32>, tensor<i32>, tensor<3x6xf32>, tensor<4x3x6xf32>, tensor<4x3x6xf32>, tensor<4x3x6xf32>
    cond {
      %21 = stablehlo.compare LT, %iterArg_14, %c_11, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %21 : tensor<i1>
    } do {
      %21:5 = func.call @closed_call(%iterArg, %iterArg_15, %iterArg_16) : (tensor<6x6xf32>, tensor<i32>, tensor<3x6xf32>) -> (tensor<i32>, tensor<3x6xf32>, tensor<3x6xf32>, tensor<3x6xf32>, tensor<3x6xf32>)
      %22 = func.call @dynamic_update_index_in_dim(%iterArg_17, %21#2, %iterArg_14) : (tensor<4x3x6xf32>, tensor<3x6xf32>, tensor<i32>) -> tensor<4x3x6xf32>
      %23 = func.call @dynamic_update_index_in_dim(%iterArg_18, %21#3, %iterArg_14) : (tensor<4x3x6xf32>, tensor<3x6xf32>, tensor<i32>) -> tensor<4x3x6xf32>
      %24 = func.call @dynamic_update_index_in_dim(%iterArg_19, %21#4, %iterArg_14) : (tensor<4x3x6xf32>, tensor<3x6xf32>, tensor<i32>) -> tensor<4x3x6xf32>
      %25 = stablehlo.add %iterArg_14, %c_10 : tensor<i32>
      stablehlo.return %iterArg, %25, %21#0, %21#1, %22, %23, %24 : tensor<6x6xf32>, tensor<i32>, tensor<i32>, tensor<3x6xf32>, tensor<4x3x6xf32>, tensor<4x3x6xf32>, tensor<4x3x6xf32>
    }
    %4 = stablehlo.reduce(%3#3 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x6xf32>, tensor<f32>) -> tensor<f32>
    %5 = stablehlo.compare GT, %4, %cst_13, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %6 = stablehlo.convert %5 : (tensor<i1>) -> tensor<i32>
    %7 = "stablehlo.case"(%6) ({
      %21 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x6xf32>
      %22 = stablehlo.subtract %3#3, %21 : tensor<3x6xf32>
      stablehlo.return %22 : tensor<3x6xf32>
    }, {
      %21 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<3x6xf32>
      %22 = stablehlo.multiply %3#3, %21 : tensor<3x6xf32>
      stablehlo.return %22 : tensor<3x6xf32>
    }) : (tensor<i32>) -> tensor<3x6xf32>
    %8 = stablehlo.multiply %7, %7 : tensor<3x6xf32>
    %9 = stablehlo.reduce(%8 init: %cst_13) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x6xf32>, tensor<f32>) -> tensor<f32>
    %10 = stablehlo.divide %9, %cst_7 : tensor<f32>
    %11 = stablehlo.divide %cst_9, %cst_7 : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<3x6xf32>
    %13 = stablehlo.multiply %7, %12 : tensor<3x6xf32>
    %14 = stablehlo.multiply %12, %7 : tensor<3x6xf32>
    %15 = stablehlo.add %13, %14 : tensor<3x6xf32>
    %16 = "stablehlo.case"(%6) ({
      stablehlo.return %15 : tensor<3x6xf32>
    }, {
      %21 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<3x6xf32>
      %22 = stablehlo.multiply %15, %21 : tensor<3x6xf32>
      stablehlo.return %22 : tensor<3x6xf32>
    }) : (tensor<i32>) -> tensor<3x6xf32>
    %17 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
    %18:7 = stablehlo.while(%iterArg = %3#4, %iterArg_14 = %3#5, %iterArg_15 = %3#6, %iterArg_16 = %arg0, %iterArg_17 = %c_12, %iterArg_18 = %17, %iterArg_19 = %16) : tensor<4x3x6xf32>, tensor<4x3x6xf32>, tensor<4x3x6xf32>, tensor<6x6xf32>, tensor<i32>, tensor<6x6xf32>, tensor<3x6xf32>
    cond {
      %21 = stablehlo.compare LT, %iterArg_17, %c_11, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %21 : tensor<i1>
    } do {
      %21 = stablehlo.subtract %c_11, %iterArg_17 : tensor<i32>
      %22 = stablehlo.subtract %21, %c_10 : tensor<i32>
      %23 = func.call @dynamic_index_in_dim(%iterArg, %22) : (tensor<4x3x6xf32>, tensor<i32>) -> tensor<3x6xf32>
      %24 = func.call @dynamic_index_in_dim(%iterArg_14, %22) : (tensor<4x3x6xf32>, tensor<i32>) -> tensor<3x6xf32>
      %25 = func.call @dynamic_index_in_dim(%iterArg_15, %22) : (tensor<4x3x6xf32>, tensor<i32>) -> tensor<3x6xf32>
      %26:2 = func.call @closed_call_0(%iterArg_16, %iterArg_18, %iterArg_19, %23, %24, %25) : (tensor<6x6xf32>, tensor<6x6xf32>, tensor<3x6xf32>, tensor<3x6xf32>, tensor<3x6xf32>, tensor<3x6xf32>) -> (tensor<6x6xf32>, tensor<3x6xf32>)
      %27 = stablehlo.add %iterArg_17, %c_10 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_14, %iterArg_15, %iterArg_16, %27, %26#0, %26#1 : tensor<4x3x6xf32>, tensor<4x3x6xf32>, tensor<4x3x6xf32>, tensor<6x6xf32>, tensor<i32>, tensor<6x6xf32>, tensor<3x6xf32>
    }
    %19:10 = "stablehlo.case"(%c_12) ({
      %21 = stablehlo.subtract %18#5, %arg9 : tensor<6x6xf32>
      %22 = stablehlo.add %arg1, %c_10 : tensor<i32>
      %23 = stablehlo.convert %22 : (tensor<i32>) -> tensor<f32>
      %24 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
      %25 = stablehlo.divide %21, %24 : tensor<6x6xf32>
      %26 = stablehlo.add %arg9, %25 : tensor<6x6xf32>
      %27 = stablehlo.is_finite %26 : (tensor<6x6xf32>) -> tensor<6x6xi1>
      %28 = stablehlo.reduce(%27 init: %c_6) applies stablehlo.and across dimensions = [0, 1] : (tensor<6x6xi1>, tensor<i1>) -> tensor<i1>
      %29 = stablehlo.broadcast_in_dim %28, dims = [] : (tensor<i1>) -> tensor<1xi1>
      %30 = stablehlo.reduce(%29 init: %c_6) applies stablehlo.and across dimensions = [0] : (tensor<1xi1>, tensor<i1>) -> tensor<i1>
      %31 = stablehlo.compare LT, %arg3, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %32 = stablehlo.add %arg3, %c_10 : tensor<i32>
      %33 = func.call @_where(%31, %32, %c_5) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %34 = func.call @_where(%30, %c_12, %33) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %35 = stablehlo.compare GT, %34, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %36 = stablehlo.or %30, %35 : tensor<i1>
      %37 = stablehlo.convert %36 : (tensor<i1>) -> tensor<i32>
      %38:4 = "stablehlo.case"(%37) ({
        %72 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
        stablehlo.return %72, %arg6, %arg7, %arg8 : tensor<6x6xf32>, tensor<i32>, tensor<6x6xf32>, tensor<6x6xf32>
      }, {
        %72 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
        %73 = stablehlo.multiply %72, %26 : tensor<6x6xf32>
        %74 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
        %75 = stablehlo.multiply %74, %arg7 : tensor<6x6xf32>
        %76 = stablehlo.add %73, %75 : tensor<6x6xf32>
        %77 = stablehlo.multiply %26, %26 : tensor<6x6xf32>
        %78 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
        %79 = stablehlo.multiply %78, %77 : tensor<6x6xf32>
        %80 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
        %81 = stablehlo.multiply %80, %arg8 : tensor<6x6xf32>
        %82 = stablehlo.add %79, %81 : tensor<6x6xf32>
        %83 = stablehlo.compare LT, %arg6, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %84 = stablehlo.add %arg6, %c_10 : tensor<i32>
        %85 = func.call @_where(%83, %84, %c_5) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        %86 = stablehlo.convert %85 : (tensor<i32>) -> tensor<f32>
        %87 = stablehlo.power %cst_3, %86 : tensor<f32>
        %88 = stablehlo.subtract %cst_9, %87 : tensor<f32>
        %89 = stablehlo.broadcast_in_dim %88, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
        %90 = stablehlo.divide %76, %89 : tensor<6x6xf32>
        %91 = stablehlo.convert %85 : (tensor<i32>) -> tensor<f32>
        %92 = stablehlo.power %cst_1, %91 : tensor<f32>
        %93 = stablehlo.subtract %cst_9, %92 : tensor<f32>
        %94 = stablehlo.broadcast_in_dim %93, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
        %95 = stablehlo.divide %82, %94 : tensor<6x6xf32>
        %96 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
        %97 = stablehlo.add %95, %96 : tensor<6x6xf32>
        %98 = stablehlo.sqrt %97 : tensor<6x6xf32>
        %99 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
        %100 = stablehlo.add %98, %99 : tensor<6x6xf32>
        %101 = stablehlo.divide %90, %100 : tensor<6x6xf32>
        %102 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
        %103 = stablehlo.multiply %102, %101 : tensor<6x6xf32>
        stablehlo.return %103, %85, %76, %82 : tensor<6x6xf32>, tensor<i32>, tensor<6x6xf32>, tensor<6x6xf32>
      }) : (tensor<i32>) -> (tensor<6x6xf32>, tensor<i32>, tensor<6x6xf32>, tensor<6x6xf32>)
      %39 = stablehlo.compare LT, %arg5, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %40 = stablehlo.add %arg5, %c_10 : tensor<i32>
      %41 = func.call @_where(%39, %40, %c_5) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %42 = func.call @_where(%30, %arg5, %41) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %43 = stablehlo.compare EQ, %arg1, %c_10, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %44 = stablehlo.compare LT, %arg1, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %45 = stablehlo.add %arg1, %c_10 : tensor<i32>
      %46 = func.call @_where(%44, %45, %c_5) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %47 = func.call @remainder(%46, %c) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %48 = stablehlo.compare LT, %arg2, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %49 = stablehlo.add %arg2, %c_10 : tensor<i32>
      %50 = func.call @_where(%48, %49, %c_5) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %51 = stablehlo.convert %43 : (tensor<i1>) -> tensor<i32>
      %52 = stablehlo.multiply %51, %50 : tensor<i32>
      %53 = stablehlo.convert %43 : (tensor<i1>) -> tensor<i32>
      %54 = stablehlo.subtract %c_10, %53 : tensor<i32>
      %55 = stablehlo.convert %54 : tensor<i32>
      %56 = stablehlo.multiply %55, %arg2 : tensor<i32>
      %57 = stablehlo.add %52, %56 : tensor<i32>
      %58 = func.call @_where(%43, %34, %arg3) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %59 = func.call @_where_1(%43, %30, %arg4) : (tensor<i1>, tensor<i1>, tensor<i1>) -> tensor<i1>
      %60 = func.call @_where(%43, %42, %arg5) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %61 = func.call @_where(%43, %38#1, %arg6) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %62 = func.call @_where_2(%43, %38#2, %arg7) : (tensor<i1>, tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
      %63 = func.call @_where_2(%43, %38#3, %arg8) : (tensor<i1>, tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
      %64 = stablehlo.convert %43 : (tensor<i1>) -> tensor<i32>
      %65 = stablehlo.subtract %c_10, %64 : tensor<i32>
      %66 = stablehlo.convert %65 : (tensor<i32>) -> tensor<f32>
      %67 = stablehlo.broadcast_in_dim %66, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
      %68 = stablehlo.multiply %67, %26 : tensor<6x6xf32>
      %69 = stablehlo.convert %43 : (tensor<i1>) -> tensor<f32>
      %70 = stablehlo.broadcast_in_dim %69, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
      %71 = stablehlo.multiply %70, %38#0 : tensor<6x6xf32>
      stablehlo.return %71, %47, %57, %58, %59, %60, %61, %62, %63, %68 : tensor<6x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i1>, tensor<i32>, tensor<i32>, tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>
    }, {
      %21 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
      stablehlo.return %21, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9 : tensor<6x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i1>, tensor<i32>, tensor<i32>, tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>
    }) : (tensor<i32>) -> (tensor<6x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i1>, tensor<i32>, tensor<i32>, tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>)
    %20 = stablehlo.add %arg0, %19#0 : tensor<6x6xf32>
    return %20, %19#1, %19#2, %19#3, %19#4, %19#5, %19#6, %19#7, %19#8, %19#9, %10 : tensor<6x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i1>, tensor<i32>, tensor<i32>, tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>, tensor<f32>
  }
  func.func private @closed_call(%arg0: tensor<6x6xf32>, %arg1: tensor<i32>, %arg2: tensor<3x6xf32>) -> (tensor<i32>, tensor<3x6xf32>, tensor<3x6xf32>, tensor<3x6xf32>, tensor<3x6xf32>) {
    %cst = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %arg1, %c : tensor<i32>
    %1 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] : (tensor<3x6xf32>, tensor<6x6xf32>) -> tensor<3x6xf32>
    %2 = stablehlo.tanh %1 : tensor<3x6xf32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x6xf32>
    %4 = stablehlo.subtract %3, %2 : tensor<3x6xf32>
    %5 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %6 = stablehlo.multiply %5, %cst : tensor<f32>
    %7 = stablehlo.convert %6 : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<3x6xf32>
    %9 = stablehlo.add %2, %8 : tensor<3x6xf32>
    return %0, %9, %arg2, %2, %4 : tensor<i32>, tensor<3x6xf32>, tensor<3x6xf32>, tensor<3x6xf32>, tensor<3x6xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<4x3x6xf32>, %arg1: tensor<3x6xf32>, %arg2: tensor<i32>) -> tensor<4x3x6xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<3x6xf32>) -> tensor<1x3x6xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c : (tensor<4x3x6xf32>, tensor<1x3x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x3x6xf32>
    return %1 : tensor<4x3x6xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<4x3x6xf32>, %arg1: tensor<i32>) -> tensor<3x6xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, sizes = [1, 3, 6] : (tensor<4x3x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x6xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x6xf32>) -> tensor<3x6xf32>
    return %1 : tensor<3x6xf32>
  }
  func.func private @closed_call_0(%arg0: tensor<6x6xf32>, %arg1: tensor<6x6xf32>, %arg2: tensor<3x6xf32>, %arg3: tensor<3x6xf32>, %arg4: tensor<3x6xf32>, %arg5: tensor<3x6xf32>) -> (tensor<6x6xf32>, tensor<3x6xf32>) {
    %0 = stablehlo.multiply %arg2, %arg5 : tensor<3x6xf32>
    %1 = stablehlo.multiply %0, %arg4 : tensor<3x6xf32>
    %2 = stablehlo.add %0, %1 : tensor<3x6xf32>
    %3 = stablehlo.dot_general %2, %arg3, contracting_dims = [0] x [0] : (tensor<3x6xf32>, tensor<3x6xf32>) -> tensor<6x6xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<6x6xf32>) -> tensor<6x6xf32>
    %5 = stablehlo.add %arg1, %4 : tensor<6x6xf32>
    %6 = stablehlo.dot_general %2, %arg0, contracting_dims = [1] x [1] : (tensor<3x6xf32>, tensor<6x6xf32>) -> tensor<3x6xf32>
    return %5, %6 : tensor<6x6xf32>, tensor<3x6xf32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @remainder(%arg0: tensor<i32>, %arg1: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = call @_where(%1, %c, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.remainder %arg0, %2 : tensor<i32>
    %4 = stablehlo.compare NE, %3, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.compare LT, %3, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %6 = stablehlo.compare LT, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.compare NE, %5, %6, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %8 = stablehlo.and %7, %4 : tensor<i1>
    %9 = stablehlo.add %3, %2 : tensor<i32>
    %10 = stablehlo.select %8, %9, %3 : tensor<i1>, tensor<i32>
    return %10 : tensor<i32>
  }
  func.func private @_where_1(%arg0: tensor<i1>, %arg1: tensor<i1>, %arg2: tensor<i1>) -> tensor<i1> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i1>
    return %0 : tensor<i1>
  }
  func.func private @_where_2(%arg0: tensor<i1>, %arg1: tensor<6x6xf32>, %arg2: tensor<6x6xf32>) -> tensor<6x6xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<6x6xf32>
    return %0 : tensor<6x6xf32>
  }
}
