module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x64x16xf32> {tf.aliasing_output = 0 : i32} loc("p['h']['down']"), %arg1: tensor<3x16xf32> {tf.aliasing_output = 1 : i32} loc("p['h']['o1']"), %arg2: tensor<3x16xf32> {tf.aliasing_output = 2 : i32} loc("p['h']['o2']"), %arg3: tensor<3x16x16xf32> {tf.aliasing_output = 3 : i32} loc("p['h']['out']"), %arg4: tensor<3x16x48xf32> {tf.aliasing_output = 4 : i32} loc("p['h']['qkv']"), %arg5: tensor<3x16xf32> {tf.aliasing_output = 5 : i32} loc("p['h']['s1']"), %arg6: tensor<3x16xf32> {tf.aliasing_output = 6 : i32} loc("p['h']['s2']"), %arg7: tensor<3x16x64xf32> {tf.aliasing_output = 7 : i32} loc("p['h']['up']"), %arg8: tensor<12x16xf32> {tf.aliasing_output = 8 : i32} loc("p['wpe']"), %arg9: tensor<31x16xf32> {tf.aliasing_output = 9 : i32} loc("p['wte']"), %arg10: tensor<i32> {tf.aliasing_output = 10 : i32} loc("s[1][0].count"), %arg11: tensor<3x64x16xf32> {tf.aliasing_output = 11 : i32} loc("s[1][0].mu['h']['down']"), %arg12: tensor<3x16xf32> {tf.aliasing_output = 12 : i32} loc("s[1][0].mu['h']['o1']"), %arg13: tensor<3x16xf32> {tf.aliasing_output = 13 : i32} loc("s[1][0].mu['h']['o2']"), %arg14: tensor<3x16x16xf32> {tf.aliasing_output = 14 : i32} loc("s[1][0].mu['h']['out']"), %arg15: tensor<3x16x48xf32> {tf.aliasing_output = 15 : i32} loc("s[1][0].mu['h']['qkv']"), %arg16: tensor<3x16xf32> {tf.aliasing_output = 16 : i32} loc("s[1][0].mu['h']['s1']"), %arg17: tensor<3x16xf32> {tf.aliasing_output = 17 : i32} loc("s[1][0].mu['h']['s2']"), %arg18: tensor<3x16x64xf32> {tf.aliasing_output = 18 : i32} loc("s[1][0].mu['h']['up']"), %arg19: tensor<12x16xf32> {tf.aliasing_output = 19 : i32} loc("s[1][0].mu['wpe']"), %arg20: tensor<31x16xf32> {tf.aliasing_output = 20 : i32} loc("s[1][0].mu['wte']"), %arg21: tensor<3x64x16xf32> {tf.aliasing_output = 21 : i32} loc("s[1][0].nu['h']['down']"), %arg22: tensor<3x16xf32> {tf.aliasing_output = 22 : i32} loc("s[1][0].nu['h']['o1']"), %arg23: tensor<3x16xf32> {tf.aliasing_output = 23 : i32} loc("s[1][0].nu['h']['o2']"), %arg24: tensor<3x16x16xf32> {tf.aliasing_output = 24 : i32} loc("s[1][0].nu['h']['out']"), %arg25: tensor<3x16x48xf32> {tf.aliasing_output = 25 : i32} loc("s[1][0].nu['h']['qkv']"), %arg26: tensor<3x16xf32> {tf.aliasing_output = 26 : i32} loc("s[1][0].nu['h']['s1']"), %arg27: tensor<3x16xf32> {tf.aliasing_output = 27 : i32} loc("s[1][0].nu['h']['s2']"), %arg28: tensor<3x16x64xf32> {tf.aliasing_output = 28 : i32} loc("s[1][0].nu['h']['up']"), %arg29: tensor<12x16xf32> {tf.aliasing_output = 29 : i32} loc("s[1][0].nu['wpe']"), %arg30: tensor<31x16xf32> {tf.aliasing_output = 30 : i32} loc("s[1][0].nu['wte']"), %arg31: tensor<i32> {tf.aliasing_output = 31 : i32} loc("s[1][2].count"), %arg32: tensor<3x12xi32> loc("data[0]"), %arg33: tensor<3x12xi32> loc("data[1]")) -> (tensor<3x64x16xf32> {jax.result_info = "result[0]['h']['down']"}, tensor<3x16xf32> {jax.result_info = "result[0]['h']['o1']"}, tensor<3x16xf32> {jax.result_info = "result[0]['h']['o2']"}, tensor<3x16x16xf32> {jax.result_info = "result[0]['h']['out']"}, tensor<3x16x48xf32> {jax.result_info = "result[0]['h']['qkv']"}, tensor<3x16xf32> {jax.result_info = "result[0]['h']['s1']"}, tensor<3x16xf32> {jax.result_info = "result[0]['h']['s2']"}, tensor<3x16x64xf32> {jax.result_info = "result[0]['h']['up']"}, tensor<12x16xf32> {jax.result_info = "result[0]['wpe']"}, tensor<31x16xf32> {jax.result_info = "result[0]['wte']"}, tensor<i32> {jax.result_info = "result[1][1][0].count"}, tensor<3x64x16xf32> {jax.result_info = "result[1][1][0].mu['h']['down']"}, tensor<3x16xf32> {jax.result_info = "result[1][1][0].mu['h']['o1']"}, tensor<3x16xf32> {jax.result_info = "result[1][1][0].mu['h']['o2']"}, tensor<3x16x16xf32> {jax.result_info = "result[1][1][0].mu['h']['out']"}, tensor<3x16x48xf32> {jax.result_info = "result[1][1][0].mu['h']['qkv']"}, tensor<3x16xf32> {jax.result_info = "result[1][1][0].mu['h']['s1']"}, tensor<3x16xf32> {jax.result_info = "result[1][1][0].mu['h']['s2']"}, tensor<3x16x64xf32> {jax.result_info = "result[1][1][0].mu['h']['up']"}, tensor<12x16xf32> {jax.result_info = "result[1][1][0].mu['wpe']"}, tensor<31x16xf32> {jax.result_info = "result[1][1][0].mu['wte']"}, tensor<3x64x16xf32> {jax.result_info = "result[1][1][0].nu['h']['down']"}, tensor<3x16xf32> {jax.result_info = "result[1][1][0].nu['h']['o1']"}, tensor<3x16xf32> {jax.result_info = "result[1][1][0].nu['h']['o2']"}, tensor<3x16x16xf32> {jax.result_info = "result[1][1][0].nu['h']['out']"}, tensor<3x16x48xf32> {jax.result_info = "result[1][1][0].nu['h']['qkv']"}, tensor<3x16xf32> {jax.result_info = "result[1][1][0].nu['h']['s1']"}, tensor<3x16xf32> {jax.result_info = "result[1][1][0].nu['h']['s2']"}, tensor<3x16x64xf32> {jax.result_info = "result[1][1][0].nu['h']['up']"}, tensor<12x16xf32> {jax.result_info = "result[1][1][0].nu['wpe']"}, tensor<31x16xf32> {jax.result_info = "result[1][1][0].nu['wte']"}, tensor<i32> {jax.result_info = "result[1][1][2].count"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_1 = stablehlo.constant dense<3.14159274> : tensor<f32>
    %cst_2 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %cst_4 = stablehlo.constant dense<-0.00999999977> : tensor<f32>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %cst_6 = stablehlo.constant dense<9.99999974E-5> : tensor<f32>
    %cst_7 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %c_8 = stablehlo.constant dense<2147483647> : tensor<i32>
    %cst_9 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %cst_10 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %cst_11 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %cst_12 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %cst_13 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_14 = stablehlo.constant dense<3.600000e+01> : tensor<f32>
    %cst_15 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c_16 = stablehlo.constant dense<1> : tensor<i32>
    %c_17 = stablehlo.constant dense<3> : tensor<i32>
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_19 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %c_20 = stablehlo.constant dense<true> : tensor<i1>
    %c_21 = stablehlo.constant dense<31> : tensor<i32>
    %c_22 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_22, dims = [] : (tensor<i32>) -> tensor<3x12xi32>
    %1 = stablehlo.compare LT, %arg32, %0, SIGNED : (tensor<3x12xi32>, tensor<3x12xi32>) -> tensor<3x12xi1>
    %2 = stablehlo.broadcast_in_dim %c_21, dims = [] : (tensor<i32>) -> tensor<3x12xi32>
    %3 = stablehlo.add %arg32, %2 : tensor<3x12xi32>
    %4 = stablehlo.select %1, %3, %arg32 : tensor<3x12xi1>, tensor<3x12xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<3x12xi32>) -> tensor<3x12x1xi32>
    %6 = "stablehlo.gather"(%arg9, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 16>}> : (tensor<31x16xf32>, tensor<3x12x1xi32>) -> tensor<3x12x16xf32>
    %7 = stablehlo.broadcast_in_dim %arg8, dims = [1, 2] : (tensor<12x16xf32>) -> tensor<1x12x16xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<1x12x16xf32>) -> tensor<3x12x16xf32>
    %9 = stablehlo.add %6, %8 : tensor<3x12x16xf32>
    %10:3 = call @_var(%c_22) : (tensor<i32>) -> (tensor<f32>, tensor<i1>, tensor<3x12x1xf32>)
    %11 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %12 = call @tril(%11) : (tensor<12x12xi1>) -> tensor<12x12xi1>
    %13:2 = call @_where_0(%12, %cst_19) : (tensor<12x12xi1>, tensor<f32>) -> (tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>)
    %14:3 = call @_var(%c_22) : (tensor<i32>) -> (tensor<f32>, tensor<i1>, tensor<3x12x1xf32>)
    %15 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x16xf32>
    %16 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x1xf32>
    %17 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x1xf32>
    %18 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x16xf32>
    %19 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x1x1x16xf32>
    %20 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x16xf32>
    %21 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x16xf32>
    %22 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x2x8xf32>
    %23 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x2x8xf32>
    %24 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x2x12x12xf32>
    %25 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x2x12x1xf32>
    %26 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x2x12x1xf32>
    %27 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x2x12x12xf32>
    %28 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x2x8xf32>
    %29 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x16xf32>
    %30 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x16xf32>
    %31 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x1xf32>
    %32 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x1xf32>
    %33 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x16xf32>
    %34 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x1x1x16xf32>
    %35 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x16xf32>
    %36 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x16xf32>
    %37 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x64xf32>
    %38 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x64xf32>
    %39 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x64xf32>
    %40 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x64xf32>
    %41 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x64xf32>
    %42 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x3x12x64xf32>
    %43:46 = stablehlo.while(%iterArg = %arg0, %iterArg_23 = %arg1, %iterArg_24 = %arg2, %iterArg_25 = %arg3, %iterArg_26 = %arg4, %iterArg_27 = %arg5, %iterArg_28 = %arg6, %iterArg_29 = %arg7, %iterArg_30 = %10#0, %iterArg_31 = %10#1, %iterArg_32 = %10#2, %iterArg_33 = %13#0, %iterArg_34 = %13#1, %iterArg_35 = %14#0, %iterArg_36 = %14#1, %iterArg_37 = %14#2, %iterArg_38 = %c_22, %iterArg_39 = %9, %iterArg_40 = %15, %iterArg_41 = %16, %iterArg_42 = %17, %iterArg_43 = %18, %iterArg_44 = %19, %iterArg_45 = %20, %iterArg_46 = %21, %iterArg_47 = %22, %iterArg_48 = %23, %iterArg_49 = %24, %iterArg_50 = %25, %iterArg_51 = %26, %iterArg_52 = %27, %iterArg_53 = %28, %iterArg_54 = %29, %iterArg_55 = %30, %iterArg_56 = %31, %iterArg_57 = %32, %iterArg_58 = %33, %iterArg_59 = %34, %iterArg_60 = %35, %iterArg_61 = %36, %iterArg_62 = %37, %iterArg_63 = %38, %iterArg_64 = %39, %iterArg_65 = %40, %iterArg_66 = %41, %iterArg_67 = %42) : tensor<3x64x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>, tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>, tensor<i32>, tensor<3x12x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x16xf32>, tensor<3x1x1x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x2x8xf32>, tensor<3x3x12x2x8xf32>, tensor<3x3x2x12x12xf32>, tensor<3x3x2x12x1xf32>, tensor<3x3x2x12x1xf32>, tensor<3x3x2x12x12xf32>, tensor<3x3x12x2x8xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x16xf32>, tensor<3x1x1x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>
    cond {
      %517 = stablehlo.compare LT, %iterArg_38, %c_17, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %517 : tensor<i1>
    } do {
      %517 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_38) : (tensor<3x64x16xf32>, tensor<i32>) -> tensor<64x16xf32>
      %518 = func.call @dynamic_index_in_dim_1(%iterArg_23, %iterArg_38) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %519 = func.call @dynamic_index_in_dim_1(%iterArg_24, %iterArg_38) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %520 = func.call @dynamic_index_in_dim_2(%iterArg_25, %iterArg_38) : (tensor<3x16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
      %521 = func.call @dynamic_index_in_dim_3(%iterArg_26, %iterArg_38) : (tensor<3x16x48xf32>, tensor<i32>) -> tensor<16x48xf32>
      %522 = func.call @dynamic_index_in_dim_1(%iterArg_27, %iterArg_38) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %523 = func.call @dynamic_index_in_dim_1(%iterArg_28, %iterArg_38) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %524 = func.call @dynamic_index_in_dim_4(%iterArg_29, %iterArg_38) : (tensor<3x16x64xf32>, tensor<i32>) -> tensor<16x64xf32>
      %525:29 = func.call @closed_call(%iterArg_30, %iterArg_31, %iterArg_32, %iterArg_33, %iterArg_34, %iterArg_35, %iterArg_36, %iterArg_37, %iterArg_39, %517, %518, %519, %520, %521, %522, %523, %524) : (tensor<f32>, tensor<i1>, tensor<3x12x1xf32>, tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>) -> (tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x1xf32>, tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<1x1x16xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x2x8xf32>, tensor<3x12x2x8xf32>, tensor<3x2x12x12xf32>, tensor<3x2x12x1xf32>, tensor<3x2x12x1xf32>, tensor<3x2x12x12xf32>, tensor<3x12x2x8xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x1xf32>, tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<1x1x16xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>)
      %526 = func.call @dynamic_update_index_in_dim(%iterArg_40, %525#1, %iterArg_38) : (tensor<3x3x12x16xf32>, tensor<3x12x16xf32>, tensor<i32>) -> tensor<3x3x12x16xf32>
      %527 = func.call @dynamic_update_index_in_dim_8(%iterArg_41, %525#2, %iterArg_38) : (tensor<3x3x12x1xf32>, tensor<3x12x1xf32>, tensor<i32>) -> tensor<3x3x12x1xf32>
      %528 = func.call @dynamic_update_index_in_dim_8(%iterArg_42, %525#3, %iterArg_38) : (tensor<3x3x12x1xf32>, tensor<3x12x1xf32>, tensor<i32>) -> tensor<3x3x12x1xf32>
      %529 = func.call @dynamic_update_index_in_dim(%iterArg_43, %525#4, %iterArg_38) : (tensor<3x3x12x16xf32>, tensor<3x12x16xf32>, tensor<i32>) -> tensor<3x3x12x16xf32>
      %530 = func.call @dynamic_update_index_in_dim_9(%iterArg_44, %525#5, %iterArg_38) : (tensor<3x1x1x16xf32>, tensor<1x1x16xf32>, tensor<i32>) -> tensor<3x1x1x16xf32>
      %531 = func.call @dynamic_update_index_in_dim(%iterArg_45, %525#6, %iterArg_38) : (tensor<3x3x12x16xf32>, tensor<3x12x16xf32>, tensor<i32>) -> tensor<3x3x12x16xf32>
      %532 = func.call @dynamic_update_index_in_dim(%iterArg_46, %525#7, %iterArg_38) : (tensor<3x3x12x16xf32>, tensor<3x12x16xf32>, tensor<i32>) -> tensor<3x3x12x16xf32>
      %533 = func.call @dynamic_update_index_in_dim_10(%iterArg_47, %525#8, %iterArg_38) : (tensor<3x3x12x2x8xf32>, tensor<3x12x2x8xf32>, tensor<i32>) -> tensor<3x3x12x2x8xf32>
      %534 = func.call @dynamic_update_index_in_dim_10(%iterArg_48, %525#9, %iterArg_38) : (tensor<3x3x12x2x8xf32>, tensor<3x12x2x8xf32>, tensor<i32>) -> tensor<3x3x12x2x8xf32>
      %535 = func.call @dynamic_update_index_in_dim_11(%iterArg_49, %525#10, %iterArg_38) : (tensor<3x3x2x12x12xf32>, tensor<3x2x12x12xf32>, tensor<i32>) -> tensor<3x3x2x12x12xf32>
      %536 = func.call @dynamic_update_index_in_dim_12(%iterArg_50, %525#11, %iterArg_38) : (tensor<3x3x2x12x1xf32>, tensor<3x2x12x1xf32>, tensor<i32>) -> tensor<3x3x2x12x1xf32>
      %537 = func.call @dynamic_update_index_in_dim_12(%iterArg_51, %525#12, %iterArg_38) : (tensor<3x3x2x12x1xf32>, tensor<3x2x12x1xf32>, tensor<i32>) -> tensor<3x3x2x12x1xf32>
      %538 = func.call @dynamic_update_index_in_dim_11(%iterArg_52, %525#13, %iterArg_38) : (tensor<3x3x2x12x12xf32>, tensor<3x2x12x12xf32>, tensor<i32>) -> tensor<3x3x2x12x12xf32>
      %539 = func.call @dynamic_update_index_in_dim_10(%iterArg_53, %525#14, %iterArg_38) : (tensor<3x3x12x2x8xf32>, tensor<3x12x2x8xf32>, tensor<i32>) -> tensor<3x3x12x2x8xf32>
      %540 = func.call @dynamic_update_index_in_dim(%iterArg_54, %525#15, %iterArg_38) : (tensor<3x3x12x16xf32>, tensor<3x12x16xf32>, tensor<i32>) -> tensor<3x3x12x16xf32>
      %541 = func.call @dynamic_update_index_in_dim(%iterArg_55, %525#16, %iterArg_38) : (tensor<3x3x12x16xf32>, tensor<3x12x16xf32>, tensor<i32>) -> tensor<3x3x12x16xf32>
      %542 = func.call @dynamic_update_index_in_dim_8(%iterArg_56, %525#17, %iterArg_38) : (tensor<3x3x12x1xf32>, tensor<3x12x1xf32>, tensor<i32>) -> tensor<3x3x12x1xf32>
      %543 = func.call @dynamic_update_index_in_dim_8(%iterArg_57, %525#18, %iterArg_38) : (tensor<3x3x12x1xf32>, tensor<3x12x1xf32>, tensor<i32>) -> tensor<3x3x12x1xf32>
      %544 = func.call @dynamic_update_index_in_dim(%iterArg_58, %525#19, %iterArg_38) : (tensor<3x3x12x16xf32>, tensor<3x12x16xf32>, tensor<i32>) -> tensor<3x3x12x16xf32>
      %545 = func.call @dynamic_update_index_in_dim_9(%iterArg_59, %525#20, %iterArg_38) : (tensor<3x1x1x16xf32>, tensor<1x1x16xf32>, tensor<i32>) -> tensor<3x1x1x16xf32>
      %546 = func.call @dynamic_update_index_in_dim(%iterArg_60, %525#21, %iterArg_38) : (tensor<3x3x12x16xf32>, tensor<3x12x16xf32>, tensor<i32>) -> tensor<3x3x12x16xf32>
      %547 = func.call @dynamic_update_index_in_dim(%iterArg_61, %525#22, %iterArg_38) : (tensor<3x3x12x16xf32>, tensor<3x12x16xf32>, tensor<i32>) -> tensor<3x3x12x16xf32>
      %548 = func.call @dynamic_update_index_in_dim_13(%iterArg_62, %525#23, %iterArg_38) : (tensor<3x3x12x64xf32>, tensor<3x12x64xf32>, tensor<i32>) -> tensor<3x3x12x64xf32>
      %549 = func.call @dynamic_update_index_in_dim_13(%iterArg_63, %525#24, %iterArg_38) : (tensor<3x3x12x64xf32>, tensor<3x12x64xf32>, tensor<i32>) -> tensor<3x3x12x64xf32>
      %550 = func.call @dynamic_update_index_in_dim_13(%iterArg_64, %525#25, %iterArg_38) : (tensor<3x3x12x64xf32>, tensor<3x12x64xf32>, tensor<i32>) -> tensor<3x3x12x64xf32>
      %551 = func.call @dynamic_update_index_in_dim_13(%iterArg_65, %525#26, %iterArg_38) : (tensor<3x3x12x64xf32>, tensor<3x12x64xf32>, tensor<i32>) -> tensor<3x3x12x64xf32>
      %552 = func.call @dynamic_update_index_in_dim_13(%iterArg_66, %525#27, %iterArg_38) : (tensor<3x3x12x64xf32>, tensor<3x12x64xf32>, tensor<i32>) -> tensor<3x3x12x64xf32>
      %553 = func.call @dynamic_update_index_in_dim_13(%iterArg_67, %525#28, %iterArg_38) : (tensor<3x3x12x64xf32>, tensor<3x12x64xf32>, tensor<i32>) -> tensor<3x3x12x64xf32>
      %554 = stablehlo.add %iterArg_38, %c_16 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_23, %iterArg_24, %iterArg_25, %iterArg_26, %iterArg_27, %iterArg_28, %iterArg_29, %iterArg_30, %iterArg_31, %iterArg_32, %iterArg_33, %iterArg_34, %iterArg_35, %iterArg_36, %iterArg_37, %554, %525#0, %526, %527, %528, %529, %530, %531, %532, %533, %534, %535, %536, %537, %538, %539, %540, %541, %542, %543, %544, %545, %546, %547, %548, %549, %550, %551, %552, %553 : tensor<3x64x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>, tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>, tensor<i32>, tensor<3x12x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x16xf32>, tensor<3x1x1x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x2x8xf32>, tensor<3x3x12x2x8xf32>, tensor<3x3x2x12x12xf32>, tensor<3x3x2x12x1xf32>, tensor<3x3x2x12x1xf32>, tensor<3x3x2x12x12xf32>, tensor<3x3x12x2x8xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x16xf32>, tensor<3x1x1x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>
    }
    %44 = stablehlo.transpose %arg9, dims = [1, 0] : (tensor<31x16xf32>) -> tensor<16x31xf32>
    %45 = stablehlo.dot_general %43#17, %44, contracting_dims = [2] x [0] : (tensor<3x12x16xf32>, tensor<16x31xf32>) -> tensor<3x12x31xf32>
    %46 = stablehlo.broadcast_in_dim %arg33, dims = [0, 1] : (tensor<3x12xi32>) -> tensor<3x12x1xi32>
    %47:2 = call @take_along_axis(%45, %46) : (tensor<3x12x31xf32>, tensor<3x12x1xi32>) -> (tensor<3x12x1xf32>, tensor<3x12x1x1xi32>)
    %48:2 = call @_take(%47#0, %c_22) : (tensor<3x12x1xf32>, tensor<i32>) -> (tensor<3x12xf32>, tensor<1xi32>)
    %49 = stablehlo.reduce(%45 init: %cst_15) applies stablehlo.maximum across dimensions = [2] : (tensor<3x12x31xf32>, tensor<f32>) -> tensor<3x12xf32>
    %50 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %51 = stablehlo.maximum %50, %49 : tensor<3x12xf32>
    %52 = stablehlo.is_finite %51 : (tensor<3x12xf32>) -> tensor<3x12xi1>
    %53 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %54 = stablehlo.select %52, %51, %53 : tensor<3x12xi1>, tensor<3x12xf32>
    %55 = stablehlo.broadcast_in_dim %54, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %56 = stablehlo.broadcast_in_dim %55, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x31xf32>
    %57 = stablehlo.subtract %45, %56 : tensor<3x12x31xf32>
    %58 = stablehlo.exponential %57 : tensor<3x12x31xf32>
    %59 = stablehlo.reduce(%58 init: %cst_18) applies stablehlo.add across dimensions = [2] : (tensor<3x12x31xf32>, tensor<f32>) -> tensor<3x12xf32>
    %60 = stablehlo.abs %59 : tensor<3x12xf32>
    %61 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %62 = stablehlo.compare GE, %59, %61, FLOAT : (tensor<3x12xf32>, tensor<3x12xf32>) -> tensor<3x12xi1>
    %63 = stablehlo.log %60 : tensor<3x12xf32>
    %64 = stablehlo.add %63, %54 : tensor<3x12xf32>
    %65 = stablehlo.subtract %64, %48#0 : tensor<3x12xf32>
    %66 = stablehlo.reduce(%65 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12xf32>, tensor<f32>) -> tensor<f32>
    %67 = stablehlo.divide %66, %cst_14 : tensor<f32>
    %68 = stablehlo.divide %cst_13, %cst_14 : tensor<f32>
    %69 = stablehlo.broadcast_in_dim %68, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %70 = stablehlo.negate %69 : tensor<3x12xf32>
    %71 = stablehlo.divide %69, %60 : tensor<3x12xf32>
    %72 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %73 = stablehlo.select %62, %72, %71 : tensor<3x12xi1>, tensor<3x12xf32>
    %74 = stablehlo.select %62, %71, %72 : tensor<3x12xi1>, tensor<3x12xf32>
    %75 = stablehlo.negate %73 : tensor<3x12xf32>
    %76 = stablehlo.add %74, %75 : tensor<3x12xf32>
    %77 = stablehlo.broadcast_in_dim %76, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x31xf32>
    %78 = stablehlo.multiply %77, %58 : tensor<3x12x31xf32>
    %79 = call @_take_15(%48#1, %70) : (tensor<1xi32>, tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %80 = call @take_along_axis_16(%47#1, %79) : (tensor<3x12x1x1xi32>, tensor<3x12x1xf32>) -> tensor<3x12x31xf32>
    %81 = stablehlo.add %78, %80 : tensor<3x12x31xf32>
    %82 = stablehlo.dot_general %81, %43#17, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x31xf32>, tensor<3x12x16xf32>) -> tensor<31x16xf32>
    %83 = stablehlo.transpose %82, dims = [1, 0] : (tensor<31x16xf32>) -> tensor<16x31xf32>
    %84 = stablehlo.dot_general %81, %44, contracting_dims = [2] x [1] : (tensor<3x12x31xf32>, tensor<16x31xf32>) -> tensor<3x12x16xf32>
    %85 = stablehlo.transpose %83, dims = [1, 0] : (tensor<16x31xf32>) -> tensor<31x16xf32>
    %86 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %87 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %88 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %89 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %90 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %91 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %92 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %93 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %94:47 = stablehlo.while(%iterArg = %43#18, %iterArg_23 = %43#19, %iterArg_24 = %43#20, %iterArg_25 = %43#21, %iterArg_26 = %43#22, %iterArg_27 = %43#23, %iterArg_28 = %arg4, %iterArg_29 = %43#24, %iterArg_30 = %43#25, %iterArg_31 = %43#26, %iterArg_32 = %43#27, %iterArg_33 = %43#28, %iterArg_34 = %43#29, %iterArg_35 = %43#30, %iterArg_36 = %43#31, %iterArg_37 = %arg3, %iterArg_38 = %43#32, %iterArg_39 = %43#33, %iterArg_40 = %43#34, %iterArg_41 = %43#35, %iterArg_42 = %43#36, %iterArg_43 = %43#37, %iterArg_44 = %43#38, %iterArg_45 = %arg7, %iterArg_46 = %43#39, %iterArg_47 = %43#40, %iterArg_48 = %43#41, %iterArg_49 = %43#42, %iterArg_50 = %43#43, %iterArg_51 = %43#44, %iterArg_52 = %arg0, %iterArg_53 = %43#45, %iterArg_54 = %10#0, %iterArg_55 = %10#1, %iterArg_56 = %13#0, %iterArg_57 = %14#0, %iterArg_58 = %14#1, %iterArg_59 = %c_22, %iterArg_60 = %84, %iterArg_61 = %86, %iterArg_62 = %87, %iterArg_63 = %88, %iterArg_64 = %89, %iterArg_65 = %90, %iterArg_66 = %91, %iterArg_67 = %92, %iterArg_68 = %93) : tensor<3x3x12x16xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x16xf32>, tensor<3x1x1x16xf32>, tensor<3x3x12x16xf32>, tensor<3x16x48xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x2x8xf32>, tensor<3x3x12x2x8xf32>, tensor<3x3x2x12x12xf32>, tensor<3x3x2x12x1xf32>, tensor<3x3x2x12x1xf32>, tensor<3x3x2x12x12xf32>, tensor<3x3x12x2x8xf32>, tensor<3x16x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x16xf32>, tensor<3x1x1x16xf32>, tensor<3x3x12x16xf32>, tensor<3x16x64xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x64x16xf32>, tensor<3x3x12x64xf32>, tensor<f32>, tensor<i1>, tensor<3x2x12x12xi1>, tensor<f32>, tensor<i1>, tensor<i32>, tensor<3x12x16xf32>, tensor<3x64x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>
    cond {
      %517 = stablehlo.compare LT, %iterArg_59, %c_17, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %517 : tensor<i1>
    } do {
      %517 = stablehlo.subtract %c_17, %iterArg_59 : tensor<i32>
      %518 = stablehlo.subtract %517, %c_16 : tensor<i32>
      %519 = func.call @dynamic_index_in_dim_17(%iterArg, %518) : (tensor<3x3x12x16xf32>, tensor<i32>) -> tensor<3x12x16xf32>
      %520 = func.call @dynamic_index_in_dim_18(%iterArg_23, %518) : (tensor<3x3x12x1xf32>, tensor<i32>) -> tensor<3x12x1xf32>
      %521 = func.call @dynamic_index_in_dim_18(%iterArg_24, %518) : (tensor<3x3x12x1xf32>, tensor<i32>) -> tensor<3x12x1xf32>
      %522 = func.call @dynamic_index_in_dim_17(%iterArg_25, %518) : (tensor<3x3x12x16xf32>, tensor<i32>) -> tensor<3x12x16xf32>
      %523 = func.call @dynamic_index_in_dim_19(%iterArg_26, %518) : (tensor<3x1x1x16xf32>, tensor<i32>) -> tensor<1x1x16xf32>
      %524 = func.call @dynamic_index_in_dim_17(%iterArg_27, %518) : (tensor<3x3x12x16xf32>, tensor<i32>) -> tensor<3x12x16xf32>
      %525 = func.call @dynamic_index_in_dim_3(%iterArg_28, %518) : (tensor<3x16x48xf32>, tensor<i32>) -> tensor<16x48xf32>
      %526 = func.call @dynamic_index_in_dim_17(%iterArg_29, %518) : (tensor<3x3x12x16xf32>, tensor<i32>) -> tensor<3x12x16xf32>
      %527 = func.call @dynamic_index_in_dim_20(%iterArg_30, %518) : (tensor<3x3x12x2x8xf32>, tensor<i32>) -> tensor<3x12x2x8xf32>
      %528 = func.call @dynamic_index_in_dim_20(%iterArg_31, %518) : (tensor<3x3x12x2x8xf32>, tensor<i32>) -> tensor<3x12x2x8xf32>
      %529 = func.call @dynamic_index_in_dim_21(%iterArg_32, %518) : (tensor<3x3x2x12x12xf32>, tensor<i32>) -> tensor<3x2x12x12xf32>
      %530 = func.call @dynamic_index_in_dim_22(%iterArg_33, %518) : (tensor<3x3x2x12x1xf32>, tensor<i32>) -> tensor<3x2x12x1xf32>
      %531 = func.call @dynamic_index_in_dim_22(%iterArg_34, %518) : (tensor<3x3x2x12x1xf32>, tensor<i32>) -> tensor<3x2x12x1xf32>
      %532 = func.call @dynamic_index_in_dim_21(%iterArg_35, %518) : (tensor<3x3x2x12x12xf32>, tensor<i32>) -> tensor<3x2x12x12xf32>
      %533 = func.call @dynamic_index_in_dim_20(%iterArg_36, %518) : (tensor<3x3x12x2x8xf32>, tensor<i32>) -> tensor<3x12x2x8xf32>
      %534 = func.call @dynamic_index_in_dim_2(%iterArg_37, %518) : (tensor<3x16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
      %535 = func.call @dynamic_index_in_dim_17(%iterArg_38, %518) : (tensor<3x3x12x16xf32>, tensor<i32>) -> tensor<3x12x16xf32>
      %536 = func.call @dynamic_index_in_dim_17(%iterArg_39, %518) : (tensor<3x3x12x16xf32>, tensor<i32>) -> tensor<3x12x16xf32>
      %537 = func.call @dynamic_index_in_dim_18(%iterArg_40, %518) : (tensor<3x3x12x1xf32>, tensor<i32>) -> tensor<3x12x1xf32>
      %538 = func.call @dynamic_index_in_dim_18(%iterArg_41, %518) : (tensor<3x3x12x1xf32>, tensor<i32>) -> tensor<3x12x1xf32>
      %539 = func.call @dynamic_index_in_dim_17(%iterArg_42, %518) : (tensor<3x3x12x16xf32>, tensor<i32>) -> tensor<3x12x16xf32>
      %540 = func.call @dynamic_index_in_dim_19(%iterArg_43, %518) : (tensor<3x1x1x16xf32>, tensor<i32>) -> tensor<1x1x16xf32>
      %541 = func.call @dynamic_index_in_dim_17(%iterArg_44, %518) : (tensor<3x3x12x16xf32>, tensor<i32>) -> tensor<3x12x16xf32>
      %542 = func.call @dynamic_index_in_dim_4(%iterArg_45, %518) : (tensor<3x16x64xf32>, tensor<i32>) -> tensor<16x64xf32>
      %543 = func.call @dynamic_index_in_dim_17(%iterArg_46, %518) : (tensor<3x3x12x16xf32>, tensor<i32>) -> tensor<3x12x16xf32>
      %544 = func.call @dynamic_index_in_dim_23(%iterArg_47, %518) : (tensor<3x3x12x64xf32>, tensor<i32>) -> tensor<3x12x64xf32>
      %545 = func.call @dynamic_index_in_dim_23(%iterArg_48, %518) : (tensor<3x3x12x64xf32>, tensor<i32>) -> tensor<3x12x64xf32>
      %546 = func.call @dynamic_index_in_dim_23(%iterArg_49, %518) : (tensor<3x3x12x64xf32>, tensor<i32>) -> tensor<3x12x64xf32>
      %547 = func.call @dynamic_index_in_dim_23(%iterArg_50, %518) : (tensor<3x3x12x64xf32>, tensor<i32>) -> tensor<3x12x64xf32>
      %548 = func.call @dynamic_index_in_dim_23(%iterArg_51, %518) : (tensor<3x3x12x64xf32>, tensor<i32>) -> tensor<3x12x64xf32>
      %549 = func.call @dynamic_index_in_dim(%iterArg_52, %518) : (tensor<3x64x16xf32>, tensor<i32>) -> tensor<64x16xf32>
      %550 = func.call @dynamic_index_in_dim_23(%iterArg_53, %518) : (tensor<3x3x12x64xf32>, tensor<i32>) -> tensor<3x12x64xf32>
      %551:9 = func.call @closed_call_24(%iterArg_54, %iterArg_55, %iterArg_56, %iterArg_57, %iterArg_58, %iterArg_60, %519, %520, %521, %522, %523, %524, %525, %526, %527, %528, %529, %530, %531, %532, %533, %534, %535, %536, %537, %538, %539, %540, %541, %542, %543, %544, %545, %546, %547, %548, %549, %550) : (tensor<f32>, tensor<i1>, tensor<3x2x12x12xi1>, tensor<f32>, tensor<i1>, tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x1xf32>, tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<1x1x16xf32>, tensor<3x12x16xf32>, tensor<16x48xf32>, tensor<3x12x16xf32>, tensor<3x12x2x8xf32>, tensor<3x12x2x8xf32>, tensor<3x2x12x12xf32>, tensor<3x2x12x1xf32>, tensor<3x2x12x1xf32>, tensor<3x2x12x12xf32>, tensor<3x12x2x8xf32>, tensor<16x16xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x1xf32>, tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<1x1x16xf32>, tensor<3x12x16xf32>, tensor<16x64xf32>, tensor<3x12x16xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<64x16xf32>, tensor<3x12x64xf32>) -> (tensor<3x12x16xf32>, tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>)
      %552 = func.call @dynamic_update_index_in_dim_28(%iterArg_61, %551#1, %518) : (tensor<3x64x16xf32>, tensor<64x16xf32>, tensor<i32>) -> tensor<3x64x16xf32>
      %553 = func.call @dynamic_update_index_in_dim_29(%iterArg_62, %551#2, %518) : (tensor<3x16xf32>, tensor<16xf32>, tensor<i32>) -> tensor<3x16xf32>
      %554 = func.call @dynamic_update_index_in_dim_29(%iterArg_63, %551#3, %518) : (tensor<3x16xf32>, tensor<16xf32>, tensor<i32>) -> tensor<3x16xf32>
      %555 = func.call @dynamic_update_index_in_dim_30(%iterArg_64, %551#4, %518) : (tensor<3x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<3x16x16xf32>
      %556 = func.call @dynamic_update_index_in_dim_31(%iterArg_65, %551#5, %518) : (tensor<3x16x48xf32>, tensor<16x48xf32>, tensor<i32>) -> tensor<3x16x48xf32>
      %557 = func.call @dynamic_update_index_in_dim_29(%iterArg_66, %551#6, %518) : (tensor<3x16xf32>, tensor<16xf32>, tensor<i32>) -> tensor<3x16xf32>
      %558 = func.call @dynamic_update_index_in_dim_29(%iterArg_67, %551#7, %518) : (tensor<3x16xf32>, tensor<16xf32>, tensor<i32>) -> tensor<3x16xf32>
      %559 = func.call @dynamic_update_index_in_dim_32(%iterArg_68, %551#8, %518) : (tensor<3x16x64xf32>, tensor<16x64xf32>, tensor<i32>) -> tensor<3x16x64xf32>
      %560 = stablehlo.add %iterArg_59, %c_16 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_23, %iterArg_24, %iterArg_25, %iterArg_26, %iterArg_27, %iterArg_28, %iterArg_29, %iterArg_30, %iterArg_31, %iterArg_32, %iterArg_33, %iterArg_34, %iterArg_35, %iterArg_36, %iterArg_37, %iterArg_38, %iterArg_39, %iterArg_40, %iterArg_41, %iterArg_42, %iterArg_43, %iterArg_44, %iterArg_45, %iterArg_46, %iterArg_47, %iterArg_48, %iterArg_49, %iterArg_50, %iterArg_51, %iterArg_52, %iterArg_53, %iterArg_54, %iterArg_55, %iterArg_56, %iterArg_57, %iterArg_58, %560, %551#0, %552, %553, %554, %555, %556, %557, %558, %559 : tensor<3x3x12x16xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x16xf32>, tensor<3x1x1x16xf32>, tensor<3x3x12x16xf32>, tensor<3x16x48xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x2x8xf32>, tensor<3x3x12x2x8xf32>, tensor<3x3x2x12x12xf32>, tensor<3x3x2x12x1xf32>, tensor<3x3x2x12x1xf32>, tensor<3x3x2x12x12xf32>, tensor<3x3x12x2x8xf32>, tensor<3x16x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x1xf32>, tensor<3x3x12x16xf32>, tensor<3x1x1x16xf32>, tensor<3x3x12x16xf32>, tensor<3x16x64xf32>, tensor<3x3x12x16xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x3x12x64xf32>, tensor<3x64x16xf32>, tensor<3x3x12x64xf32>, tensor<f32>, tensor<i1>, tensor<3x2x12x12xi1>, tensor<f32>, tensor<i1>, tensor<i32>, tensor<3x12x16xf32>, tensor<3x64x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>
    }
    %95 = stablehlo.reduce(%94#38 init: %cst_18) applies stablehlo.add across dimensions = [0] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<12x16xf32>
    %96 = stablehlo.reshape %95 : (tensor<12x16xf32>) -> tensor<1x12x16xf32>
    %97 = stablehlo.reduce(%96 init: %cst_18) applies stablehlo.add across dimensions = [0] : (tensor<1x12x16xf32>, tensor<f32>) -> tensor<12x16xf32>
    %98 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %99 = "stablehlo.scatter"(%98, %5, %94#38) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
    ^bb0(%arg34: tensor<f32>, %arg35: tensor<f32>):
      %517 = stablehlo.add %arg34, %arg35 : tensor<f32>
      stablehlo.return %517 : tensor<f32>
    }) : (tensor<31x16xf32>, tensor<3x12x1xi32>, tensor<3x12x16xf32>) -> tensor<31x16xf32>
    %100 = stablehlo.add %85, %99 : tensor<31x16xf32>
    %101 = stablehlo.multiply %94#39, %94#39 : tensor<3x64x16xf32>
    %102 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %103 = stablehlo.multiply %102, %102 : tensor<3x64x16xf32>
    %104 = stablehlo.add %101, %103 : tensor<3x64x16xf32>
    %105 = stablehlo.multiply %94#40, %94#40 : tensor<3x16xf32>
    %106 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %107 = stablehlo.multiply %106, %106 : tensor<3x16xf32>
    %108 = stablehlo.add %105, %107 : tensor<3x16xf32>
    %109 = stablehlo.multiply %94#41, %94#41 : tensor<3x16xf32>
    %110 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %111 = stablehlo.multiply %110, %110 : tensor<3x16xf32>
    %112 = stablehlo.add %109, %111 : tensor<3x16xf32>
    %113 = stablehlo.multiply %94#42, %94#42 : tensor<3x16x16xf32>
    %114 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %115 = stablehlo.multiply %114, %114 : tensor<3x16x16xf32>
    %116 = stablehlo.add %113, %115 : tensor<3x16x16xf32>
    %117 = stablehlo.multiply %94#43, %94#43 : tensor<3x16x48xf32>
    %118 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %119 = stablehlo.multiply %118, %118 : tensor<3x16x48xf32>
    %120 = stablehlo.add %117, %119 : tensor<3x16x48xf32>
    %121 = stablehlo.multiply %94#44, %94#44 : tensor<3x16xf32>
    %122 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %123 = stablehlo.multiply %122, %122 : tensor<3x16xf32>
    %124 = stablehlo.add %121, %123 : tensor<3x16xf32>
    %125 = stablehlo.multiply %94#45, %94#45 : tensor<3x16xf32>
    %126 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %127 = stablehlo.multiply %126, %126 : tensor<3x16xf32>
    %128 = stablehlo.add %125, %127 : tensor<3x16xf32>
    %129 = stablehlo.multiply %94#46, %94#46 : tensor<3x16x64xf32>
    %130 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %131 = stablehlo.multiply %130, %130 : tensor<3x16x64xf32>
    %132 = stablehlo.add %129, %131 : tensor<3x16x64xf32>
    %133 = stablehlo.multiply %97, %97 : tensor<12x16xf32>
    %134 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %135 = stablehlo.multiply %134, %134 : tensor<12x16xf32>
    %136 = stablehlo.add %133, %135 : tensor<12x16xf32>
    %137 = stablehlo.multiply %100, %100 : tensor<31x16xf32>
    %138 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %139 = stablehlo.multiply %138, %138 : tensor<31x16xf32>
    %140 = stablehlo.add %137, %139 : tensor<31x16xf32>
    %141 = stablehlo.reduce(%104 init: %cst_18) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x64x16xf32>, tensor<f32>) -> tensor<f32>
    %142 = stablehlo.reduce(%108 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x16xf32>, tensor<f32>) -> tensor<f32>
    %143 = stablehlo.reduce(%112 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x16xf32>, tensor<f32>) -> tensor<f32>
    %144 = stablehlo.reduce(%116 init: %cst_18) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x16x16xf32>, tensor<f32>) -> tensor<f32>
    %145 = stablehlo.reduce(%120 init: %cst_18) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x16x48xf32>, tensor<f32>) -> tensor<f32>
    %146 = stablehlo.reduce(%124 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x16xf32>, tensor<f32>) -> tensor<f32>
    %147 = stablehlo.reduce(%128 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x16xf32>, tensor<f32>) -> tensor<f32>
    %148 = stablehlo.reduce(%132 init: %cst_18) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x16x64xf32>, tensor<f32>) -> tensor<f32>
    %149 = stablehlo.reduce(%136 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<12x16xf32>, tensor<f32>) -> tensor<f32>
    %150 = stablehlo.reduce(%140 init: %cst_18) applies stablehlo.add across dimensions = [0, 1] : (tensor<31x16xf32>, tensor<f32>) -> tensor<f32>
    %151 = stablehlo.add %cst_18, %141 : tensor<f32>
    %152 = stablehlo.add %151, %142 : tensor<f32>
    %153 = stablehlo.add %152, %143 : tensor<f32>
    %154 = stablehlo.add %153, %144 : tensor<f32>
    %155 = stablehlo.add %154, %145 : tensor<f32>
    %156 = stablehlo.add %155, %146 : tensor<f32>
    %157 = stablehlo.add %156, %147 : tensor<f32>
    %158 = stablehlo.add %157, %148 : tensor<f32>
    %159 = stablehlo.add %158, %149 : tensor<f32>
    %160 = stablehlo.add %159, %150 : tensor<f32>
    %161 = stablehlo.sqrt %160 : tensor<f32>
    %162 = stablehlo.compare LT, %161, %cst_13, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %163 = stablehlo.broadcast_in_dim %161, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %164 = stablehlo.divide %94#39, %163 : tensor<3x64x16xf32>
    %165 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %166 = stablehlo.multiply %164, %165 : tensor<3x64x16xf32>
    %167 = stablehlo.select %162, %94#39, %166 : tensor<i1>, tensor<3x64x16xf32>
    %168 = stablehlo.broadcast_in_dim %161, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %169 = stablehlo.divide %94#40, %168 : tensor<3x16xf32>
    %170 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %171 = stablehlo.multiply %169, %170 : tensor<3x16xf32>
    %172 = stablehlo.select %162, %94#40, %171 : tensor<i1>, tensor<3x16xf32>
    %173 = stablehlo.broadcast_in_dim %161, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %174 = stablehlo.divide %94#41, %173 : tensor<3x16xf32>
    %175 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %176 = stablehlo.multiply %174, %175 : tensor<3x16xf32>
    %177 = stablehlo.select %162, %94#41, %176 : tensor<i1>, tensor<3x16xf32>
    %178 = stablehlo.broadcast_in_dim %161, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %179 = stablehlo.divide %94#42, %178 : tensor<3x16x16xf32>
    %180 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %181 = stablehlo.multiply %179, %180 : tensor<3x16x16xf32>
    %182 = stablehlo.select %162, %94#42, %181 : tensor<i1>, tensor<3x16x16xf32>
    %183 = stablehlo.broadcast_in_dim %161, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %184 = stablehlo.divide %94#43, %183 : tensor<3x16x48xf32>
    %185 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %186 = stablehlo.multiply %184, %185 : tensor<3x16x48xf32>
    %187 = stablehlo.select %162, %94#43, %186 : tensor<i1>, tensor<3x16x48xf32>
    %188 = stablehlo.broadcast_in_dim %161, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %189 = stablehlo.divide %94#44, %188 : tensor<3x16xf32>
    %190 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %191 = stablehlo.multiply %189, %190 : tensor<3x16xf32>
    %192 = stablehlo.select %162, %94#44, %191 : tensor<i1>, tensor<3x16xf32>
    %193 = stablehlo.broadcast_in_dim %161, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %194 = stablehlo.divide %94#45, %193 : tensor<3x16xf32>
    %195 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %196 = stablehlo.multiply %194, %195 : tensor<3x16xf32>
    %197 = stablehlo.select %162, %94#45, %196 : tensor<i1>, tensor<3x16xf32>
    %198 = stablehlo.broadcast_in_dim %161, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %199 = stablehlo.divide %94#46, %198 : tensor<3x16x64xf32>
    %200 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %201 = stablehlo.multiply %199, %200 : tensor<3x16x64xf32>
    %202 = stablehlo.select %162, %94#46, %201 : tensor<i1>, tensor<3x16x64xf32>
    %203 = stablehlo.broadcast_in_dim %161, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %204 = stablehlo.divide %97, %203 : tensor<12x16xf32>
    %205 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %206 = stablehlo.multiply %204, %205 : tensor<12x16xf32>
    %207 = stablehlo.select %162, %97, %206 : tensor<i1>, tensor<12x16xf32>
    %208 = stablehlo.broadcast_in_dim %161, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %209 = stablehlo.divide %100, %208 : tensor<31x16xf32>
    %210 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %211 = stablehlo.multiply %209, %210 : tensor<31x16xf32>
    %212 = stablehlo.select %162, %100, %211 : tensor<i1>, tensor<31x16xf32>
    %213 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %214 = stablehlo.multiply %213, %167 : tensor<3x64x16xf32>
    %215 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %216 = stablehlo.multiply %215, %arg11 : tensor<3x64x16xf32>
    %217 = stablehlo.add %214, %216 : tensor<3x64x16xf32>
    %218 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %219 = stablehlo.multiply %218, %172 : tensor<3x16xf32>
    %220 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %221 = stablehlo.multiply %220, %arg12 : tensor<3x16xf32>
    %222 = stablehlo.add %219, %221 : tensor<3x16xf32>
    %223 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %224 = stablehlo.multiply %223, %177 : tensor<3x16xf32>
    %225 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %226 = stablehlo.multiply %225, %arg13 : tensor<3x16xf32>
    %227 = stablehlo.add %224, %226 : tensor<3x16xf32>
    %228 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %229 = stablehlo.multiply %228, %182 : tensor<3x16x16xf32>
    %230 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %231 = stablehlo.multiply %230, %arg14 : tensor<3x16x16xf32>
    %232 = stablehlo.add %229, %231 : tensor<3x16x16xf32>
    %233 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %234 = stablehlo.multiply %233, %187 : tensor<3x16x48xf32>
    %235 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %236 = stablehlo.multiply %235, %arg15 : tensor<3x16x48xf32>
    %237 = stablehlo.add %234, %236 : tensor<3x16x48xf32>
    %238 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %239 = stablehlo.multiply %238, %192 : tensor<3x16xf32>
    %240 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %241 = stablehlo.multiply %240, %arg16 : tensor<3x16xf32>
    %242 = stablehlo.add %239, %241 : tensor<3x16xf32>
    %243 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %244 = stablehlo.multiply %243, %197 : tensor<3x16xf32>
    %245 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %246 = stablehlo.multiply %245, %arg17 : tensor<3x16xf32>
    %247 = stablehlo.add %244, %246 : tensor<3x16xf32>
    %248 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %249 = stablehlo.multiply %248, %202 : tensor<3x16x64xf32>
    %250 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %251 = stablehlo.multiply %250, %arg18 : tensor<3x16x64xf32>
    %252 = stablehlo.add %249, %251 : tensor<3x16x64xf32>
    %253 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %254 = stablehlo.multiply %253, %207 : tensor<12x16xf32>
    %255 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %256 = stablehlo.multiply %255, %arg19 : tensor<12x16xf32>
    %257 = stablehlo.add %254, %256 : tensor<12x16xf32>
    %258 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %259 = stablehlo.multiply %258, %212 : tensor<31x16xf32>
    %260 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %261 = stablehlo.multiply %260, %arg20 : tensor<31x16xf32>
    %262 = stablehlo.add %259, %261 : tensor<31x16xf32>
    %263 = stablehlo.multiply %167, %167 : tensor<3x64x16xf32>
    %264 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %265 = stablehlo.multiply %264, %263 : tensor<3x64x16xf32>
    %266 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %267 = stablehlo.multiply %266, %arg21 : tensor<3x64x16xf32>
    %268 = stablehlo.add %265, %267 : tensor<3x64x16xf32>
    %269 = stablehlo.multiply %172, %172 : tensor<3x16xf32>
    %270 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %271 = stablehlo.multiply %270, %269 : tensor<3x16xf32>
    %272 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %273 = stablehlo.multiply %272, %arg22 : tensor<3x16xf32>
    %274 = stablehlo.add %271, %273 : tensor<3x16xf32>
    %275 = stablehlo.multiply %177, %177 : tensor<3x16xf32>
    %276 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %277 = stablehlo.multiply %276, %275 : tensor<3x16xf32>
    %278 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %279 = stablehlo.multiply %278, %arg23 : tensor<3x16xf32>
    %280 = stablehlo.add %277, %279 : tensor<3x16xf32>
    %281 = stablehlo.multiply %182, %182 : tensor<3x16x16xf32>
    %282 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %283 = stablehlo.multiply %282, %281 : tensor<3x16x16xf32>
    %284 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %285 = stablehlo.multiply %284, %arg24 : tensor<3x16x16xf32>
    %286 = stablehlo.add %283, %285 : tensor<3x16x16xf32>
    %287 = stablehlo.multiply %187, %187 : tensor<3x16x48xf32>
    %288 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %289 = stablehlo.multiply %288, %287 : tensor<3x16x48xf32>
    %290 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %291 = stablehlo.multiply %290, %arg25 : tensor<3x16x48xf32>
    %292 = stablehlo.add %289, %291 : tensor<3x16x48xf32>
    %293 = stablehlo.multiply %192, %192 : tensor<3x16xf32>
    %294 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %295 = stablehlo.multiply %294, %293 : tensor<3x16xf32>
    %296 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %297 = stablehlo.multiply %296, %arg26 : tensor<3x16xf32>
    %298 = stablehlo.add %295, %297 : tensor<3x16xf32>
    %299 = stablehlo.multiply %197, %197 : tensor<3x16xf32>
    %300 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %301 = stablehlo.multiply %300, %299 : tensor<3x16xf32>
    %302 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %303 = stablehlo.multiply %302, %arg27 : tensor<3x16xf32>
    %304 = stablehlo.add %301, %303 : tensor<3x16xf32>
    %305 = stablehlo.multiply %202, %202 : tensor<3x16x64xf32>
    %306 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %307 = stablehlo.multiply %306, %305 : tensor<3x16x64xf32>
    %308 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %309 = stablehlo.multiply %308, %arg28 : tensor<3x16x64xf32>
    %310 = stablehlo.add %307, %309 : tensor<3x16x64xf32>
    %311 = stablehlo.multiply %207, %207 : tensor<12x16xf32>
    %312 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %313 = stablehlo.multiply %312, %311 : tensor<12x16xf32>
    %314 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %315 = stablehlo.multiply %314, %arg29 : tensor<12x16xf32>
    %316 = stablehlo.add %313, %315 : tensor<12x16xf32>
    %317 = stablehlo.multiply %212, %212 : tensor<31x16xf32>
    %318 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %319 = stablehlo.multiply %318, %317 : tensor<31x16xf32>
    %320 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %321 = stablehlo.multiply %320, %arg30 : tensor<31x16xf32>
    %322 = stablehlo.add %319, %321 : tensor<31x16xf32>
    %323 = stablehlo.compare LT, %arg10, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %324 = stablehlo.add %arg10, %c_16 : tensor<i32>
    %325 = call @_where_33(%323, %324, %c_8) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %326 = stablehlo.convert %325 : (tensor<i32>) -> tensor<f32>
    %327 = stablehlo.power %cst_11, %326 : tensor<f32>
    %328 = stablehlo.subtract %cst_13, %327 : tensor<f32>
    %329 = stablehlo.broadcast_in_dim %328, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %330 = stablehlo.divide %217, %329 : tensor<3x64x16xf32>
    %331 = stablehlo.broadcast_in_dim %328, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %332 = stablehlo.divide %222, %331 : tensor<3x16xf32>
    %333 = stablehlo.broadcast_in_dim %328, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %334 = stablehlo.divide %227, %333 : tensor<3x16xf32>
    %335 = stablehlo.broadcast_in_dim %328, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %336 = stablehlo.divide %232, %335 : tensor<3x16x16xf32>
    %337 = stablehlo.broadcast_in_dim %328, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %338 = stablehlo.divide %237, %337 : tensor<3x16x48xf32>
    %339 = stablehlo.broadcast_in_dim %328, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %340 = stablehlo.divide %242, %339 : tensor<3x16xf32>
    %341 = stablehlo.broadcast_in_dim %328, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %342 = stablehlo.divide %247, %341 : tensor<3x16xf32>
    %343 = stablehlo.broadcast_in_dim %328, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %344 = stablehlo.divide %252, %343 : tensor<3x16x64xf32>
    %345 = stablehlo.broadcast_in_dim %328, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %346 = stablehlo.divide %257, %345 : tensor<12x16xf32>
    %347 = stablehlo.broadcast_in_dim %328, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %348 = stablehlo.divide %262, %347 : tensor<31x16xf32>
    %349 = stablehlo.convert %325 : (tensor<i32>) -> tensor<f32>
    %350 = stablehlo.power %cst_9, %349 : tensor<f32>
    %351 = stablehlo.subtract %cst_13, %350 : tensor<f32>
    %352 = stablehlo.broadcast_in_dim %351, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %353 = stablehlo.divide %268, %352 : tensor<3x64x16xf32>
    %354 = stablehlo.broadcast_in_dim %351, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %355 = stablehlo.divide %274, %354 : tensor<3x16xf32>
    %356 = stablehlo.broadcast_in_dim %351, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %357 = stablehlo.divide %280, %356 : tensor<3x16xf32>
    %358 = stablehlo.broadcast_in_dim %351, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %359 = stablehlo.divide %286, %358 : tensor<3x16x16xf32>
    %360 = stablehlo.broadcast_in_dim %351, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %361 = stablehlo.divide %292, %360 : tensor<3x16x48xf32>
    %362 = stablehlo.broadcast_in_dim %351, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %363 = stablehlo.divide %298, %362 : tensor<3x16xf32>
    %364 = stablehlo.broadcast_in_dim %351, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %365 = stablehlo.divide %304, %364 : tensor<3x16xf32>
    %366 = stablehlo.broadcast_in_dim %351, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %367 = stablehlo.divide %310, %366 : tensor<3x16x64xf32>
    %368 = stablehlo.broadcast_in_dim %351, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %369 = stablehlo.divide %316, %368 : tensor<12x16xf32>
    %370 = stablehlo.broadcast_in_dim %351, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %371 = stablehlo.divide %322, %370 : tensor<31x16xf32>
    %372 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %373 = stablehlo.add %353, %372 : tensor<3x64x16xf32>
    %374 = stablehlo.sqrt %373 : tensor<3x64x16xf32>
    %375 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %376 = stablehlo.add %374, %375 : tensor<3x64x16xf32>
    %377 = stablehlo.divide %330, %376 : tensor<3x64x16xf32>
    %378 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %379 = stablehlo.add %355, %378 : tensor<3x16xf32>
    %380 = stablehlo.sqrt %379 : tensor<3x16xf32>
    %381 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %382 = stablehlo.add %380, %381 : tensor<3x16xf32>
    %383 = stablehlo.divide %332, %382 : tensor<3x16xf32>
    %384 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %385 = stablehlo.add %357, %384 : tensor<3x16xf32>
    %386 = stablehlo.sqrt %385 : tensor<3x16xf32>
    %387 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %388 = stablehlo.add %386, %387 : tensor<3x16xf32>
    %389 = stablehlo.divide %334, %388 : tensor<3x16xf32>
    %390 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %391 = stablehlo.add %359, %390 : tensor<3x16x16xf32>
    %392 = stablehlo.sqrt %391 : tensor<3x16x16xf32>
    %393 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %394 = stablehlo.add %392, %393 : tensor<3x16x16xf32>
    %395 = stablehlo.divide %336, %394 : tensor<3x16x16xf32>
    %396 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %397 = stablehlo.add %361, %396 : tensor<3x16x48xf32>
    %398 = stablehlo.sqrt %397 : tensor<3x16x48xf32>
    %399 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %400 = stablehlo.add %398, %399 : tensor<3x16x48xf32>
    %401 = stablehlo.divide %338, %400 : tensor<3x16x48xf32>
    %402 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %403 = stablehlo.add %363, %402 : tensor<3x16xf32>
    %404 = stablehlo.sqrt %403 : tensor<3x16xf32>
    %405 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %406 = stablehlo.add %404, %405 : tensor<3x16xf32>
    %407 = stablehlo.divide %340, %406 : tensor<3x16xf32>
    %408 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %409 = stablehlo.add %365, %408 : tensor<3x16xf32>
    %410 = stablehlo.sqrt %409 : tensor<3x16xf32>
    %411 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %412 = stablehlo.add %410, %411 : tensor<3x16xf32>
    %413 = stablehlo.divide %342, %412 : tensor<3x16xf32>
    %414 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %415 = stablehlo.add %367, %414 : tensor<3x16x64xf32>
    %416 = stablehlo.sqrt %415 : tensor<3x16x64xf32>
    %417 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %418 = stablehlo.add %416, %417 : tensor<3x16x64xf32>
    %419 = stablehlo.divide %344, %418 : tensor<3x16x64xf32>
    %420 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %421 = stablehlo.add %369, %420 : tensor<12x16xf32>
    %422 = stablehlo.sqrt %421 : tensor<12x16xf32>
    %423 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %424 = stablehlo.add %422, %423 : tensor<12x16xf32>
    %425 = stablehlo.divide %346, %424 : tensor<12x16xf32>
    %426 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %427 = stablehlo.add %371, %426 : tensor<31x16xf32>
    %428 = stablehlo.sqrt %427 : tensor<31x16xf32>
    %429 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %430 = stablehlo.add %428, %429 : tensor<31x16xf32>
    %431 = stablehlo.divide %348, %430 : tensor<31x16xf32>
    %432 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %433 = stablehlo.multiply %432, %arg0 : tensor<3x64x16xf32>
    %434 = stablehlo.add %377, %433 : tensor<3x64x16xf32>
    %435 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %436 = stablehlo.multiply %435, %arg1 : tensor<3x16xf32>
    %437 = stablehlo.add %383, %436 : tensor<3x16xf32>
    %438 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %439 = stablehlo.multiply %438, %arg2 : tensor<3x16xf32>
    %440 = stablehlo.add %389, %439 : tensor<3x16xf32>
    %441 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %442 = stablehlo.multiply %441, %arg3 : tensor<3x16x16xf32>
    %443 = stablehlo.add %395, %442 : tensor<3x16x16xf32>
    %444 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %445 = stablehlo.multiply %444, %arg4 : tensor<3x16x48xf32>
    %446 = stablehlo.add %401, %445 : tensor<3x16x48xf32>
    %447 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %448 = stablehlo.multiply %447, %arg5 : tensor<3x16xf32>
    %449 = stablehlo.add %407, %448 : tensor<3x16xf32>
    %450 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %451 = stablehlo.multiply %450, %arg6 : tensor<3x16xf32>
    %452 = stablehlo.add %413, %451 : tensor<3x16xf32>
    %453 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %454 = stablehlo.multiply %453, %arg7 : tensor<3x16x64xf32>
    %455 = stablehlo.add %419, %454 : tensor<3x16x64xf32>
    %456 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %457 = stablehlo.multiply %456, %arg8 : tensor<12x16xf32>
    %458 = stablehlo.add %425, %457 : tensor<12x16xf32>
    %459 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %460 = stablehlo.multiply %459, %arg9 : tensor<31x16xf32>
    %461 = stablehlo.add %431, %460 : tensor<31x16xf32>
    %462 = stablehlo.subtract %arg31, %c_22 : tensor<i32>
    %463 = call @clip(%462, %c_22, %c) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %464 = stablehlo.convert %463 : (tensor<i32>) -> tensor<f32>
    %465 = stablehlo.divide %464, %cst_5 : tensor<f32>
    %466 = stablehlo.subtract %cst_13, %465 : tensor<f32>
    %467 = stablehlo.multiply %cst_4, %466 : tensor<f32>
    %468 = stablehlo.add %467, %cst_3 : tensor<f32>
    %469 = stablehlo.compare LT, %arg31, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %470 = stablehlo.subtract %arg31, %c : tensor<i32>
    %471 = stablehlo.convert %470 : (tensor<i32>) -> tensor<f32>
    %472 = stablehlo.minimum %471, %cst_2 : tensor<f32>
    %473 = stablehlo.multiply %cst_1, %472 : tensor<f32>
    %474 = stablehlo.divide %473, %cst_2 : tensor<f32>
    %475 = stablehlo.cosine %474 : tensor<f32>
    %476 = stablehlo.add %cst_13, %475 : tensor<f32>
    %477 = stablehlo.multiply %cst_0, %476 : tensor<f32>
    %478 = stablehlo.power %477, %cst_13 : tensor<f32>
    %479 = stablehlo.multiply %cst_13, %478 : tensor<f32>
    %480 = stablehlo.add %479, %cst_18 : tensor<f32>
    %481 = stablehlo.multiply %cst_3, %480 : tensor<f32>
    %482 = call @_where_34(%469, %468, %481) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %483 = stablehlo.multiply %cst, %482 : tensor<f32>
    %484 = stablehlo.broadcast_in_dim %483, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %485 = stablehlo.multiply %484, %434 : tensor<3x64x16xf32>
    %486 = stablehlo.broadcast_in_dim %483, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %487 = stablehlo.multiply %486, %437 : tensor<3x16xf32>
    %488 = stablehlo.broadcast_in_dim %483, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %489 = stablehlo.multiply %488, %440 : tensor<3x16xf32>
    %490 = stablehlo.broadcast_in_dim %483, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %491 = stablehlo.multiply %490, %443 : tensor<3x16x16xf32>
    %492 = stablehlo.broadcast_in_dim %483, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %493 = stablehlo.multiply %492, %446 : tensor<3x16x48xf32>
    %494 = stablehlo.broadcast_in_dim %483, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %495 = stablehlo.multiply %494, %449 : tensor<3x16xf32>
    %496 = stablehlo.broadcast_in_dim %483, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %497 = stablehlo.multiply %496, %452 : tensor<3x16xf32>
    %498 = stablehlo.broadcast_in_dim %483, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %499 = stablehlo.multiply %498, %455 : tensor<3x16x64xf32>
    %500 = stablehlo.broadcast_in_dim %483, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %501 = stablehlo.multiply %500, %458 : tensor<12x16xf32>
    %502 = stablehlo.broadcast_in_dim %483, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %503 = stablehlo.multiply %502, %461 : tensor<31x16xf32>
    %504 = stablehlo.compare LT, %arg31, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %505 = stablehlo.add %arg31, %c_16 : tensor<i32>
    %506 = call @_where_33(%504, %505, %c_8) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %507 = stablehlo.add %arg0, %485 : tensor<3x64x16xf32>
    %508 = stablehlo.add %arg1, %487 : tensor<3x16xf32>
    %509 = stablehlo.add %arg2, %489 : tensor<3x16xf32>
    %510 = stablehlo.add %arg3, %491 : tensor<3x16x16xf32>
    %511 = stablehlo.add %arg4, %493 : tensor<3x16x48xf32>
    %512 = stablehlo.add %arg5, %495 : tensor<3x16xf32>
    %513 = stablehlo.add %arg6, %497 : tensor<3x16xf32>
    %514 = stablehlo.add %arg7, %499 : tensor<3x16x64xf32>
    %515 = stablehlo.add %arg8, %501 : tensor<12x16xf32>
    %516 = stablehlo.add %arg9, %503 : tensor<31x16xf32>
    return %507, %508, %509, %510, %511, %512, %513, %514, %515, %516, %325, %217, %222, %227, %232, %237, %242, %247, %252, %257, %262, %268, %274, %280, %286, %292, %298, %304, %310, %316, %322, %506, %67 : tensor<3x64x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<12x16xf32>, tensor<31x16xf32>, tensor<i32>, tensor<3x64x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<12x16xf32>, tensor<31x16xf32>, tensor<3x64x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<12x16xf32>, tensor<31x16xf32>, tensor<i32>, tensor<f32>
  }
  func.func private @_var(%arg0: tensor<i32>) -> (tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %0 = stablehlo.convert %arg0 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.subtract %cst_1, %0 : tensor<f32>
    %2 = stablehlo.compare GT, %1, %cst_0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = call @_where(%cst) : (tensor<f32>) -> tensor<3x12x1xf32>
    return %1, %2, %3 : tensor<f32>, tensor<i1>, tensor<3x12x1xf32>
  }
  func.func private @_where(%arg0: tensor<f32>) -> tensor<3x12x1xf32> {
    %0 = stablehlo.convert %arg0 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    return %1 : tensor<3x12x1xf32>
  }
  func.func private @tril(%arg0: tensor<12x12xi1>) -> tensor<12x12xi1> {
    %c = stablehlo.constant dense<false> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.iota dim = 0 : tensor<12x12xi32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<12x12xi32>
    %2 = stablehlo.add %0, %1 : tensor<12x12xi32>
    %3 = stablehlo.iota dim = 1 : tensor<12x12xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<12x12xi32>, tensor<12x12xi32>) -> tensor<12x12xi1>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<12x12xi1>, tensor<12x12xi1>
    return %6 : tensor<12x12xi1>
  }
  func.func private @_where_0(%arg0: tensor<12x12xi1>, %arg1: tensor<f32>) -> (tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>) {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<12x12xi1>) -> tensor<3x2x12x12xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3x2x12x12xf32>
    return %1, %2 : tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<3x64x16xf32>, %arg1: tensor<i32>) -> tensor<64x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, sizes = [1, 64, 16] : (tensor<3x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x64x16xf32>) -> tensor<64x16xf32>
    return %1 : tensor<64x16xf32>
  }
  func.func private @dynamic_index_in_dim_1(%arg0: tensor<3x16xf32>, %arg1: tensor<i32>) -> tensor<16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 16] : (tensor<3x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16xf32>) -> tensor<16xf32>
    return %1 : tensor<16xf32>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<3x16x16xf32>, %arg1: tensor<i32>) -> tensor<16x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, sizes = [1, 16, 16] : (tensor<3x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
    return %1 : tensor<16x16xf32>
  }
  func.func private @dynamic_index_in_dim_3(%arg0: tensor<3x16x48xf32>, %arg1: tensor<i32>) -> tensor<16x48xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, sizes = [1, 16, 48] : (tensor<3x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x48xf32>) -> tensor<16x48xf32>
    return %1 : tensor<16x48xf32>
  }
  func.func private @dynamic_index_in_dim_4(%arg0: tensor<3x16x64xf32>, %arg1: tensor<i32>) -> tensor<16x64xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, sizes = [1, 16, 64] : (tensor<3x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x64xf32>) -> tensor<16x64xf32>
    return %1 : tensor<16x64xf32>
  }
  func.func private @closed_call(%arg0: tensor<f32>, %arg1: tensor<i1>, %arg2: tensor<3x12x1xf32>, %arg3: tensor<3x2x12x12xi1>, %arg4: tensor<3x2x12x12xf32>, %arg5: tensor<f32>, %arg6: tensor<i1>, %arg7: tensor<3x12x1xf32>, %arg8: tensor<3x12x16xf32>, %arg9: tensor<64x16xf32>, %arg10: tensor<16xf32>, %arg11: tensor<16xf32>, %arg12: tensor<16x16xf32>, %arg13: tensor<16x48xf32>, %arg14: tensor<16xf32>, %arg15: tensor<16xf32>, %arg16: tensor<16x64xf32>) -> (tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x1xf32>, tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<1x1x16xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x2x8xf32>, tensor<3x12x2x8xf32>, tensor<3x2x12x12xf32>, tensor<3x2x12x1xf32>, tensor<3x2x12x1xf32>, tensor<3x2x12x12xf32>, tensor<3x12x2x8xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x1xf32>, tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<1x1x16xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %cst_1 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %cst_2 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_5 = stablehlo.constant dense<2.82842708> : tensor<f32>
    %cst_6 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %cst_7 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %cst_8 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg8 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %2 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<3x12x1xf32>
    %4:2 = call @_var_5(%arg8, %arg0, %arg1, %arg2) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>)
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %6 = stablehlo.subtract %arg8, %5 : tensor<3x12x16xf32>
    %7 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %8 = stablehlo.add %4#0, %7 : tensor<3x12x1xf32>
    %9 = stablehlo.rsqrt %8 : tensor<3x12x1xf32>
    %10 = stablehlo.divide %9, %8 : tensor<3x12x1xf32>
    %11 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %12 = stablehlo.multiply %11, %10 : tensor<3x12x1xf32>
    %13 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %14 = stablehlo.multiply %6, %13 : tensor<3x12x16xf32>
    %15 = stablehlo.broadcast_in_dim %arg14, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %17 = stablehlo.multiply %14, %16 : tensor<3x12x16xf32>
    %18 = stablehlo.broadcast_in_dim %arg10, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %20 = stablehlo.add %17, %19 : tensor<3x12x16xf32>
    %21 = stablehlo.dot_general %20, %arg13, contracting_dims = [2] x [0] : (tensor<3x12x16xf32>, tensor<16x48xf32>) -> tensor<3x12x48xf32>
    %22 = stablehlo.slice %21 [0:3, 0:12, 0:16] : (tensor<3x12x48xf32>) -> tensor<3x12x16xf32>
    %23 = stablehlo.slice %21 [0:3, 0:12, 16:32] : (tensor<3x12x48xf32>) -> tensor<3x12x16xf32>
    %24 = stablehlo.slice %21 [0:3, 0:12, 32:48] : (tensor<3x12x48xf32>) -> tensor<3x12x16xf32>
    %25 = stablehlo.reshape %22 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %26 = stablehlo.reshape %23 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %27 = stablehlo.reshape %24 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %28 = stablehlo.dot_general %25, %26, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x12x2x8xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x12xf32>
    %29 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x2x12x12xf32>
    %30 = stablehlo.divide %28, %29 : tensor<3x2x12x12xf32>
    %31 = call @_where_7(%30, %arg3, %arg4) : (tensor<3x2x12x12xf32>, tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xf32>
    %32 = stablehlo.reduce(%31 init: %cst_4) applies stablehlo.maximum across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %33 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x2x12xf32>
    %34 = stablehlo.maximum %33, %32 : tensor<3x2x12xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %37 = stablehlo.subtract %31, %36 : tensor<3x2x12x12xf32>
    %38 = stablehlo.exponential %37 : tensor<3x2x12x12xf32>
    %39 = stablehlo.reduce(%38 init: %cst_9) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %42 = stablehlo.divide %38, %41 : tensor<3x2x12x12xf32>
    %43 = stablehlo.multiply %40, %40 : tensor<3x2x12x1xf32>
    %44 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x2x12x1xf32>
    %45 = stablehlo.divide %44, %43 : tensor<3x2x12x1xf32>
    %46 = stablehlo.dot_general %27, %42, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<3x12x2x8xf32>, tensor<3x2x12x12xf32>) -> tensor<3x2x8x12xf32>
    %47 = stablehlo.transpose %46, dims = [0, 3, 1, 2] : (tensor<3x2x8x12xf32>) -> tensor<3x12x2x8xf32>
    %48 = stablehlo.reshape %47 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %49 = stablehlo.dot_general %48, %arg12, contracting_dims = [2] x [0] : (tensor<3x12x16xf32>, tensor<16x16xf32>) -> tensor<3x12x16xf32>
    %50 = stablehlo.add %arg8, %49 : tensor<3x12x16xf32>
    %51 = stablehlo.reduce(%50 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %53 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %54 = stablehlo.divide %52, %53 : tensor<3x12x1xf32>
    %55:2 = call @_var_5(%50, %arg5, %arg6, %arg7) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>)
    %56 = stablehlo.broadcast_in_dim %54, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %57 = stablehlo.subtract %50, %56 : tensor<3x12x16xf32>
    %58 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %59 = stablehlo.add %55#0, %58 : tensor<3x12x1xf32>
    %60 = stablehlo.rsqrt %59 : tensor<3x12x1xf32>
    %61 = stablehlo.divide %60, %59 : tensor<3x12x1xf32>
    %62 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %63 = stablehlo.multiply %62, %61 : tensor<3x12x1xf32>
    %64 = stablehlo.broadcast_in_dim %60, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %65 = stablehlo.multiply %57, %64 : tensor<3x12x16xf32>
    %66 = stablehlo.broadcast_in_dim %arg15, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %68 = stablehlo.multiply %65, %67 : tensor<3x12x16xf32>
    %69 = stablehlo.broadcast_in_dim %arg11, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %70 = stablehlo.broadcast_in_dim %69, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %71 = stablehlo.add %68, %70 : tensor<3x12x16xf32>
    %72 = stablehlo.dot_general %71, %arg16, contracting_dims = [2] x [0] : (tensor<3x12x16xf32>, tensor<16x64xf32>) -> tensor<3x12x64xf32>
    %73 = stablehlo.multiply %72, %72 : tensor<3x12x64xf32>
    %74 = stablehlo.multiply %73, %72 : tensor<3x12x64xf32>
    %75 = stablehlo.multiply %72, %72 : tensor<3x12x64xf32>
    %76 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %77 = stablehlo.multiply %76, %75 : tensor<3x12x64xf32>
    %78 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %79 = stablehlo.multiply %78, %74 : tensor<3x12x64xf32>
    %80 = stablehlo.add %72, %79 : tensor<3x12x64xf32>
    %81 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %82 = stablehlo.multiply %81, %80 : tensor<3x12x64xf32>
    %83 = stablehlo.tanh %82 : tensor<3x12x64xf32>
    %84 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %85 = stablehlo.subtract %84, %83 : tensor<3x12x64xf32>
    %86 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %87 = stablehlo.add %86, %83 : tensor<3x12x64xf32>
    %88 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %89 = stablehlo.multiply %88, %87 : tensor<3x12x64xf32>
    %90 = stablehlo.multiply %72, %89 : tensor<3x12x64xf32>
    %91 = stablehlo.dot_general %90, %arg9, contracting_dims = [2] x [0] : (tensor<3x12x64xf32>, tensor<64x16xf32>) -> tensor<3x12x16xf32>
    %92 = stablehlo.add %50, %91 : tensor<3x12x16xf32>
    return %92, %4#1, %12, %9, %6, %15, %14, %20, %26, %25, %38, %40, %45, %42, %27, %48, %55#1, %63, %60, %57, %66, %65, %71, %77, %83, %85, %89, %72, %90 : tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x1xf32>, tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<1x1x16xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x2x8xf32>, tensor<3x12x2x8xf32>, tensor<3x2x12x12xf32>, tensor<3x2x12x1xf32>, tensor<3x2x12x1xf32>, tensor<3x2x12x12xf32>, tensor<3x12x2x8xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x1xf32>, tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<1x1x16xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>, tensor<3x12x64xf32>
  }
  func.func private @_var_5(%arg0: tensor<3x12x16xf32>, %arg1: tensor<f32>, %arg2: tensor<i1>, %arg3: tensor<3x12x1xf32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<3x12x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<3x12x16xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<3x12x16xf32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x12x16xf32>
    %8 = stablehlo.multiply %7, %5 : tensor<3x12x16xf32>
    %9 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %11 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %12 = stablehlo.divide %10, %11 : tensor<3x12x1xf32>
    %13 = call @_where_6(%12, %arg2, %arg3) : (tensor<3x12x1xf32>, tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x1xf32>
    return %13, %8 : tensor<3x12x1xf32>, tensor<3x12x16xf32>
  }
  func.func private @_where_6(%arg0: tensor<3x12x1xf32>, %arg1: tensor<i1>, %arg2: tensor<3x12x1xf32>) -> tensor<3x12x1xf32> {
    %0 = stablehlo.select %arg1, %arg0, %arg2 : tensor<i1>, tensor<3x12x1xf32>
    return %0 : tensor<3x12x1xf32>
  }
  func.func private @_where_7(%arg0: tensor<3x2x12x12xf32>, %arg1: tensor<3x2x12x12xi1>, %arg2: tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xf32> {
    %0 = stablehlo.select %arg1, %arg0, %arg2 : tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>
    return %0 : tensor<3x2x12x12xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<3x3x12x16xf32>, %arg1: tensor<3x12x16xf32>, %arg2: tensor<i32>) -> tensor<3x3x12x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<3x12x16xf32>) -> tensor<1x3x12x16xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c, %c : (tensor<3x3x12x16xf32>, tensor<1x3x12x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x3x12x16xf32>
    return %1 : tensor<3x3x12x16xf32>
  }
  func.func private @dynamic_update_index_in_dim_8(%arg0: tensor<3x3x12x1xf32>, %arg1: tensor<3x12x1xf32>, %arg2: tensor<i32>) -> tensor<3x3x12x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<3x12x1xf32>) -> tensor<1x3x12x1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c, %c : (tensor<3x3x12x1xf32>, tensor<1x3x12x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x3x12x1xf32>
    return %1 : tensor<3x3x12x1xf32>
  }
  func.func private @dynamic_update_index_in_dim_9(%arg0: tensor<3x1x1x16xf32>, %arg1: tensor<1x1x16xf32>, %arg2: tensor<i32>) -> tensor<3x1x1x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<1x1x16xf32>) -> tensor<1x1x1x16xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c, %c : (tensor<3x1x1x16xf32>, tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x1x1x16xf32>
    return %1 : tensor<3x1x1x16xf32>
  }
  func.func private @dynamic_update_index_in_dim_10(%arg0: tensor<3x3x12x2x8xf32>, %arg1: tensor<3x12x2x8xf32>, %arg2: tensor<i32>) -> tensor<3x3x12x2x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3, 4] : (tensor<3x12x2x8xf32>) -> tensor<1x3x12x2x8xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c, %c, %c : (tensor<3x3x12x2x8xf32>, tensor<1x3x12x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x3x12x2x8xf32>
    return %1 : tensor<3x3x12x2x8xf32>
  }
  func.func private @dynamic_update_index_in_dim_11(%arg0: tensor<3x3x2x12x12xf32>, %arg1: tensor<3x2x12x12xf32>, %arg2: tensor<i32>) -> tensor<3x3x2x12x12xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3, 4] : (tensor<3x2x12x12xf32>) -> tensor<1x3x2x12x12xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c, %c, %c : (tensor<3x3x2x12x12xf32>, tensor<1x3x2x12x12xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x3x2x12x12xf32>
    return %1 : tensor<3x3x2x12x12xf32>
  }
  func.func private @dynamic_update_index_in_dim_12(%arg0: tensor<3x3x2x12x1xf32>, %arg1: tensor<3x2x12x1xf32>, %arg2: tensor<i32>) -> tensor<3x3x2x12x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3, 4] : (tensor<3x2x12x1xf32>) -> tensor<1x3x2x12x1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c, %c, %c : (tensor<3x3x2x12x1xf32>, tensor<1x3x2x12x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x3x2x12x1xf32>
    return %1 : tensor<3x3x2x12x1xf32>
  }
  func.func private @dynamic_update_index_in_dim_13(%arg0: tensor<3x3x12x64xf32>, %arg1: tensor<3x12x64xf32>, %arg2: tensor<i32>) -> tensor<3x3x12x64xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<3x12x64xf32>) -> tensor<1x3x12x64xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c, %c : (tensor<3x3x12x64xf32>, tensor<1x3x12x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x3x12x64xf32>
    return %1 : tensor<3x3x12x64xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<3x12x31xf32>, %arg1: tensor<3x12x1xi32>) -> (tensor<3x12x1xf32>, tensor<3x12x1x1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<30> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<31> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<3x12x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<3x12x1xi32>, tensor<3x12x1xi32>) -> tensor<3x12x1xi1>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<3x12x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<3x12x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<3x12x1xi1>, tensor<3x12x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<3x12x1xi32>) -> tensor<3x12x1x1xi32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<3x12x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<3x12x1x1xi32>, tensor<3x12x1x1xi32>) -> tensor<3x12x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<3x12x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<3x12x1x1xi32>, tensor<3x12x1x1xi32>) -> tensor<3x12x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<3x12x1x1xi1>
    %12 = stablehlo.reduce(%11 init: %c) applies stablehlo.and across dimensions = [3] : (tensor<3x12x1x1xi1>, tensor<i1>) -> tensor<3x12x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<3x12x31xf32>, tensor<3x12x1x1xi32>) -> tensor<3x12x1xf32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<3x12x1xi1>, tensor<3x12x1xf32>
    return %15, %5 : tensor<3x12x1xf32>, tensor<3x12x1x1xi32>
  }
  func.func private @_take(%arg0: tensor<3x12x1xf32>, %arg1: tensor<i32>) -> (tensor<3x12xf32>, tensor<1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = stablehlo.add %arg1, %c_1 : tensor<i32>
    %2 = call @_where_14(%0, %1, %arg1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.convert %3 : tensor<1xi32>
    %5 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %7 = stablehlo.compare LE, %4, %c_0, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %8 = stablehlo.and %6, %7 : tensor<1xi1>
    %9 = stablehlo.reduce(%8 init: %c) applies stablehlo.and across dimensions = [0] : (tensor<1xi1>, tensor<i1>) -> tensor<i1>
    %10 = "stablehlo.gather"(%arg0, %4) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], collapsed_slice_dims = [2], start_index_map = [2]>, slice_sizes = array<i64: 3, 12, 1>}> : (tensor<3x12x1xf32>, tensor<1xi32>) -> tensor<3x12xf32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<3x12xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %13 = stablehlo.select %11, %10, %12 : tensor<3x12xi1>, tensor<3x12xf32>
    return %13, %3 : tensor<3x12xf32>, tensor<1xi32>
  }
  func.func private @_where_14(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @_take_15(%arg0: tensor<1xi32>, %arg1: tensor<3x12xf32>) -> tensor<3x12x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2]>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<3x12x1xf32>, tensor<1xi32>, tensor<3x12xf32>) -> tensor<3x12x1xf32>
    return %1 : tensor<3x12x1xf32>
  }
  func.func private @take_along_axis_16(%arg0: tensor<3x12x1x1xi32>, %arg1: tensor<3x12x1xf32>) -> tensor<3x12x31xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x12x31xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<3x12x31xf32>, tensor<3x12x1x1xi32>, tensor<3x12x1xf32>) -> tensor<3x12x31xf32>
    return %1 : tensor<3x12x31xf32>
  }
  func.func private @dynamic_index_in_dim_17(%arg0: tensor<3x3x12x16xf32>, %arg1: tensor<i32>) -> tensor<3x12x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, %c, sizes = [1, 3, 12, 16] : (tensor<3x3x12x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x12x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x12x16xf32>) -> tensor<3x12x16xf32>
    return %1 : tensor<3x12x16xf32>
  }
  func.func private @dynamic_index_in_dim_18(%arg0: tensor<3x3x12x1xf32>, %arg1: tensor<i32>) -> tensor<3x12x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, %c, sizes = [1, 3, 12, 1] : (tensor<3x3x12x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x12x1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x12x1xf32>) -> tensor<3x12x1xf32>
    return %1 : tensor<3x12x1xf32>
  }
  func.func private @dynamic_index_in_dim_19(%arg0: tensor<3x1x1x16xf32>, %arg1: tensor<i32>) -> tensor<1x1x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, %c, sizes = [1, 1, 1, 16] : (tensor<3x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x1x1x16xf32>) -> tensor<1x1x16xf32>
    return %1 : tensor<1x1x16xf32>
  }
  func.func private @dynamic_index_in_dim_20(%arg0: tensor<3x3x12x2x8xf32>, %arg1: tensor<i32>) -> tensor<3x12x2x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, %c, %c, sizes = [1, 3, 12, 2, 8] : (tensor<3x3x12x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x12x2x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x12x2x8xf32>) -> tensor<3x12x2x8xf32>
    return %1 : tensor<3x12x2x8xf32>
  }
  func.func private @dynamic_index_in_dim_21(%arg0: tensor<3x3x2x12x12xf32>, %arg1: tensor<i32>) -> tensor<3x2x12x12xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, %c, %c, sizes = [1, 3, 2, 12, 12] : (tensor<3x3x2x12x12xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x2x12x12xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x2x12x12xf32>) -> tensor<3x2x12x12xf32>
    return %1 : tensor<3x2x12x12xf32>
  }
  func.func private @dynamic_index_in_dim_22(%arg0: tensor<3x3x2x12x1xf32>, %arg1: tensor<i32>) -> tensor<3x2x12x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, %c, %c, sizes = [1, 3, 2, 12, 1] : (tensor<3x3x2x12x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x2x12x1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x2x12x1xf32>) -> tensor<3x2x12x1xf32>
    return %1 : tensor<3x2x12x1xf32>
  }
  func.func private @dynamic_index_in_dim_23(%arg0: tensor<3x3x12x64xf32>, %arg1: tensor<i32>) -> tensor<3x12x64xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, %c, sizes = [1, 3, 12, 64] : (tensor<3x3x12x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x12x64xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x12x64xf32>) -> tensor<3x12x64xf32>
    return %1 : tensor<3x12x64xf32>
  }
  func.func private @closed_call_24(%arg0: tensor<f32>, %arg1: tensor<i1>, %arg2: tensor<3x2x12x12xi1>, %arg3: tensor<f32>, %arg4: tensor<i1>, %arg5: tensor<3x12x16xf32>, %arg6: tensor<3x12x16xf32>, %arg7: tensor<3x12x1xf32>, %arg8: tensor<3x12x1xf32>, %arg9: tensor<3x12x16xf32>, %arg10: tensor<1x1x16xf32>, %arg11: tensor<3x12x16xf32>, %arg12: tensor<16x48xf32>, %arg13: tensor<3x12x16xf32>, %arg14: tensor<3x12x2x8xf32>, %arg15: tensor<3x12x2x8xf32>, %arg16: tensor<3x2x12x12xf32>, %arg17: tensor<3x2x12x1xf32>, %arg18: tensor<3x2x12x1xf32>, %arg19: tensor<3x2x12x12xf32>, %arg20: tensor<3x12x2x8xf32>, %arg21: tensor<16x16xf32>, %arg22: tensor<3x12x16xf32>, %arg23: tensor<3x12x16xf32>, %arg24: tensor<3x12x1xf32>, %arg25: tensor<3x12x1xf32>, %arg26: tensor<3x12x16xf32>, %arg27: tensor<1x1x16xf32>, %arg28: tensor<3x12x16xf32>, %arg29: tensor<16x64xf32>, %arg30: tensor<3x12x16xf32>, %arg31: tensor<3x12x64xf32>, %arg32: tensor<3x12x64xf32>, %arg33: tensor<3x12x64xf32>, %arg34: tensor<3x12x64xf32>, %arg35: tensor<3x12x64xf32>, %arg36: tensor<64x16xf32>, %arg37: tensor<3x12x64xf32>) -> (tensor<3x12x16xf32>, tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>) {
    %cst = stablehlo.constant dense<2.82842708> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %cst_4 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0 = stablehlo.dot_general %arg5, %arg37, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x16xf32>, tensor<3x12x64xf32>) -> tensor<16x64xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<16x64xf32>) -> tensor<64x16xf32>
    %2 = stablehlo.dot_general %arg5, %arg36, contracting_dims = [2] x [1] : (tensor<3x12x16xf32>, tensor<64x16xf32>) -> tensor<3x12x64xf32>
    %3 = stablehlo.multiply %arg35, %2 : tensor<3x12x64xf32>
    %4 = stablehlo.multiply %2, %arg34 : tensor<3x12x64xf32>
    %5 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %6 = stablehlo.multiply %5, %3 : tensor<3x12x64xf32>
    %7 = stablehlo.multiply %6, %arg33 : tensor<3x12x64xf32>
    %8 = stablehlo.multiply %7, %arg32 : tensor<3x12x64xf32>
    %9 = stablehlo.add %7, %8 : tensor<3x12x64xf32>
    %10 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %11 = stablehlo.multiply %10, %9 : tensor<3x12x64xf32>
    %12 = stablehlo.add %4, %11 : tensor<3x12x64xf32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %14 = stablehlo.multiply %13, %11 : tensor<3x12x64xf32>
    %15 = stablehlo.multiply %14, %arg31 : tensor<3x12x64xf32>
    %16 = stablehlo.add %12, %15 : tensor<3x12x64xf32>
    %17 = stablehlo.dot_general %16, %arg30, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x64xf32>, tensor<3x12x16xf32>) -> tensor<64x16xf32>
    %18 = stablehlo.transpose %17, dims = [1, 0] : (tensor<64x16xf32>) -> tensor<16x64xf32>
    %19 = stablehlo.dot_general %16, %arg29, contracting_dims = [2] x [1] : (tensor<3x12x64xf32>, tensor<16x64xf32>) -> tensor<3x12x16xf32>
    %20 = stablehlo.reduce(%19 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %21 = stablehlo.reshape %20 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %22 = stablehlo.reduce(%21 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %23 = stablehlo.multiply %arg28, %19 : tensor<3x12x16xf32>
    %24 = stablehlo.reduce(%23 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %25 = stablehlo.reshape %24 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %26 = stablehlo.broadcast_in_dim %arg27, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %27 = stablehlo.multiply %19, %26 : tensor<3x12x16xf32>
    %28 = stablehlo.reduce(%25 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %29 = stablehlo.multiply %arg26, %27 : tensor<3x12x16xf32>
    %30 = stablehlo.reduce(%29 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %31 = stablehlo.reshape %30 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %32 = stablehlo.broadcast_in_dim %arg25, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %33 = stablehlo.multiply %27, %32 : tensor<3x12x16xf32>
    %34 = stablehlo.multiply %31, %arg24 : tensor<3x12x1xf32>
    %35 = stablehlo.negate %33 : tensor<3x12x16xf32>
    %36 = stablehlo.reduce(%35 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %37 = stablehlo.reshape %36 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %38 = stablehlo.add %arg5, %33 : tensor<3x12x16xf32>
    %39 = call @_var_25(%arg23, %arg3, %arg4, %34) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %40 = stablehlo.add %38, %39 : tensor<3x12x16xf32>
    %41 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %42 = stablehlo.divide %37, %41 : tensor<3x12x1xf32>
    %43 = stablehlo.reduce(%42 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %45 = stablehlo.add %40, %44 : tensor<3x12x16xf32>
    %46 = stablehlo.dot_general %45, %arg22, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x16xf32>, tensor<3x12x16xf32>) -> tensor<16x16xf32>
    %47 = stablehlo.transpose %46, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %48 = stablehlo.dot_general %45, %arg21, contracting_dims = [2] x [1] : (tensor<3x12x16xf32>, tensor<16x16xf32>) -> tensor<3x12x16xf32>
    %49 = stablehlo.reshape %48 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %50 = stablehlo.transpose %49, dims = [0, 2, 3, 1] : (tensor<3x12x2x8xf32>) -> tensor<3x2x8x12xf32>
    %51 = stablehlo.dot_general %50, %arg20, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3] : (tensor<3x2x8x12xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x12xf32>
    %52 = stablehlo.dot_general %50, %arg19, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<3x2x8x12xf32>, tensor<3x2x12x12xf32>) -> tensor<3x2x8x12xf32>
    %53 = stablehlo.transpose %52, dims = [0, 3, 1, 2] : (tensor<3x2x8x12xf32>) -> tensor<3x12x2x8xf32>
    %54 = stablehlo.broadcast_in_dim %arg18, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %55 = stablehlo.multiply %51, %54 : tensor<3x2x12x12xf32>
    %56 = stablehlo.multiply %55, %arg16 : tensor<3x2x12x12xf32>
    %57 = stablehlo.reduce(%56 init: %cst_1) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %58 = stablehlo.reshape %57 : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %59 = stablehlo.negate %58 : tensor<3x2x12x1xf32>
    %60 = stablehlo.broadcast_in_dim %arg17, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %61 = stablehlo.divide %51, %60 : tensor<3x2x12x12xf32>
    %62 = stablehlo.reduce(%59 init: %cst_1) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x1xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x12xf32>
    %64 = stablehlo.add %61, %63 : tensor<3x2x12x12xf32>
    %65 = stablehlo.multiply %64, %arg16 : tensor<3x2x12x12xf32>
    %66 = call @_where_27(%arg2, %65) : (tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xf32>
    %67 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x2x12x12xf32>
    %68 = stablehlo.divide %66, %67 : tensor<3x2x12x12xf32>
    %69 = stablehlo.dot_general %68, %arg15, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1] : (tensor<3x2x12x12xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x8xf32>
    %70 = stablehlo.transpose %69, dims = [0, 2, 1, 3] : (tensor<3x2x12x8xf32>) -> tensor<3x12x2x8xf32>
    %71 = stablehlo.dot_general %68, %arg14, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<3x2x12x12xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x8xf32>
    %72 = stablehlo.transpose %71, dims = [0, 2, 1, 3] : (tensor<3x2x12x8xf32>) -> tensor<3x12x2x8xf32>
    %73 = stablehlo.reshape %53 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %74 = stablehlo.reshape %70 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %75 = stablehlo.reshape %72 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %76 = stablehlo.concatenate %75, %74, %73, dim = 2 : (tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>) -> tensor<3x12x48xf32>
    %77 = stablehlo.dot_general %76, %arg13, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x48xf32>, tensor<3x12x16xf32>) -> tensor<48x16xf32>
    %78 = stablehlo.transpose %77, dims = [1, 0] : (tensor<48x16xf32>) -> tensor<16x48xf32>
    %79 = stablehlo.dot_general %76, %arg12, contracting_dims = [2] x [1] : (tensor<3x12x48xf32>, tensor<16x48xf32>) -> tensor<3x12x16xf32>
    %80 = stablehlo.reduce(%79 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %81 = stablehlo.reshape %80 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %82 = stablehlo.reduce(%81 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %83 = stablehlo.multiply %arg11, %79 : tensor<3x12x16xf32>
    %84 = stablehlo.reduce(%83 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %85 = stablehlo.reshape %84 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %86 = stablehlo.broadcast_in_dim %arg10, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %87 = stablehlo.multiply %79, %86 : tensor<3x12x16xf32>
    %88 = stablehlo.reduce(%85 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %89 = stablehlo.multiply %arg9, %87 : tensor<3x12x16xf32>
    %90 = stablehlo.reduce(%89 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %91 = stablehlo.reshape %90 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %92 = stablehlo.broadcast_in_dim %arg8, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %93 = stablehlo.multiply %87, %92 : tensor<3x12x16xf32>
    %94 = stablehlo.multiply %91, %arg7 : tensor<3x12x1xf32>
    %95 = stablehlo.negate %93 : tensor<3x12x16xf32>
    %96 = stablehlo.reduce(%95 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %97 = stablehlo.reshape %96 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %98 = stablehlo.add %45, %93 : tensor<3x12x16xf32>
    %99 = call @_var_25(%arg6, %arg0, %arg1, %94) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %100 = stablehlo.add %98, %99 : tensor<3x12x16xf32>
    %101 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %102 = stablehlo.divide %97, %101 : tensor<3x12x1xf32>
    %103 = stablehlo.reduce(%102 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %104 = stablehlo.broadcast_in_dim %103, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %105 = stablehlo.add %100, %104 : tensor<3x12x16xf32>
    return %105, %1, %82, %22, %47, %78, %88, %28, %18 : tensor<3x12x16xf32>, tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>
  }
  func.func private @_var_25(%arg0: tensor<3x12x16xf32>, %arg1: tensor<f32>, %arg2: tensor<i1>, %arg3: tensor<3x12x1xf32>) -> tensor<3x12x16xf32> {
    %cst = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = call @_where_26(%arg2, %arg3) : (tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x1xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %2 = stablehlo.divide %0, %1 : tensor<3x12x1xf32>
    %3 = stablehlo.reduce(%2 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %5 = stablehlo.multiply %4, %arg0 : tensor<3x12x16xf32>
    %6 = stablehlo.negate %5 : tensor<3x12x16xf32>
    %7 = stablehlo.reduce(%6 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %8 = stablehlo.reshape %7 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %10 = stablehlo.divide %8, %9 : tensor<3x12x1xf32>
    %11 = stablehlo.reduce(%10 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %13 = stablehlo.add %5, %12 : tensor<3x12x16xf32>
    return %13 : tensor<3x12x16xf32>
  }
  func.func private @_where_26(%arg0: tensor<i1>, %arg1: tensor<3x12x1xf32>) -> tensor<3x12x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<i1>, tensor<3x12x1xf32>
    return %1 : tensor<3x12x1xf32>
  }
  func.func private @_where_27(%arg0: tensor<3x2x12x12xi1>, %arg1: tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x2x12x12xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>
    return %1 : tensor<3x2x12x12xf32>
  }
  func.func private @dynamic_update_index_in_dim_28(%arg0: tensor<3x64x16xf32>, %arg1: tensor<64x16xf32>, %arg2: tensor<i32>) -> tensor<3x64x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<64x16xf32>) -> tensor<1x64x16xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c : (tensor<3x64x16xf32>, tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x64x16xf32>
    return %1 : tensor<3x64x16xf32>
  }
  func.func private @dynamic_update_index_in_dim_29(%arg0: tensor<3x16xf32>, %arg1: tensor<16xf32>, %arg2: tensor<i32>) -> tensor<3x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<3x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<3x16xf32>
    return %1 : tensor<3x16xf32>
  }
  func.func private @dynamic_update_index_in_dim_30(%arg0: tensor<3x16x16xf32>, %arg1: tensor<16x16xf32>, %arg2: tensor<i32>) -> tensor<3x16x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<16x16xf32>) -> tensor<1x16x16xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c : (tensor<3x16x16xf32>, tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x16x16xf32>
    return %1 : tensor<3x16x16xf32>
  }
  func.func private @dynamic_update_index_in_dim_31(%arg0: tensor<3x16x48xf32>, %arg1: tensor<16x48xf32>, %arg2: tensor<i32>) -> tensor<3x16x48xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<16x48xf32>) -> tensor<1x16x48xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c : (tensor<3x16x48xf32>, tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x16x48xf32>
    return %1 : tensor<3x16x48xf32>
  }
  func.func private @dynamic_update_index_in_dim_32(%arg0: tensor<3x16x64xf32>, %arg1: tensor<16x64xf32>, %arg2: tensor<i32>) -> tensor<3x16x64xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<16x64xf32>) -> tensor<1x16x64xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c : (tensor<3x16x64xf32>, tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x16x64xf32>
    return %1 : tensor<3x16x64xf32>
  }
  func.func private @_where_33(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @clip(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.maximum %0, %arg0 : tensor<i32>
    %2 = stablehlo.convert %arg2 : tensor<i32>
    %3 = stablehlo.minimum %2, %1 : tensor<i32>
    return %3 : tensor<i32>
  }
  func.func private @_where_34(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<i1>, tensor<f32>
    return %1 : tensor<f32>
  }
}
