module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64x16xbf16> {tf.aliasing_output = 0 : i32} loc("p['h'][0]['down']"), %arg1: tensor<16xf32> {tf.aliasing_output = 1 : i32} loc("p['h'][0]['o1']"), %arg2: tensor<16xf32> {tf.aliasing_output = 2 : i32} loc("p['h'][0]['o2']"), %arg3: tensor<16x16xbf16> {tf.aliasing_output = 3 : i32} loc("p['h'][0]['out']"), %arg4: tensor<16x48xbf16> {tf.aliasing_output = 4 : i32} loc("p['h'][0]['qkv']"), %arg5: tensor<16xf32> {tf.aliasing_output = 5 : i32} loc("p['h'][0]['s1']"), %arg6: tensor<16xf32> {tf.aliasing_output = 6 : i32} loc("p['h'][0]['s2']"), %arg7: tensor<16x64xbf16> {tf.aliasing_output = 7 : i32} loc("p['h'][0]['up']"), %arg8: tensor<64x16xbf16> {tf.aliasing_output = 8 : i32} loc("p['h'][1]['down']"), %arg9: tensor<16xf32> {tf.aliasing_output = 9 : i32} loc("p['h'][1]['o1']"), %arg10: tensor<16xf32> {tf.aliasing_output = 10 : i32} loc("p['h'][1]['o2']"), %arg11: tensor<16x16xbf16> {tf.aliasing_output = 11 : i32} loc("p['h'][1]['out']"), %arg12: tensor<16x48xbf16> {tf.aliasing_output = 12 : i32} loc("p['h'][1]['qkv']"), %arg13: tensor<16xf32> {tf.aliasing_output = 13 : i32} loc("p['h'][1]['s1']"), %arg14: tensor<16xf32> {tf.aliasing_output = 14 : i32} loc("p['h'][1]['s2']"), %arg15: tensor<16x64xbf16> {tf.aliasing_output = 15 : i32} loc("p['h'][1]['up']"), %arg16: tensor<12x16xbf16> {tf.aliasing_output = 16 : i32} loc("p['wpe']"), %arg17: tensor<31x16xbf16> {tf.aliasing_output = 17 : i32} loc("p['wte']"), %arg18: tensor<i32> {tf.aliasing_output = 18 : i32} loc("s[1][0].count"), %arg19: tensor<64x16xbf16> {tf.aliasing_output = 19 : i32} loc("s[1][0].mu['h'][0]['down']"), %arg20: tensor<16xf32> {tf.aliasing_output = 20 : i32} loc("s[1][0].mu['h'][0]['o1']"), %arg21: tensor<16xf32> {tf.aliasing_output = 21 : i32} loc("s[1][0].mu['h'][0]['o2']"), %arg22: tensor<16x16xbf16> {tf.aliasing_output = 22 : i32} loc("s[1][0].mu['h'][0]['out']"), %arg23: tensor<16x48xbf16> {tf.aliasing_output = 23 : i32} loc("s[1][0].mu['h'][0]['qkv']"), %arg24: tensor<16xf32> {tf.aliasing_output = 24 : i32} loc("s[1][0].mu['h'][0]['s1']"), %arg25: tensor<16xf32> {tf.aliasing_output = 25 : i32} loc("s[1][0].mu['h'][0]['s2']"), %arg26: tensor<16x64xbf16> {tf.aliasing_output = 26 : i32} loc("s[1][0].mu['h'][0]['up']"), %arg27: tensor<64x16xbf16> {tf.aliasing_output = 27 : i32} loc("s[1][0].mu['h'][1]['down']"), %arg28: tensor<16xf32> {tf.aliasing_output = 28 : i32} loc("s[1][0].mu['h'][1]['o1']"), %arg29: tensor<16xf32> {tf.aliasing_output = 29 : i32} loc("s[1][0].mu['h'][1]['o2']"), %arg30: tensor<16x16xbf16> {tf.aliasing_output = 30 : i32} loc("s[1][0].mu['h'][1]['out']"), %arg31: tensor<16x48xbf16> {tf.aliasing_output = 31 : i32} loc("s[1][0].mu['h'][1]['qkv']"), %arg32: tensor<16xf32> {tf.aliasing_output = 32 : i32} loc("s[1][0].mu['h'][1]['s1']"), %arg33: tensor<16xf32> {tf.aliasing_output = 33 : i32} loc("s[1][0].mu['h'][1]['s2']"), %arg34: tensor<16x64xbf16> {tf.aliasing_output = 34 : i32} loc("s[1][0].mu['h'][1]['up']"), %arg35: tensor<12x16xbf16> {tf.aliasing_output = 35 : i32} loc("s[1][0].mu['wpe']"), %arg36: tensor<31x16xbf16> {tf.aliasing_output = 36 : i32} loc("s[1][0].mu['wte']"), %arg37: tensor<64x16xbf16> {tf.aliasing_output = 37 : i32} loc("s[1][0].nu['h'][0]['down']"), %arg38: tensor<16xf32> {tf.aliasing_output = 38 : i32} loc("s[1][0].nu['h'][0]['o1']"), %arg39: tensor<16xf32> {tf.aliasing_output = 39 : i32} loc("s[1][0].nu['h'][0]['o2']"), %arg40: tensor<16x16xbf16> {tf.aliasing_output = 40 : i32} loc("s[1][0].nu['h'][0]['out']"), %arg41: tensor<16x48xbf16> {tf.aliasing_output = 41 : i32} loc("s[1][0].nu['h'][0]['qkv']"), %arg42: tensor<16xf32> {tf.aliasing_output = 42 : i32} loc("s[1][0].nu['h'][0]['s1']"), %arg43: tensor<16xf32> {tf.aliasing_output = 43 : i32} loc("s[1][0].nu['h'][0]['s2']"), %arg44: tensor<16x64xbf16> {tf.aliasing_output = 44 : i32} loc("s[1][0].nu['h'][0]['up']"), %arg45: tensor<64x16xbf16> {tf.aliasing_output = 45 : i32} loc("s[1][0].nu['h'][1]['down']"), %arg46: tensor<16xf32> {tf.aliasing_output = 46 : i32} loc("s[1][0].nu['h'][1]['o1']"), %arg47: tensor<16xf32> {tf.aliasing_output = 47 : i32} loc("s[1][0].nu['h'][1]['o2']"), %arg48: tensor<16x16xbf16> {tf.aliasing_output = 48 : i32} loc("s[1][0].nu['h'][1]['out']"), %arg49: tensor<16x48xbf16> {tf.aliasing_output = 49 : i32} loc("s[1][0].nu['h'][1]['qkv']"), %arg50: tensor<16xf32> {tf.aliasing_output = 50 : i32} loc("s[1][0].nu['h'][1]['s1']"), %arg51: tensor<16xf32> {tf.aliasing_output = 51 : i32} loc("s[1][0].nu['h'][1]['s2']"), %arg52: tensor<16x64xbf16> {tf.aliasing_output = 52 : i32} loc("s[1][0].nu['h'][1]['up']"), %arg53: tensor<12x16xbf16> {tf.aliasing_output = 53 : i32} loc("s[1][0].nu['wpe']"), %arg54: tensor<31x16xbf16> {tf.aliasing_output = 54 : i32} loc("s[1][0].nu['wte']"), %arg55: tensor<i32> {tf.aliasing_output = 55 : i32} loc("s[1][2].count"), %arg56: tensor<3x12xi32> loc("data[0]"), %arg57: tensor<3x12xi32> loc("data[1]")) -> (tensor<64x16xbf16> {jax.result_info = "result[0]['h'][0]['down']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][0]['o1']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][0]['o2']"}, tensor<16x16xbf16> {jax.result_info = "result[0]['h'][0]['out']"}, tensor<16x48xbf16> {jax.result_info = "result[0]['h'][0]['qkv']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][0]['s1']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][0]['s2']"}, tensor<16x64xbf16> {jax.result_info = "result[0]['h'][0]['up']"}, tensor<64x16xbf16> {jax.result_info = "result[0]['h'][1]['down']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][1]['o1']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][1]['o2']"}, tensor<16x16xbf16> {jax.result_info = "result[0]['h'][1]['out']"}, tensor<16x48xbf16> {jax.result_info = "result[0]['h'][1]['qkv']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][1]['s1']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][1]['s2']"}, tensor<16x64xbf16> {jax.result_info = "result[0]['h'][1]['up']"}, tensor<12x16xbf16> {jax.result_info = "result[0]['wpe']"}, tensor<31x16xbf16> {jax.result_info = "result[0]['wte']"}, tensor<i32> {jax.result_info = "result[1][1][0].count"}, tensor<64x16xbf16> {jax.result_info = "result[1][1][0].mu['h'][0]['down']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['o1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['o2']"}, tensor<16x16xbf16> {jax.result_info = "result[1][1][0].mu['h'][0]['out']"}, tensor<16x48xbf16> {jax.result_info = "result[1][1][0].mu['h'][0]['qkv']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['s1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['s2']"}, tensor<16x64xbf16> {jax.result_info = "result[1][1][0].mu['h'][0]['up']"}, tensor<64x16xbf16> {jax.result_info = "result[1][1][0].mu['h'][1]['down']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['o1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['o2']"}, tensor<16x16xbf16> {jax.result_info = "result[1][1][0].mu['h'][1]['out']"}, tensor<16x48xbf16> {jax.result_info = "result[1][1][0].mu['h'][1]['qkv']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['s1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['s2']"}, tensor<16x64xbf16> {jax.result_info = "result[1][1][0].mu['h'][1]['up']"}, tensor<12x16xbf16> {jax.result_info = "result[1][1][0].mu['wpe']"}, tensor<31x16xbf16> {jax.result_info = "result[1][1][0].mu['wte']"}, tensor<64x16xbf16> {jax.result_info = "result[1][1][0].nu['h'][0]['down']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['o1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['o2']"}, tensor<16x16xbf16> {jax.result_info = "result[1][1][0].nu['h'][0]['out']"}, tensor<16x48xbf16> {jax.result_info = "result[1][1][0].nu['h'][0]['qkv']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['s1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['s2']"}, tensor<16x64xbf16> {jax.result_info = "result[1][1][0].nu['h'][0]['up']"}, tensor<64x16xbf16> {jax.result_info = "result[1][1][0].nu['h'][1]['down']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['o1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['o2']"}, tensor<16x16xbf16> {jax.result_info = "result[1][1][0].nu['h'][1]['out']"}, tensor<16x48xbf16> {jax.result_info = "result[1][1][0].nu['h'][1]['qkv']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['s1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['s2']"}, tensor<16x64xbf16> {jax.result_info = "result[1][1][0].nu['h'][1]['up']"}, tensor<12x16xbf16> {jax.result_info = "result[1][1][0].nu['wpe']"}, tensor<31x16xbf16> {jax.result_info = "result[1][1][0].nu['wte']"}, tensor<i32> {jax.result_info = "result[1][1][2].count"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_1 = stablehlo.constant dense<3.14159274> : tensor<f32>
    %cst_2 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %cst_4 = stablehlo.constant dense<-0.00999999977> : tensor<f32>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %cst_6 = stablehlo.constant dense<9.99999974E-5> : tensor<f32>
    %cst_7 = stablehlo.constant dense<1.001360e-04> : tensor<bf16>
    %cst_8 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %cst_9 = stablehlo.constant dense<1.001170e-08> : tensor<bf16>
    %c_10 = stablehlo.constant dense<1> : tensor<i32>
    %c_11 = stablehlo.constant dense<2147483647> : tensor<i32>
    %cst_12 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %cst_13 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %cst_14 = stablehlo.constant dense<9.994500e-04> : tensor<bf16>
    %cst_15 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %cst_16 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %cst_17 = stablehlo.constant dense<8.984370e-01> : tensor<bf16>
    %cst_18 = stablehlo.constant dense<1.000980e-01> : tensor<bf16>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %cst_20 = stablehlo.constant dense<3.600000e+01> : tensor<f32>
    %cst_21 = stablehlo.constant dense<5.000000e-01> : tensor<bf16>
    %cst_22 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %cst_23 = stablehlo.constant dense<7.968750e-01> : tensor<bf16>
    %cst_24 = stablehlo.constant dense<4.467770e-02> : tensor<bf16>
    %cst_25 = stablehlo.constant dense<3.000000e+00> : tensor<bf16>
    %cst_26 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_27 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_28 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %c_29 = stablehlo.constant dense<true> : tensor<i1>
    %cst_30 = stablehlo.constant dense<2.828130e+00> : tensor<bf16>
    %cst_31 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %cst_32 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %cst_33 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %cst_34 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c_35 = stablehlo.constant dense<31> : tensor<i32>
    %c_36 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_36, dims = [] : (tensor<i32>) -> tensor<3x12xi32>
    %1 = stablehlo.compare LT, %arg56, %0, SIGNED : (tensor<3x12xi32>, tensor<3x12xi32>) -> tensor<3x12xi1>
    %2 = stablehlo.broadcast_in_dim %c_35, dims = [] : (tensor<i32>) -> tensor<3x12xi32>
    %3 = stablehlo.add %arg56, %2 : tensor<3x12xi32>
    %4 = stablehlo.select %1, %3, %arg56 : tensor<3x12xi1>, tensor<3x12xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<3x12xi32>) -> tensor<3x12x1xi32>
    %6 = "stablehlo.gather"(%arg17, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 16>}> : (tensor<31x16xbf16>, tensor<3x12x1xi32>) -> tensor<3x12x16xbf16>
    %7 = stablehlo.broadcast_in_dim %arg16, dims = [1, 2] : (tensor<12x16xbf16>) -> tensor<1x12x16xbf16>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<1x12x16xbf16>) -> tensor<3x12x16xbf16>
    %9 = stablehlo.add %6, %8 : tensor<3x12x16xbf16>
    %10 = stablehlo.convert %9 : (tensor<3x12x16xbf16>) -> tensor<3x12x16xf32>
    %11 = stablehlo.reduce(%10 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %13 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %14 = stablehlo.divide %12, %13 : tensor<3x12x1xf32>
    %15:4 = call @_var(%10, %c_36) : (tensor<3x12x16xf32>, tensor<i32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<f32>, tensor<i1>)
    %16 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %17 = stablehlo.subtract %10, %16 : tensor<3x12x16xf32>
    %18 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %19 = stablehlo.add %15#0, %18 : tensor<3x12x1xf32>
    %20 = stablehlo.rsqrt %19 : tensor<3x12x1xf32>
    %21 = stablehlo.divide %20, %19 : tensor<3x12x1xf32>
    %22 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %23 = stablehlo.multiply %22, %21 : tensor<3x12x1xf32>
    %24 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %25 = stablehlo.multiply %17, %24 : tensor<3x12x16xf32>
    %26 = stablehlo.broadcast_in_dim %arg5, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %28 = stablehlo.multiply %25, %27 : tensor<3x12x16xf32>
    %29 = stablehlo.broadcast_in_dim %arg1, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %31 = stablehlo.add %28, %30 : tensor<3x12x16xf32>
    %32 = stablehlo.convert %31 : (tensor<3x12x16xf32>) -> tensor<3x12x16xbf16>
    %33 = stablehlo.dot_general %32, %arg4, contracting_dims = [2] x [0] : (tensor<3x12x16xbf16>, tensor<16x48xbf16>) -> tensor<3x12x48xbf16>
    %34 = stablehlo.slice %33 [0:3, 0:12, 0:16] : (tensor<3x12x48xbf16>) -> tensor<3x12x16xbf16>
    %35 = stablehlo.slice %33 [0:3, 0:12, 16:32] : (tensor<3x12x48xbf16>) -> tensor<3x12x16xbf16>
    %36 = stablehlo.slice %33 [0:3, 0:12, 32:48] : (tensor<3x12x48xbf16>) -> tensor<3x12x16xbf16>
    %37 = stablehlo.reshape %34 : (tensor<3x12x16xbf16>) -> tensor<3x12x2x8xbf16>
    %38 = stablehlo.reshape %35 : (tensor<3x12x16xbf16>) -> tensor<3x12x2x8xbf16>
    %39 = stablehlo.reshape %36 : (tensor<3x12x16xbf16>) -> tensor<3x12x2x8xbf16>
    %40 = stablehlo.dot_general %37, %38, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x12x2x8xbf16>, tensor<3x12x2x8xbf16>) -> tensor<3x2x12x12xbf16>
    %41 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<bf16>) -> tensor<3x2x12x12xbf16>
    %42 = stablehlo.divide %40, %41 : tensor<3x2x12x12xbf16>
    %43 = stablehlo.broadcast_in_dim %c_29, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %44 = call @tril(%43) : (tensor<12x12xi1>) -> tensor<12x12xi1>
    %45 = stablehlo.convert %42 : (tensor<3x2x12x12xbf16>) -> tensor<3x2x12x12xf32>
    %46:2 = call @_where_0(%44, %45, %cst_28) : (tensor<12x12xi1>, tensor<3x2x12x12xf32>, tensor<f32>) -> (tensor<3x2x12x12xf32>, tensor<3x2x12x12xi1>)
    %47 = stablehlo.reduce(%46#0 init: %cst_27) applies stablehlo.maximum across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %48 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<3x2x12xf32>
    %49 = stablehlo.maximum %48, %47 : tensor<3x2x12xf32>
    %50 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %51 = stablehlo.broadcast_in_dim %50, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %52 = stablehlo.subtract %46#0, %51 : tensor<3x2x12x12xf32>
    %53 = stablehlo.exponential %52 : tensor<3x2x12x12xf32>
    %54 = stablehlo.reduce(%53 init: %cst_34) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %55 = stablehlo.broadcast_in_dim %54, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %56 = stablehlo.broadcast_in_dim %55, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %57 = stablehlo.divide %53, %56 : tensor<3x2x12x12xf32>
    %58 = stablehlo.multiply %55, %55 : tensor<3x2x12x1xf32>
    %59 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<3x2x12x1xf32>
    %60 = stablehlo.divide %59, %58 : tensor<3x2x12x1xf32>
    %61 = stablehlo.convert %57 : (tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xbf16>
    %62 = stablehlo.dot_general %39, %61, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<3x12x2x8xbf16>, tensor<3x2x12x12xbf16>) -> tensor<3x2x8x12xbf16>
    %63 = stablehlo.transpose %62, dims = [0, 3, 1, 2] : (tensor<3x2x8x12xbf16>) -> tensor<3x12x2x8xbf16>
    %64 = stablehlo.reshape %63 : (tensor<3x12x2x8xbf16>) -> tensor<3x12x16xbf16>
    %65 = stablehlo.dot_general %64, %arg3, contracting_dims = [2] x [0] : (tensor<3x12x16xbf16>, tensor<16x16xbf16>) -> tensor<3x12x16xbf16>
    %66 = stablehlo.add %9, %65 : tensor<3x12x16xbf16>
    %67 = stablehlo.convert %66 : (tensor<3x12x16xbf16>) -> tensor<3x12x16xf32>
    %68 = stablehlo.reduce(%67 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %69 = stablehlo.broadcast_in_dim %68, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %70 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %71 = stablehlo.divide %69, %70 : tensor<3x12x1xf32>
    %72:4 = call @_var(%67, %c_36) : (tensor<3x12x16xf32>, tensor<i32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<f32>, tensor<i1>)
    %73 = stablehlo.broadcast_in_dim %71, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %74 = stablehlo.subtract %67, %73 : tensor<3x12x16xf32>
    %75 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %76 = stablehlo.add %72#0, %75 : tensor<3x12x1xf32>
    %77 = stablehlo.rsqrt %76 : tensor<3x12x1xf32>
    %78 = stablehlo.divide %77, %76 : tensor<3x12x1xf32>
    %79 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %80 = stablehlo.multiply %79, %78 : tensor<3x12x1xf32>
    %81 = stablehlo.broadcast_in_dim %77, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %82 = stablehlo.multiply %74, %81 : tensor<3x12x16xf32>
    %83 = stablehlo.broadcast_in_dim %arg6, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %84 = stablehlo.broadcast_in_dim %83, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %85 = stablehlo.multiply %82, %84 : tensor<3x12x16xf32>
    %86 = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %87 = stablehlo.broadcast_in_dim %86, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %88 = stablehlo.add %85, %87 : tensor<3x12x16xf32>
    %89 = stablehlo.convert %88 : (tensor<3x12x16xf32>) -> tensor<3x12x16xbf16>
    %90 = stablehlo.dot_general %89, %arg7, contracting_dims = [2] x [0] : (tensor<3x12x16xbf16>, tensor<16x64xbf16>) -> tensor<3x12x64xbf16>
    %91 = stablehlo.multiply %90, %90 : tensor<3x12x64xbf16>
    %92 = stablehlo.multiply %91, %90 : tensor<3x12x64xbf16>
    %93 = stablehlo.multiply %90, %90 : tensor<3x12x64xbf16>
    %94 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %95 = stablehlo.multiply %94, %93 : tensor<3x12x64xbf16>
    %96 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %97 = stablehlo.multiply %96, %92 : tensor<3x12x64xbf16>
    %98 = stablehlo.add %90, %97 : tensor<3x12x64xbf16>
    %99 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %100 = stablehlo.multiply %99, %98 : tensor<3x12x64xbf16>
    %101 = stablehlo.tanh %100 : tensor<3x12x64xbf16>
    %102 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %103 = stablehlo.subtract %102, %101 : tensor<3x12x64xbf16>
    %104 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %105 = stablehlo.add %104, %101 : tensor<3x12x64xbf16>
    %106 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %107 = stablehlo.multiply %106, %105 : tensor<3x12x64xbf16>
    %108 = stablehlo.multiply %90, %107 : tensor<3x12x64xbf16>
    %109 = stablehlo.dot_general %108, %arg0, contracting_dims = [2] x [0] : (tensor<3x12x64xbf16>, tensor<64x16xbf16>) -> tensor<3x12x16xbf16>
    %110 = stablehlo.add %66, %109 : tensor<3x12x16xbf16>
    %111 = stablehlo.convert %110 : (tensor<3x12x16xbf16>) -> tensor<3x12x16xf32>
    %112 = stablehlo.reduce(%111 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %113 = stablehlo.broadcast_in_dim %112, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %114 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %115 = stablehlo.divide %113, %114 : tensor<3x12x1xf32>
    %116:4 = call @_var(%111, %c_36) : (tensor<3x12x16xf32>, tensor<i32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<f32>, tensor<i1>)
    %117 = stablehlo.broadcast_in_dim %115, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %118 = stablehlo.subtract %111, %117 : tensor<3x12x16xf32>
    %119 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %120 = stablehlo.add %116#0, %119 : tensor<3x12x1xf32>
    %121 = stablehlo.rsqrt %120 : tensor<3x12x1xf32>
    %122 = stablehlo.divide %121, %120 : tensor<3x12x1xf32>
    %123 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %124 = stablehlo.multiply %123, %122 : tensor<3x12x1xf32>
    %125 = stablehlo.broadcast_in_dim %121, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %126 = stablehlo.multiply %118, %125 : tensor<3x12x16xf32>
    %127 = stablehlo.broadcast_in_dim %arg13, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %128 = stablehlo.broadcast_in_dim %127, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %129 = stablehlo.multiply %126, %128 : tensor<3x12x16xf32>
    %130 = stablehlo.broadcast_in_dim %arg9, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %131 = stablehlo.broadcast_in_dim %130, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %132 = stablehlo.add %129, %131 : tensor<3x12x16xf32>
    %133 = stablehlo.convert %132 : (tensor<3x12x16xf32>) -> tensor<3x12x16xbf16>
    %134 = stablehlo.dot_general %133, %arg12, contracting_dims = [2] x [0] : (tensor<3x12x16xbf16>, tensor<16x48xbf16>) -> tensor<3x12x48xbf16>
    %135 = stablehlo.slice %134 [0:3, 0:12, 0:16] : (tensor<3x12x48xbf16>) -> tensor<3x12x16xbf16>
    %136 = stablehlo.slice %134 [0:3, 0:12, 16:32] : (tensor<3x12x48xbf16>) -> tensor<3x12x16xbf16>
    %137 = stablehlo.slice %134 [0:3, 0:12, 32:48] : (tensor<3x12x48xbf16>) -> tensor<3x12x16xbf16>
    %138 = stablehlo.reshape %135 : (tensor<3x12x16xbf16>) -> tensor<3x12x2x8xbf16>
    %139 = stablehlo.reshape %136 : (tensor<3x12x16xbf16>) -> tensor<3x12x2x8xbf16>
    %140 = stablehlo.reshape %137 : (tensor<3x12x16xbf16>) -> tensor<3x12x2x8xbf16>
    %141 = stablehlo.dot_general %138, %139, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x12x2x8xbf16>, tensor<3x12x2x8xbf16>) -> tensor<3x2x12x12xbf16>
    %142 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<bf16>) -> tensor<3x2x12x12xbf16>
    %143 = stablehlo.divide %141, %142 : tensor<3x2x12x12xbf16>
    %144 = stablehlo.broadcast_in_dim %c_29, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %145 = call @tril(%144) : (tensor<12x12xi1>) -> tensor<12x12xi1>
    %146 = stablehlo.convert %143 : (tensor<3x2x12x12xbf16>) -> tensor<3x2x12x12xf32>
    %147:2 = call @_where_0(%145, %146, %cst_28) : (tensor<12x12xi1>, tensor<3x2x12x12xf32>, tensor<f32>) -> (tensor<3x2x12x12xf32>, tensor<3x2x12x12xi1>)
    %148 = stablehlo.reduce(%147#0 init: %cst_27) applies stablehlo.maximum across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %149 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<3x2x12xf32>
    %150 = stablehlo.maximum %149, %148 : tensor<3x2x12xf32>
    %151 = stablehlo.broadcast_in_dim %150, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %152 = stablehlo.broadcast_in_dim %151, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %153 = stablehlo.subtract %147#0, %152 : tensor<3x2x12x12xf32>
    %154 = stablehlo.exponential %153 : tensor<3x2x12x12xf32>
    %155 = stablehlo.reduce(%154 init: %cst_34) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %156 = stablehlo.broadcast_in_dim %155, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %157 = stablehlo.broadcast_in_dim %156, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %158 = stablehlo.divide %154, %157 : tensor<3x2x12x12xf32>
    %159 = stablehlo.multiply %156, %156 : tensor<3x2x12x1xf32>
    %160 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<3x2x12x1xf32>
    %161 = stablehlo.divide %160, %159 : tensor<3x2x12x1xf32>
    %162 = stablehlo.convert %158 : (tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xbf16>
    %163 = stablehlo.dot_general %140, %162, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<3x12x2x8xbf16>, tensor<3x2x12x12xbf16>) -> tensor<3x2x8x12xbf16>
    %164 = stablehlo.transpose %163, dims = [0, 3, 1, 2] : (tensor<3x2x8x12xbf16>) -> tensor<3x12x2x8xbf16>
    %165 = stablehlo.reshape %164 : (tensor<3x12x2x8xbf16>) -> tensor<3x12x16xbf16>
    %166 = stablehlo.dot_general %165, %arg11, contracting_dims = [2] x [0] : (tensor<3x12x16xbf16>, tensor<16x16xbf16>) -> tensor<3x12x16xbf16>
    %167 = stablehlo.add %110, %166 : tensor<3x12x16xbf16>
    %168 = stablehlo.convert %167 : (tensor<3x12x16xbf16>) -> tensor<3x12x16xf32>
    %169 = stablehlo.reduce(%168 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %170 = stablehlo.broadcast_in_dim %169, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %171 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %172 = stablehlo.divide %170, %171 : tensor<3x12x1xf32>
    %173:4 = call @_var(%168, %c_36) : (tensor<3x12x16xf32>, tensor<i32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<f32>, tensor<i1>)
    %174 = stablehlo.broadcast_in_dim %172, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %175 = stablehlo.subtract %168, %174 : tensor<3x12x16xf32>
    %176 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %177 = stablehlo.add %173#0, %176 : tensor<3x12x1xf32>
    %178 = stablehlo.rsqrt %177 : tensor<3x12x1xf32>
    %179 = stablehlo.divide %178, %177 : tensor<3x12x1xf32>
    %180 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %181 = stablehlo.multiply %180, %179 : tensor<3x12x1xf32>
    %182 = stablehlo.broadcast_in_dim %178, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %183 = stablehlo.multiply %175, %182 : tensor<3x12x16xf32>
    %184 = stablehlo.broadcast_in_dim %arg14, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %185 = stablehlo.broadcast_in_dim %184, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %186 = stablehlo.multiply %183, %185 : tensor<3x12x16xf32>
    %187 = stablehlo.broadcast_in_dim %arg10, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %188 = stablehlo.broadcast_in_dim %187, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %189 = stablehlo.add %186, %188 : tensor<3x12x16xf32>
    %190 = stablehlo.convert %189 : (tensor<3x12x16xf32>) -> tensor<3x12x16xbf16>
    %191 = stablehlo.dot_general %190, %arg15, contracting_dims = [2] x [0] : (tensor<3x12x16xbf16>, tensor<16x64xbf16>) -> tensor<3x12x64xbf16>
    %192 = stablehlo.multiply %191, %191 : tensor<3x12x64xbf16>
    %193 = stablehlo.multiply %192, %191 : tensor<3x12x64xbf16>
    %194 = stablehlo.multiply %191, %191 : tensor<3x12x64xbf16>
    %195 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %196 = stablehlo.multiply %195, %194 : tensor<3x12x64xbf16>
    %197 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %198 = stablehlo.multiply %197, %193 : tensor<3x12x64xbf16>
    %199 = stablehlo.add %191, %198 : tensor<3x12x64xbf16>
    %200 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %201 = stablehlo.multiply %200, %199 : tensor<3x12x64xbf16>
    %202 = stablehlo.tanh %201 : tensor<3x12x64xbf16>
    %203 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %204 = stablehlo.subtract %203, %202 : tensor<3x12x64xbf16>
    %205 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %206 = stablehlo.add %205, %202 : tensor<3x12x64xbf16>
    %207 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %208 = stablehlo.multiply %207, %206 : tensor<3x12x64xbf16>
    %209 = stablehlo.multiply %191, %208 : tensor<3x12x64xbf16>
    %210 = stablehlo.dot_general %209, %arg8, contracting_dims = [2] x [0] : (tensor<3x12x64xbf16>, tensor<64x16xbf16>) -> tensor<3x12x16xbf16>
    %211 = stablehlo.add %167, %210 : tensor<3x12x16xbf16>
    %212 = stablehlo.transpose %arg17, dims = [1, 0] : (tensor<31x16xbf16>) -> tensor<16x31xbf16>
    %213 = stablehlo.dot_general %211, %212, contracting_dims = [2] x [0] : (tensor<3x12x16xbf16>, tensor<16x31xbf16>) -> tensor<3x12x31xbf16>
    %214 = stablehlo.convert %213 : (tensor<3x12x31xbf16>) -> tensor<3x12x31xf32>
    %215 = stablehlo.broadcast_in_dim %arg57, dims = [0, 1] : (tensor<3x12xi32>) -> tensor<3x12x1xi32>
    %216:2 = call @take_along_axis(%214, %215) : (tensor<3x12x31xf32>, tensor<3x12x1xi32>) -> (tensor<3x12x1xf32>, tensor<3x12x1x1xi32>)
    %217:2 = call @_take(%216#0, %c_36) : (tensor<3x12x1xf32>, tensor<i32>) -> (tensor<3x12xf32>, tensor<1xi32>)
    %218 = stablehlo.reduce(%214 init: %cst_27) applies stablehlo.maximum across dimensions = [2] : (tensor<3x12x31xf32>, tensor<f32>) -> tensor<3x12xf32>
    %219 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %220 = stablehlo.maximum %219, %218 : tensor<3x12xf32>
    %221 = stablehlo.is_finite %220 : (tensor<3x12xf32>) -> tensor<3x12xi1>
    %222 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %223 = stablehlo.select %221, %220, %222 : tensor<3x12xi1>, tensor<3x12xf32>
    %224 = stablehlo.broadcast_in_dim %223, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %225 = stablehlo.broadcast_in_dim %224, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x31xf32>
    %226 = stablehlo.subtract %214, %225 : tensor<3x12x31xf32>
    %227 = stablehlo.exponential %226 : tensor<3x12x31xf32>
    %228 = stablehlo.reduce(%227 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x31xf32>, tensor<f32>) -> tensor<3x12xf32>
    %229 = stablehlo.abs %228 : tensor<3x12xf32>
    %230 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %231 = stablehlo.compare GE, %228, %230, FLOAT : (tensor<3x12xf32>, tensor<3x12xf32>) -> tensor<3x12xi1>
    %232 = stablehlo.log %229 : tensor<3x12xf32>
    %233 = stablehlo.add %232, %223 : tensor<3x12xf32>
    %234 = stablehlo.subtract %233, %217#0 : tensor<3x12xf32>
    %235 = stablehlo.reduce(%234 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12xf32>, tensor<f32>) -> tensor<f32>
    %236 = stablehlo.divide %235, %cst_20 : tensor<f32>
    %237 = stablehlo.divide %cst_26, %cst_20 : tensor<f32>
    %238 = stablehlo.broadcast_in_dim %237, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %239 = stablehlo.negate %238 : tensor<3x12xf32>
    %240 = stablehlo.divide %238, %229 : tensor<3x12xf32>
    %241 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %242 = stablehlo.select %231, %241, %240 : tensor<3x12xi1>, tensor<3x12xf32>
    %243 = stablehlo.select %231, %240, %241 : tensor<3x12xi1>, tensor<3x12xf32>
    %244 = stablehlo.negate %242 : tensor<3x12xf32>
    %245 = stablehlo.add %243, %244 : tensor<3x12xf32>
    %246 = stablehlo.broadcast_in_dim %245, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x31xf32>
    %247 = stablehlo.multiply %246, %227 : tensor<3x12x31xf32>
    %248 = call @_take_2(%217#1, %239) : (tensor<1xi32>, tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %249 = call @take_along_axis_3(%216#1, %248) : (tensor<3x12x1x1xi32>, tensor<3x12x1xf32>) -> tensor<3x12x31xf32>
    %250 = stablehlo.add %247, %249 : tensor<3x12x31xf32>
    %251 = stablehlo.convert %250 : (tensor<3x12x31xf32>) -> tensor<3x12x31xbf16>
    %252 = stablehlo.dot_general %251, %211, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x31xbf16>, tensor<3x12x16xbf16>) -> tensor<31x16xbf16>
    %253 = stablehlo.transpose %252, dims = [1, 0] : (tensor<31x16xbf16>) -> tensor<16x31xbf16>
    %254 = stablehlo.dot_general %251, %212, contracting_dims = [2] x [1] : (tensor<3x12x31xbf16>, tensor<16x31xbf16>) -> tensor<3x12x16xbf16>
    %255 = stablehlo.transpose %253, dims = [1, 0] : (tensor<16x31xbf16>) -> tensor<31x16xbf16>
    %256 = stablehlo.dot_general %254, %209, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x16xbf16>, tensor<3x12x64xbf16>) -> tensor<16x64xbf16>
    %257 = stablehlo.transpose %256, dims = [1, 0] : (tensor<16x64xbf16>) -> tensor<64x16xbf16>
    %258 = stablehlo.dot_general %254, %arg8, contracting_dims = [2] x [1] : (tensor<3x12x16xbf16>, tensor<64x16xbf16>) -> tensor<3x12x64xbf16>
    %259 = stablehlo.multiply %191, %258 : tensor<3x12x64xbf16>
    %260 = stablehlo.multiply %258, %208 : tensor<3x12x64xbf16>
    %261 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %262 = stablehlo.multiply %261, %259 : tensor<3x12x64xbf16>
    %263 = stablehlo.multiply %262, %204 : tensor<3x12x64xbf16>
    %264 = stablehlo.multiply %263, %202 : tensor<3x12x64xbf16>
    %265 = stablehlo.add %263, %264 : tensor<3x12x64xbf16>
    %266 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %267 = stablehlo.multiply %266, %265 : tensor<3x12x64xbf16>
    %268 = stablehlo.add %260, %267 : tensor<3x12x64xbf16>
    %269 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %270 = stablehlo.multiply %269, %267 : tensor<3x12x64xbf16>
    %271 = stablehlo.multiply %270, %196 : tensor<3x12x64xbf16>
    %272 = stablehlo.add %268, %271 : tensor<3x12x64xbf16>
    %273 = stablehlo.dot_general %272, %190, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x64xbf16>, tensor<3x12x16xbf16>) -> tensor<64x16xbf16>
    %274 = stablehlo.transpose %273, dims = [1, 0] : (tensor<64x16xbf16>) -> tensor<16x64xbf16>
    %275 = stablehlo.dot_general %272, %arg15, contracting_dims = [2] x [1] : (tensor<3x12x64xbf16>, tensor<16x64xbf16>) -> tensor<3x12x16xbf16>
    %276 = stablehlo.convert %275 : (tensor<3x12x16xbf16>) -> tensor<3x12x16xf32>
    %277 = stablehlo.reduce(%276 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %278 = stablehlo.reshape %277 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %279 = stablehlo.reduce(%278 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %280 = stablehlo.multiply %183, %276 : tensor<3x12x16xf32>
    %281 = stablehlo.reduce(%280 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %282 = stablehlo.reshape %281 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %283 = stablehlo.broadcast_in_dim %184, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %284 = stablehlo.multiply %276, %283 : tensor<3x12x16xf32>
    %285 = stablehlo.reduce(%282 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %286 = stablehlo.multiply %175, %284 : tensor<3x12x16xf32>
    %287 = stablehlo.reduce(%286 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %288 = stablehlo.reshape %287 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %289 = stablehlo.broadcast_in_dim %178, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %290 = stablehlo.multiply %284, %289 : tensor<3x12x16xf32>
    %291 = stablehlo.multiply %288, %181 : tensor<3x12x1xf32>
    %292 = stablehlo.negate %290 : tensor<3x12x16xf32>
    %293 = stablehlo.reduce(%292 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %294 = stablehlo.reshape %293 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %295 = call @_var_4(%173#1, %173#2, %173#3, %291) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %296 = stablehlo.add %290, %295 : tensor<3x12x16xf32>
    %297 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %298 = stablehlo.divide %294, %297 : tensor<3x12x1xf32>
    %299 = stablehlo.reduce(%298 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %300 = stablehlo.broadcast_in_dim %299, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %301 = stablehlo.add %296, %300 : tensor<3x12x16xf32>
    %302 = stablehlo.convert %301 : (tensor<3x12x16xf32>) -> tensor<3x12x16xbf16>
    %303 = stablehlo.add %254, %302 : tensor<3x12x16xbf16>
    %304 = stablehlo.dot_general %303, %165, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x16xbf16>, tensor<3x12x16xbf16>) -> tensor<16x16xbf16>
    %305 = stablehlo.transpose %304, dims = [1, 0] : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %306 = stablehlo.dot_general %303, %arg11, contracting_dims = [2] x [1] : (tensor<3x12x16xbf16>, tensor<16x16xbf16>) -> tensor<3x12x16xbf16>
    %307 = stablehlo.reshape %306 : (tensor<3x12x16xbf16>) -> tensor<3x12x2x8xbf16>
    %308 = stablehlo.transpose %307, dims = [0, 2, 3, 1] : (tensor<3x12x2x8xbf16>) -> tensor<3x2x8x12xbf16>
    %309 = stablehlo.dot_general %308, %140, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3] : (tensor<3x2x8x12xbf16>, tensor<3x12x2x8xbf16>) -> tensor<3x2x12x12xbf16>
    %310 = stablehlo.dot_general %308, %162, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<3x2x8x12xbf16>, tensor<3x2x12x12xbf16>) -> tensor<3x2x8x12xbf16>
    %311 = stablehlo.transpose %310, dims = [0, 3, 1, 2] : (tensor<3x2x8x12xbf16>) -> tensor<3x12x2x8xbf16>
    %312 = stablehlo.convert %309 : (tensor<3x2x12x12xbf16>) -> tensor<3x2x12x12xf32>
    %313 = stablehlo.broadcast_in_dim %161, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %314 = stablehlo.multiply %312, %313 : tensor<3x2x12x12xf32>
    %315 = stablehlo.multiply %314, %154 : tensor<3x2x12x12xf32>
    %316 = stablehlo.reduce(%315 init: %cst_34) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %317 = stablehlo.reshape %316 : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %318 = stablehlo.negate %317 : tensor<3x2x12x1xf32>
    %319 = stablehlo.broadcast_in_dim %156, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %320 = stablehlo.divide %312, %319 : tensor<3x2x12x12xf32>
    %321 = stablehlo.reduce(%318 init: %cst_34) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x1xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %322 = stablehlo.broadcast_in_dim %321, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x12xf32>
    %323 = stablehlo.add %320, %322 : tensor<3x2x12x12xf32>
    %324 = stablehlo.multiply %323, %154 : tensor<3x2x12x12xf32>
    %325 = call @_where_6(%147#1, %324) : (tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xf32>
    %326 = stablehlo.convert %325 : (tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xbf16>
    %327 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<bf16>) -> tensor<3x2x12x12xbf16>
    %328 = stablehlo.divide %326, %327 : tensor<3x2x12x12xbf16>
    %329 = stablehlo.dot_general %328, %138, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1] : (tensor<3x2x12x12xbf16>, tensor<3x12x2x8xbf16>) -> tensor<3x2x12x8xbf16>
    %330 = stablehlo.transpose %329, dims = [0, 2, 1, 3] : (tensor<3x2x12x8xbf16>) -> tensor<3x12x2x8xbf16>
    %331 = stablehlo.dot_general %328, %139, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<3x2x12x12xbf16>, tensor<3x12x2x8xbf16>) -> tensor<3x2x12x8xbf16>
    %332 = stablehlo.transpose %331, dims = [0, 2, 1, 3] : (tensor<3x2x12x8xbf16>) -> tensor<3x12x2x8xbf16>
    %333 = stablehlo.reshape %311 : (tensor<3x12x2x8xbf16>) -> tensor<3x12x16xbf16>
    %334 = stablehlo.reshape %330 : (tensor<3x12x2x8xbf16>) -> tensor<3x12x16xbf16>
    %335 = stablehlo.reshape %332 : (tensor<3x12x2x8xbf16>) -> tensor<3x12x16xbf16>
    %336 = stablehlo.concatenate %335, %334, %333, dim = 2 : (tensor<3x12x16xbf16>, tensor<3x12x16xbf16>, tensor<3x12x16xbf16>) -> tensor<3x12x48xbf16>
    %337 = stablehlo.dot_general %336, %133, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x48xbf16>, tensor<3x12x16xbf16>) -> tensor<48x16xbf16>
    %338 = stablehlo.transpose %337, dims = [1, 0] : (tensor<48x16xbf16>) -> tensor<16x48xbf16>
    %339 = stablehlo.dot_general %336, %arg12, contracting_dims = [2] x [1] : (tensor<3x12x48xbf16>, tensor<16x48xbf16>) -> tensor<3x12x16xbf16>
    %340 = stablehlo.convert %339 : (tensor<3x12x16xbf16>) -> tensor<3x12x16xf32>
    %341 = stablehlo.reduce(%340 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %342 = stablehlo.reshape %341 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %343 = stablehlo.reduce(%342 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %344 = stablehlo.multiply %126, %340 : tensor<3x12x16xf32>
    %345 = stablehlo.reduce(%344 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %346 = stablehlo.reshape %345 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %347 = stablehlo.broadcast_in_dim %127, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %348 = stablehlo.multiply %340, %347 : tensor<3x12x16xf32>
    %349 = stablehlo.reduce(%346 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %350 = stablehlo.multiply %118, %348 : tensor<3x12x16xf32>
    %351 = stablehlo.reduce(%350 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %352 = stablehlo.reshape %351 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %353 = stablehlo.broadcast_in_dim %121, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %354 = stablehlo.multiply %348, %353 : tensor<3x12x16xf32>
    %355 = stablehlo.multiply %352, %124 : tensor<3x12x1xf32>
    %356 = stablehlo.negate %354 : tensor<3x12x16xf32>
    %357 = stablehlo.reduce(%356 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %358 = stablehlo.reshape %357 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %359 = call @_var_4(%116#1, %116#2, %116#3, %355) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %360 = stablehlo.add %354, %359 : tensor<3x12x16xf32>
    %361 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %362 = stablehlo.divide %358, %361 : tensor<3x12x1xf32>
    %363 = stablehlo.reduce(%362 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %364 = stablehlo.broadcast_in_dim %363, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %365 = stablehlo.add %360, %364 : tensor<3x12x16xf32>
    %366 = stablehlo.convert %365 : (tensor<3x12x16xf32>) -> tensor<3x12x16xbf16>
    %367 = stablehlo.add %303, %366 : tensor<3x12x16xbf16>
    %368 = stablehlo.dot_general %367, %108, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x16xbf16>, tensor<3x12x64xbf16>) -> tensor<16x64xbf16>
    %369 = stablehlo.transpose %368, dims = [1, 0] : (tensor<16x64xbf16>) -> tensor<64x16xbf16>
    %370 = stablehlo.dot_general %367, %arg0, contracting_dims = [2] x [1] : (tensor<3x12x16xbf16>, tensor<64x16xbf16>) -> tensor<3x12x64xbf16>
    %371 = stablehlo.multiply %90, %370 : tensor<3x12x64xbf16>
    %372 = stablehlo.multiply %370, %107 : tensor<3x12x64xbf16>
    %373 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %374 = stablehlo.multiply %373, %371 : tensor<3x12x64xbf16>
    %375 = stablehlo.multiply %374, %103 : tensor<3x12x64xbf16>
    %376 = stablehlo.multiply %375, %101 : tensor<3x12x64xbf16>
    %377 = stablehlo.add %375, %376 : tensor<3x12x64xbf16>
    %378 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %379 = stablehlo.multiply %378, %377 : tensor<3x12x64xbf16>
    %380 = stablehlo.add %372, %379 : tensor<3x12x64xbf16>
    %381 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<bf16>) -> tensor<3x12x64xbf16>
    %382 = stablehlo.multiply %381, %379 : tensor<3x12x64xbf16>
    %383 = stablehlo.multiply %382, %95 : tensor<3x12x64xbf16>
    %384 = stablehlo.add %380, %383 : tensor<3x12x64xbf16>
    %385 = stablehlo.dot_general %384, %89, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x64xbf16>, tensor<3x12x16xbf16>) -> tensor<64x16xbf16>
    %386 = stablehlo.transpose %385, dims = [1, 0] : (tensor<64x16xbf16>) -> tensor<16x64xbf16>
    %387 = stablehlo.dot_general %384, %arg7, contracting_dims = [2] x [1] : (tensor<3x12x64xbf16>, tensor<16x64xbf16>) -> tensor<3x12x16xbf16>
    %388 = stablehlo.convert %387 : (tensor<3x12x16xbf16>) -> tensor<3x12x16xf32>
    %389 = stablehlo.reduce(%388 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %390 = stablehlo.reshape %389 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %391 = stablehlo.reduce(%390 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %392 = stablehlo.multiply %82, %388 : tensor<3x12x16xf32>
    %393 = stablehlo.reduce(%392 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %394 = stablehlo.reshape %393 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %395 = stablehlo.broadcast_in_dim %83, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %396 = stablehlo.multiply %388, %395 : tensor<3x12x16xf32>
    %397 = stablehlo.reduce(%394 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %398 = stablehlo.multiply %74, %396 : tensor<3x12x16xf32>
    %399 = stablehlo.reduce(%398 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %400 = stablehlo.reshape %399 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %401 = stablehlo.broadcast_in_dim %77, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %402 = stablehlo.multiply %396, %401 : tensor<3x12x16xf32>
    %403 = stablehlo.multiply %400, %80 : tensor<3x12x1xf32>
    %404 = stablehlo.negate %402 : tensor<3x12x16xf32>
    %405 = stablehlo.reduce(%404 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %406 = stablehlo.reshape %405 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %407 = call @_var_4(%72#1, %72#2, %72#3, %403) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %408 = stablehlo.add %402, %407 : tensor<3x12x16xf32>
    %409 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %410 = stablehlo.divide %406, %409 : tensor<3x12x1xf32>
    %411 = stablehlo.reduce(%410 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %412 = stablehlo.broadcast_in_dim %411, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %413 = stablehlo.add %408, %412 : tensor<3x12x16xf32>
    %414 = stablehlo.convert %413 : (tensor<3x12x16xf32>) -> tensor<3x12x16xbf16>
    %415 = stablehlo.add %367, %414 : tensor<3x12x16xbf16>
    %416 = stablehlo.dot_general %415, %64, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x16xbf16>, tensor<3x12x16xbf16>) -> tensor<16x16xbf16>
    %417 = stablehlo.transpose %416, dims = [1, 0] : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %418 = stablehlo.dot_general %415, %arg3, contracting_dims = [2] x [1] : (tensor<3x12x16xbf16>, tensor<16x16xbf16>) -> tensor<3x12x16xbf16>
    %419 = stablehlo.reshape %418 : (tensor<3x12x16xbf16>) -> tensor<3x12x2x8xbf16>
    %420 = stablehlo.transpose %419, dims = [0, 2, 3, 1] : (tensor<3x12x2x8xbf16>) -> tensor<3x2x8x12xbf16>
    %421 = stablehlo.dot_general %420, %39, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3] : (tensor<3x2x8x12xbf16>, tensor<3x12x2x8xbf16>) -> tensor<3x2x12x12xbf16>
    %422 = stablehlo.dot_general %420, %61, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<3x2x8x12xbf16>, tensor<3x2x12x12xbf16>) -> tensor<3x2x8x12xbf16>
    %423 = stablehlo.transpose %422, dims = [0, 3, 1, 2] : (tensor<3x2x8x12xbf16>) -> tensor<3x12x2x8xbf16>
    %424 = stablehlo.convert %421 : (tensor<3x2x12x12xbf16>) -> tensor<3x2x12x12xf32>
    %425 = stablehlo.broadcast_in_dim %60, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %426 = stablehlo.multiply %424, %425 : tensor<3x2x12x12xf32>
    %427 = stablehlo.multiply %426, %53 : tensor<3x2x12x12xf32>
    %428 = stablehlo.reduce(%427 init: %cst_34) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %429 = stablehlo.reshape %428 : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %430 = stablehlo.negate %429 : tensor<3x2x12x1xf32>
    %431 = stablehlo.broadcast_in_dim %55, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %432 = stablehlo.divide %424, %431 : tensor<3x2x12x12xf32>
    %433 = stablehlo.reduce(%430 init: %cst_34) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x1xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %434 = stablehlo.broadcast_in_dim %433, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x12xf32>
    %435 = stablehlo.add %432, %434 : tensor<3x2x12x12xf32>
    %436 = stablehlo.multiply %435, %53 : tensor<3x2x12x12xf32>
    %437 = call @_where_6(%46#1, %436) : (tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xf32>
    %438 = stablehlo.convert %437 : (tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xbf16>
    %439 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<bf16>) -> tensor<3x2x12x12xbf16>
    %440 = stablehlo.divide %438, %439 : tensor<3x2x12x12xbf16>
    %441 = stablehlo.dot_general %440, %37, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1] : (tensor<3x2x12x12xbf16>, tensor<3x12x2x8xbf16>) -> tensor<3x2x12x8xbf16>
    %442 = stablehlo.transpose %441, dims = [0, 2, 1, 3] : (tensor<3x2x12x8xbf16>) -> tensor<3x12x2x8xbf16>
    %443 = stablehlo.dot_general %440, %38, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<3x2x12x12xbf16>, tensor<3x12x2x8xbf16>) -> tensor<3x2x12x8xbf16>
    %444 = stablehlo.transpose %443, dims = [0, 2, 1, 3] : (tensor<3x2x12x8xbf16>) -> tensor<3x12x2x8xbf16>
    %445 = stablehlo.reshape %423 : (tensor<3x12x2x8xbf16>) -> tensor<3x12x16xbf16>
    %446 = stablehlo.reshape %442 : (tensor<3x12x2x8xbf16>) -> tensor<3x12x16xbf16>
    %447 = stablehlo.reshape %444 : (tensor<3x12x2x8xbf16>) -> tensor<3x12x16xbf16>
    %448 = stablehlo.concatenate %447, %446, %445, dim = 2 : (tensor<3x12x16xbf16>, tensor<3x12x16xbf16>, tensor<3x12x16xbf16>) -> tensor<3x12x48xbf16>
    %449 = stablehlo.dot_general %448, %32, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x48xbf16>, tensor<3x12x16xbf16>) -> tensor<48x16xbf16>
    %450 = stablehlo.transpose %449, dims = [1, 0] : (tensor<48x16xbf16>) -> tensor<16x48xbf16>
    %451 = stablehlo.dot_general %448, %arg4, contracting_dims = [2] x [1] : (tensor<3x12x48xbf16>, tensor<16x48xbf16>) -> tensor<3x12x16xbf16>
    %452 = stablehlo.convert %451 : (tensor<3x12x16xbf16>) -> tensor<3x12x16xf32>
    %453 = stablehlo.reduce(%452 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %454 = stablehlo.reshape %453 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %455 = stablehlo.reduce(%454 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %456 = stablehlo.multiply %25, %452 : tensor<3x12x16xf32>
    %457 = stablehlo.reduce(%456 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %458 = stablehlo.reshape %457 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %459 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %460 = stablehlo.multiply %452, %459 : tensor<3x12x16xf32>
    %461 = stablehlo.reduce(%458 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %462 = stablehlo.multiply %17, %460 : tensor<3x12x16xf32>
    %463 = stablehlo.reduce(%462 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %464 = stablehlo.reshape %463 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %465 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %466 = stablehlo.multiply %460, %465 : tensor<3x12x16xf32>
    %467 = stablehlo.multiply %464, %23 : tensor<3x12x1xf32>
    %468 = stablehlo.negate %466 : tensor<3x12x16xf32>
    %469 = stablehlo.reduce(%468 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %470 = stablehlo.reshape %469 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %471 = call @_var_4(%15#1, %15#2, %15#3, %467) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %472 = stablehlo.add %466, %471 : tensor<3x12x16xf32>
    %473 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %474 = stablehlo.divide %470, %473 : tensor<3x12x1xf32>
    %475 = stablehlo.reduce(%474 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %476 = stablehlo.broadcast_in_dim %475, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %477 = stablehlo.add %472, %476 : tensor<3x12x16xf32>
    %478 = stablehlo.convert %477 : (tensor<3x12x16xf32>) -> tensor<3x12x16xbf16>
    %479 = stablehlo.add %415, %478 : tensor<3x12x16xbf16>
    %480 = stablehlo.reduce(%479 init: %cst_19) applies stablehlo.add across dimensions = [0] : (tensor<3x12x16xbf16>, tensor<bf16>) -> tensor<12x16xbf16>
    %481 = stablehlo.reshape %480 : (tensor<12x16xbf16>) -> tensor<1x12x16xbf16>
    %482 = stablehlo.reduce(%481 init: %cst_19) applies stablehlo.add across dimensions = [0] : (tensor<1x12x16xbf16>, tensor<bf16>) -> tensor<12x16xbf16>
    %483 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %484 = "stablehlo.scatter"(%483, %5, %479) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
    ^bb0(%arg58: tensor<bf16>, %arg59: tensor<bf16>):
      %1276 = stablehlo.add %arg58, %arg59 : tensor<bf16>
      stablehlo.return %1276 : tensor<bf16>
    }) : (tensor<31x16xbf16>, tensor<3x12x1xi32>, tensor<3x12x16xbf16>) -> tensor<31x16xbf16>
    %485 = stablehlo.add %255, %484 : tensor<31x16xbf16>
    %486 = stablehlo.multiply %369, %369 : tensor<64x16xbf16>
    %487 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %488 = stablehlo.multiply %487, %487 : tensor<64x16xbf16>
    %489 = stablehlo.add %486, %488 : tensor<64x16xbf16>
    %490 = stablehlo.multiply %455, %455 : tensor<16xf32>
    %491 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %492 = stablehlo.multiply %491, %491 : tensor<16xf32>
    %493 = stablehlo.add %490, %492 : tensor<16xf32>
    %494 = stablehlo.multiply %391, %391 : tensor<16xf32>
    %495 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %496 = stablehlo.multiply %495, %495 : tensor<16xf32>
    %497 = stablehlo.add %494, %496 : tensor<16xf32>
    %498 = stablehlo.multiply %417, %417 : tensor<16x16xbf16>
    %499 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %500 = stablehlo.multiply %499, %499 : tensor<16x16xbf16>
    %501 = stablehlo.add %498, %500 : tensor<16x16xbf16>
    %502 = stablehlo.multiply %450, %450 : tensor<16x48xbf16>
    %503 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %504 = stablehlo.multiply %503, %503 : tensor<16x48xbf16>
    %505 = stablehlo.add %502, %504 : tensor<16x48xbf16>
    %506 = stablehlo.multiply %461, %461 : tensor<16xf32>
    %507 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %508 = stablehlo.multiply %507, %507 : tensor<16xf32>
    %509 = stablehlo.add %506, %508 : tensor<16xf32>
    %510 = stablehlo.multiply %397, %397 : tensor<16xf32>
    %511 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %512 = stablehlo.multiply %511, %511 : tensor<16xf32>
    %513 = stablehlo.add %510, %512 : tensor<16xf32>
    %514 = stablehlo.multiply %386, %386 : tensor<16x64xbf16>
    %515 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %516 = stablehlo.multiply %515, %515 : tensor<16x64xbf16>
    %517 = stablehlo.add %514, %516 : tensor<16x64xbf16>
    %518 = stablehlo.multiply %257, %257 : tensor<64x16xbf16>
    %519 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %520 = stablehlo.multiply %519, %519 : tensor<64x16xbf16>
    %521 = stablehlo.add %518, %520 : tensor<64x16xbf16>
    %522 = stablehlo.multiply %343, %343 : tensor<16xf32>
    %523 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %524 = stablehlo.multiply %523, %523 : tensor<16xf32>
    %525 = stablehlo.add %522, %524 : tensor<16xf32>
    %526 = stablehlo.multiply %279, %279 : tensor<16xf32>
    %527 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %528 = stablehlo.multiply %527, %527 : tensor<16xf32>
    %529 = stablehlo.add %526, %528 : tensor<16xf32>
    %530 = stablehlo.multiply %305, %305 : tensor<16x16xbf16>
    %531 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %532 = stablehlo.multiply %531, %531 : tensor<16x16xbf16>
    %533 = stablehlo.add %530, %532 : tensor<16x16xbf16>
    %534 = stablehlo.multiply %338, %338 : tensor<16x48xbf16>
    %535 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %536 = stablehlo.multiply %535, %535 : tensor<16x48xbf16>
    %537 = stablehlo.add %534, %536 : tensor<16x48xbf16>
    %538 = stablehlo.multiply %349, %349 : tensor<16xf32>
    %539 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %540 = stablehlo.multiply %539, %539 : tensor<16xf32>
    %541 = stablehlo.add %538, %540 : tensor<16xf32>
    %542 = stablehlo.multiply %285, %285 : tensor<16xf32>
    %543 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %544 = stablehlo.multiply %543, %543 : tensor<16xf32>
    %545 = stablehlo.add %542, %544 : tensor<16xf32>
    %546 = stablehlo.multiply %274, %274 : tensor<16x64xbf16>
    %547 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %548 = stablehlo.multiply %547, %547 : tensor<16x64xbf16>
    %549 = stablehlo.add %546, %548 : tensor<16x64xbf16>
    %550 = stablehlo.multiply %482, %482 : tensor<12x16xbf16>
    %551 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %552 = stablehlo.multiply %551, %551 : tensor<12x16xbf16>
    %553 = stablehlo.add %550, %552 : tensor<12x16xbf16>
    %554 = stablehlo.multiply %485, %485 : tensor<31x16xbf16>
    %555 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %556 = stablehlo.multiply %555, %555 : tensor<31x16xbf16>
    %557 = stablehlo.add %554, %556 : tensor<31x16xbf16>
    %558 = stablehlo.convert %489 : (tensor<64x16xbf16>) -> tensor<64x16xf32>
    %559 = stablehlo.reduce(%558 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x16xf32>, tensor<f32>) -> tensor<f32>
    %560 = stablehlo.convert %559 : (tensor<f32>) -> tensor<bf16>
    %561 = stablehlo.reduce(%493 init: %cst_34) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %562 = stablehlo.reduce(%497 init: %cst_34) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %563 = stablehlo.convert %501 : (tensor<16x16xbf16>) -> tensor<16x16xf32>
    %564 = stablehlo.reduce(%563 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>
    %565 = stablehlo.convert %564 : (tensor<f32>) -> tensor<bf16>
    %566 = stablehlo.convert %505 : (tensor<16x48xbf16>) -> tensor<16x48xf32>
    %567 = stablehlo.reduce(%566 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x48xf32>, tensor<f32>) -> tensor<f32>
    %568 = stablehlo.convert %567 : (tensor<f32>) -> tensor<bf16>
    %569 = stablehlo.reduce(%509 init: %cst_34) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %570 = stablehlo.reduce(%513 init: %cst_34) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %571 = stablehlo.convert %517 : (tensor<16x64xbf16>) -> tensor<16x64xf32>
    %572 = stablehlo.reduce(%571 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x64xf32>, tensor<f32>) -> tensor<f32>
    %573 = stablehlo.convert %572 : (tensor<f32>) -> tensor<bf16>
    %574 = stablehlo.convert %521 : (tensor<64x16xbf16>) -> tensor<64x16xf32>
    %575 = stablehlo.reduce(%574 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x16xf32>, tensor<f32>) -> tensor<f32>
    %576 = stablehlo.convert %575 : (tensor<f32>) -> tensor<bf16>
    %577 = stablehlo.reduce(%525 init: %cst_34) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %578 = stablehlo.reduce(%529 init: %cst_34) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %579 = stablehlo.convert %533 : (tensor<16x16xbf16>) -> tensor<16x16xf32>
    %580 = stablehlo.reduce(%579 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>
    %581 = stablehlo.convert %580 : (tensor<f32>) -> tensor<bf16>
    %582 = stablehlo.convert %537 : (tensor<16x48xbf16>) -> tensor<16x48xf32>
    %583 = stablehlo.reduce(%582 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x48xf32>, tensor<f32>) -> tensor<f32>
    %584 = stablehlo.convert %583 : (tensor<f32>) -> tensor<bf16>
    %585 = stablehlo.reduce(%541 init: %cst_34) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %586 = stablehlo.reduce(%545 init: %cst_34) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %587 = stablehlo.convert %549 : (tensor<16x64xbf16>) -> tensor<16x64xf32>
    %588 = stablehlo.reduce(%587 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x64xf32>, tensor<f32>) -> tensor<f32>
    %589 = stablehlo.convert %588 : (tensor<f32>) -> tensor<bf16>
    %590 = stablehlo.convert %553 : (tensor<12x16xbf16>) -> tensor<12x16xf32>
    %591 = stablehlo.reduce(%590 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<12x16xf32>, tensor<f32>) -> tensor<f32>
    %592 = stablehlo.convert %591 : (tensor<f32>) -> tensor<bf16>
    %593 = stablehlo.convert %557 : (tensor<31x16xbf16>) -> tensor<31x16xf32>
    %594 = stablehlo.reduce(%593 init: %cst_34) applies stablehlo.add across dimensions = [0, 1] : (tensor<31x16xf32>, tensor<f32>) -> tensor<f32>
    %595 = stablehlo.convert %594 : (tensor<f32>) -> tensor<bf16>
    %596 = stablehlo.add %cst_19, %560 : tensor<bf16>
    %597 = stablehlo.convert %596 : (tensor<bf16>) -> tensor<f32>
    %598 = stablehlo.add %597, %561 : tensor<f32>
    %599 = stablehlo.add %598, %562 : tensor<f32>
    %600 = stablehlo.convert %565 : (tensor<bf16>) -> tensor<f32>
    %601 = stablehlo.add %599, %600 : tensor<f32>
    %602 = stablehlo.convert %568 : (tensor<bf16>) -> tensor<f32>
    %603 = stablehlo.add %601, %602 : tensor<f32>
    %604 = stablehlo.add %603, %569 : tensor<f32>
    %605 = stablehlo.add %604, %570 : tensor<f32>
    %606 = stablehlo.convert %573 : (tensor<bf16>) -> tensor<f32>
    %607 = stablehlo.add %605, %606 : tensor<f32>
    %608 = stablehlo.convert %576 : (tensor<bf16>) -> tensor<f32>
    %609 = stablehlo.add %607, %608 : tensor<f32>
    %610 = stablehlo.add %609, %577 : tensor<f32>
    %611 = stablehlo.add %610, %578 : tensor<f32>
    %612 = stablehlo.convert %581 : (tensor<bf16>) -> tensor<f32>
    %613 = stablehlo.add %611, %612 : tensor<f32>
    %614 = stablehlo.convert %584 : (tensor<bf16>) -> tensor<f32>
    %615 = stablehlo.add %613, %614 : tensor<f32>
    %616 = stablehlo.add %615, %585 : tensor<f32>
    %617 = stablehlo.add %616, %586 : tensor<f32>
    %618 = stablehlo.convert %589 : (tensor<bf16>) -> tensor<f32>
    %619 = stablehlo.add %617, %618 : tensor<f32>
    %620 = stablehlo.convert %592 : (tensor<bf16>) -> tensor<f32>
    %621 = stablehlo.add %619, %620 : tensor<f32>
    %622 = stablehlo.convert %595 : (tensor<bf16>) -> tensor<f32>
    %623 = stablehlo.add %621, %622 : tensor<f32>
    %624 = stablehlo.sqrt %623 : tensor<f32>
    %625 = stablehlo.compare LT, %624, %cst_26, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %626 = stablehlo.convert %624 : (tensor<f32>) -> tensor<bf16>
    %627 = stablehlo.broadcast_in_dim %626, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %628 = stablehlo.divide %369, %627 : tensor<64x16xbf16>
    %629 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %630 = stablehlo.multiply %628, %629 : tensor<64x16xbf16>
    %631 = stablehlo.select %625, %369, %630 : tensor<i1>, tensor<64x16xbf16>
    %632 = stablehlo.broadcast_in_dim %624, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %633 = stablehlo.divide %455, %632 : tensor<16xf32>
    %634 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %635 = stablehlo.multiply %633, %634 : tensor<16xf32>
    %636 = stablehlo.select %625, %455, %635 : tensor<i1>, tensor<16xf32>
    %637 = stablehlo.broadcast_in_dim %624, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %638 = stablehlo.divide %391, %637 : tensor<16xf32>
    %639 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %640 = stablehlo.multiply %638, %639 : tensor<16xf32>
    %641 = stablehlo.select %625, %391, %640 : tensor<i1>, tensor<16xf32>
    %642 = stablehlo.convert %624 : (tensor<f32>) -> tensor<bf16>
    %643 = stablehlo.broadcast_in_dim %642, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %644 = stablehlo.divide %417, %643 : tensor<16x16xbf16>
    %645 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %646 = stablehlo.multiply %644, %645 : tensor<16x16xbf16>
    %647 = stablehlo.select %625, %417, %646 : tensor<i1>, tensor<16x16xbf16>
    %648 = stablehlo.convert %624 : (tensor<f32>) -> tensor<bf16>
    %649 = stablehlo.broadcast_in_dim %648, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %650 = stablehlo.divide %450, %649 : tensor<16x48xbf16>
    %651 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %652 = stablehlo.multiply %650, %651 : tensor<16x48xbf16>
    %653 = stablehlo.select %625, %450, %652 : tensor<i1>, tensor<16x48xbf16>
    %654 = stablehlo.broadcast_in_dim %624, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %655 = stablehlo.divide %461, %654 : tensor<16xf32>
    %656 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %657 = stablehlo.multiply %655, %656 : tensor<16xf32>
    %658 = stablehlo.select %625, %461, %657 : tensor<i1>, tensor<16xf32>
    %659 = stablehlo.broadcast_in_dim %624, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %660 = stablehlo.divide %397, %659 : tensor<16xf32>
    %661 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %662 = stablehlo.multiply %660, %661 : tensor<16xf32>
    %663 = stablehlo.select %625, %397, %662 : tensor<i1>, tensor<16xf32>
    %664 = stablehlo.convert %624 : (tensor<f32>) -> tensor<bf16>
    %665 = stablehlo.broadcast_in_dim %664, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %666 = stablehlo.divide %386, %665 : tensor<16x64xbf16>
    %667 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %668 = stablehlo.multiply %666, %667 : tensor<16x64xbf16>
    %669 = stablehlo.select %625, %386, %668 : tensor<i1>, tensor<16x64xbf16>
    %670 = stablehlo.convert %624 : (tensor<f32>) -> tensor<bf16>
    %671 = stablehlo.broadcast_in_dim %670, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %672 = stablehlo.divide %257, %671 : tensor<64x16xbf16>
    %673 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %674 = stablehlo.multiply %672, %673 : tensor<64x16xbf16>
    %675 = stablehlo.select %625, %257, %674 : tensor<i1>, tensor<64x16xbf16>
    %676 = stablehlo.broadcast_in_dim %624, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %677 = stablehlo.divide %343, %676 : tensor<16xf32>
    %678 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %679 = stablehlo.multiply %677, %678 : tensor<16xf32>
    %680 = stablehlo.select %625, %343, %679 : tensor<i1>, tensor<16xf32>
    %681 = stablehlo.broadcast_in_dim %624, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %682 = stablehlo.divide %279, %681 : tensor<16xf32>
    %683 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %684 = stablehlo.multiply %682, %683 : tensor<16xf32>
    %685 = stablehlo.select %625, %279, %684 : tensor<i1>, tensor<16xf32>
    %686 = stablehlo.convert %624 : (tensor<f32>) -> tensor<bf16>
    %687 = stablehlo.broadcast_in_dim %686, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %688 = stablehlo.divide %305, %687 : tensor<16x16xbf16>
    %689 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %690 = stablehlo.multiply %688, %689 : tensor<16x16xbf16>
    %691 = stablehlo.select %625, %305, %690 : tensor<i1>, tensor<16x16xbf16>
    %692 = stablehlo.convert %624 : (tensor<f32>) -> tensor<bf16>
    %693 = stablehlo.broadcast_in_dim %692, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %694 = stablehlo.divide %338, %693 : tensor<16x48xbf16>
    %695 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %696 = stablehlo.multiply %694, %695 : tensor<16x48xbf16>
    %697 = stablehlo.select %625, %338, %696 : tensor<i1>, tensor<16x48xbf16>
    %698 = stablehlo.broadcast_in_dim %624, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %699 = stablehlo.divide %349, %698 : tensor<16xf32>
    %700 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %701 = stablehlo.multiply %699, %700 : tensor<16xf32>
    %702 = stablehlo.select %625, %349, %701 : tensor<i1>, tensor<16xf32>
    %703 = stablehlo.broadcast_in_dim %624, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %704 = stablehlo.divide %285, %703 : tensor<16xf32>
    %705 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %706 = stablehlo.multiply %704, %705 : tensor<16xf32>
    %707 = stablehlo.select %625, %285, %706 : tensor<i1>, tensor<16xf32>
    %708 = stablehlo.convert %624 : (tensor<f32>) -> tensor<bf16>
    %709 = stablehlo.broadcast_in_dim %708, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %710 = stablehlo.divide %274, %709 : tensor<16x64xbf16>
    %711 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %712 = stablehlo.multiply %710, %711 : tensor<16x64xbf16>
    %713 = stablehlo.select %625, %274, %712 : tensor<i1>, tensor<16x64xbf16>
    %714 = stablehlo.convert %624 : (tensor<f32>) -> tensor<bf16>
    %715 = stablehlo.broadcast_in_dim %714, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %716 = stablehlo.divide %482, %715 : tensor<12x16xbf16>
    %717 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %718 = stablehlo.multiply %716, %717 : tensor<12x16xbf16>
    %719 = stablehlo.select %625, %482, %718 : tensor<i1>, tensor<12x16xbf16>
    %720 = stablehlo.convert %624 : (tensor<f32>) -> tensor<bf16>
    %721 = stablehlo.broadcast_in_dim %720, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %722 = stablehlo.divide %485, %721 : tensor<31x16xbf16>
    %723 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %724 = stablehlo.multiply %722, %723 : tensor<31x16xbf16>
    %725 = stablehlo.select %625, %485, %724 : tensor<i1>, tensor<31x16xbf16>
    %726 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %727 = stablehlo.multiply %726, %631 : tensor<64x16xbf16>
    %728 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %729 = stablehlo.multiply %728, %arg19 : tensor<64x16xbf16>
    %730 = stablehlo.add %727, %729 : tensor<64x16xbf16>
    %731 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %732 = stablehlo.multiply %731, %636 : tensor<16xf32>
    %733 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %734 = stablehlo.multiply %733, %arg20 : tensor<16xf32>
    %735 = stablehlo.add %732, %734 : tensor<16xf32>
    %736 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %737 = stablehlo.multiply %736, %641 : tensor<16xf32>
    %738 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %739 = stablehlo.multiply %738, %arg21 : tensor<16xf32>
    %740 = stablehlo.add %737, %739 : tensor<16xf32>
    %741 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %742 = stablehlo.multiply %741, %647 : tensor<16x16xbf16>
    %743 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %744 = stablehlo.multiply %743, %arg22 : tensor<16x16xbf16>
    %745 = stablehlo.add %742, %744 : tensor<16x16xbf16>
    %746 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %747 = stablehlo.multiply %746, %653 : tensor<16x48xbf16>
    %748 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %749 = stablehlo.multiply %748, %arg23 : tensor<16x48xbf16>
    %750 = stablehlo.add %747, %749 : tensor<16x48xbf16>
    %751 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %752 = stablehlo.multiply %751, %658 : tensor<16xf32>
    %753 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %754 = stablehlo.multiply %753, %arg24 : tensor<16xf32>
    %755 = stablehlo.add %752, %754 : tensor<16xf32>
    %756 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %757 = stablehlo.multiply %756, %663 : tensor<16xf32>
    %758 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %759 = stablehlo.multiply %758, %arg25 : tensor<16xf32>
    %760 = stablehlo.add %757, %759 : tensor<16xf32>
    %761 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %762 = stablehlo.multiply %761, %669 : tensor<16x64xbf16>
    %763 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %764 = stablehlo.multiply %763, %arg26 : tensor<16x64xbf16>
    %765 = stablehlo.add %762, %764 : tensor<16x64xbf16>
    %766 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %767 = stablehlo.multiply %766, %675 : tensor<64x16xbf16>
    %768 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %769 = stablehlo.multiply %768, %arg27 : tensor<64x16xbf16>
    %770 = stablehlo.add %767, %769 : tensor<64x16xbf16>
    %771 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %772 = stablehlo.multiply %771, %680 : tensor<16xf32>
    %773 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %774 = stablehlo.multiply %773, %arg28 : tensor<16xf32>
    %775 = stablehlo.add %772, %774 : tensor<16xf32>
    %776 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %777 = stablehlo.multiply %776, %685 : tensor<16xf32>
    %778 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %779 = stablehlo.multiply %778, %arg29 : tensor<16xf32>
    %780 = stablehlo.add %777, %779 : tensor<16xf32>
    %781 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %782 = stablehlo.multiply %781, %691 : tensor<16x16xbf16>
    %783 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %784 = stablehlo.multiply %783, %arg30 : tensor<16x16xbf16>
    %785 = stablehlo.add %782, %784 : tensor<16x16xbf16>
    %786 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %787 = stablehlo.multiply %786, %697 : tensor<16x48xbf16>
    %788 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %789 = stablehlo.multiply %788, %arg31 : tensor<16x48xbf16>
    %790 = stablehlo.add %787, %789 : tensor<16x48xbf16>
    %791 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %792 = stablehlo.multiply %791, %702 : tensor<16xf32>
    %793 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %794 = stablehlo.multiply %793, %arg32 : tensor<16xf32>
    %795 = stablehlo.add %792, %794 : tensor<16xf32>
    %796 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %797 = stablehlo.multiply %796, %707 : tensor<16xf32>
    %798 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %799 = stablehlo.multiply %798, %arg33 : tensor<16xf32>
    %800 = stablehlo.add %797, %799 : tensor<16xf32>
    %801 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %802 = stablehlo.multiply %801, %713 : tensor<16x64xbf16>
    %803 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %804 = stablehlo.multiply %803, %arg34 : tensor<16x64xbf16>
    %805 = stablehlo.add %802, %804 : tensor<16x64xbf16>
    %806 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %807 = stablehlo.multiply %806, %719 : tensor<12x16xbf16>
    %808 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %809 = stablehlo.multiply %808, %arg35 : tensor<12x16xbf16>
    %810 = stablehlo.add %807, %809 : tensor<12x16xbf16>
    %811 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %812 = stablehlo.multiply %811, %725 : tensor<31x16xbf16>
    %813 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %814 = stablehlo.multiply %813, %arg36 : tensor<31x16xbf16>
    %815 = stablehlo.add %812, %814 : tensor<31x16xbf16>
    %816 = stablehlo.multiply %631, %631 : tensor<64x16xbf16>
    %817 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %818 = stablehlo.multiply %817, %816 : tensor<64x16xbf16>
    %819 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %820 = stablehlo.multiply %819, %arg37 : tensor<64x16xbf16>
    %821 = stablehlo.add %818, %820 : tensor<64x16xbf16>
    %822 = stablehlo.multiply %636, %636 : tensor<16xf32>
    %823 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %824 = stablehlo.multiply %823, %822 : tensor<16xf32>
    %825 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %826 = stablehlo.multiply %825, %arg38 : tensor<16xf32>
    %827 = stablehlo.add %824, %826 : tensor<16xf32>
    %828 = stablehlo.multiply %641, %641 : tensor<16xf32>
    %829 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %830 = stablehlo.multiply %829, %828 : tensor<16xf32>
    %831 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %832 = stablehlo.multiply %831, %arg39 : tensor<16xf32>
    %833 = stablehlo.add %830, %832 : tensor<16xf32>
    %834 = stablehlo.multiply %647, %647 : tensor<16x16xbf16>
    %835 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %836 = stablehlo.multiply %835, %834 : tensor<16x16xbf16>
    %837 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %838 = stablehlo.multiply %837, %arg40 : tensor<16x16xbf16>
    %839 = stablehlo.add %836, %838 : tensor<16x16xbf16>
    %840 = stablehlo.multiply %653, %653 : tensor<16x48xbf16>
    %841 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %842 = stablehlo.multiply %841, %840 : tensor<16x48xbf16>
    %843 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %844 = stablehlo.multiply %843, %arg41 : tensor<16x48xbf16>
    %845 = stablehlo.add %842, %844 : tensor<16x48xbf16>
    %846 = stablehlo.multiply %658, %658 : tensor<16xf32>
    %847 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %848 = stablehlo.multiply %847, %846 : tensor<16xf32>
    %849 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %850 = stablehlo.multiply %849, %arg42 : tensor<16xf32>
    %851 = stablehlo.add %848, %850 : tensor<16xf32>
    %852 = stablehlo.multiply %663, %663 : tensor<16xf32>
    %853 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %854 = stablehlo.multiply %853, %852 : tensor<16xf32>
    %855 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %856 = stablehlo.multiply %855, %arg43 : tensor<16xf32>
    %857 = stablehlo.add %854, %856 : tensor<16xf32>
    %858 = stablehlo.multiply %669, %669 : tensor<16x64xbf16>
    %859 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %860 = stablehlo.multiply %859, %858 : tensor<16x64xbf16>
    %861 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %862 = stablehlo.multiply %861, %arg44 : tensor<16x64xbf16>
    %863 = stablehlo.add %860, %862 : tensor<16x64xbf16>
    %864 = stablehlo.multiply %675, %675 : tensor<64x16xbf16>
    %865 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %866 = stablehlo.multiply %865, %864 : tensor<64x16xbf16>
    %867 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %868 = stablehlo.multiply %867, %arg45 : tensor<64x16xbf16>
    %869 = stablehlo.add %866, %868 : tensor<64x16xbf16>
    %870 = stablehlo.multiply %680, %680 : tensor<16xf32>
    %871 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %872 = stablehlo.multiply %871, %870 : tensor<16xf32>
    %873 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %874 = stablehlo.multiply %873, %arg46 : tensor<16xf32>
    %875 = stablehlo.add %872, %874 : tensor<16xf32>
    %876 = stablehlo.multiply %685, %685 : tensor<16xf32>
    %877 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %878 = stablehlo.multiply %877, %876 : tensor<16xf32>
    %879 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %880 = stablehlo.multiply %879, %arg47 : tensor<16xf32>
    %881 = stablehlo.add %878, %880 : tensor<16xf32>
    %882 = stablehlo.multiply %691, %691 : tensor<16x16xbf16>
    %883 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %884 = stablehlo.multiply %883, %882 : tensor<16x16xbf16>
    %885 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %886 = stablehlo.multiply %885, %arg48 : tensor<16x16xbf16>
    %887 = stablehlo.add %884, %886 : tensor<16x16xbf16>
    %888 = stablehlo.multiply %697, %697 : tensor<16x48xbf16>
    %889 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %890 = stablehlo.multiply %889, %888 : tensor<16x48xbf16>
    %891 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %892 = stablehlo.multiply %891, %arg49 : tensor<16x48xbf16>
    %893 = stablehlo.add %890, %892 : tensor<16x48xbf16>
    %894 = stablehlo.multiply %702, %702 : tensor<16xf32>
    %895 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %896 = stablehlo.multiply %895, %894 : tensor<16xf32>
    %897 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %898 = stablehlo.multiply %897, %arg50 : tensor<16xf32>
    %899 = stablehlo.add %896, %898 : tensor<16xf32>
    %900 = stablehlo.multiply %707, %707 : tensor<16xf32>
    %901 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %902 = stablehlo.multiply %901, %900 : tensor<16xf32>
    %903 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %904 = stablehlo.multiply %903, %arg51 : tensor<16xf32>
    %905 = stablehlo.add %902, %904 : tensor<16xf32>
    %906 = stablehlo.multiply %713, %713 : tensor<16x64xbf16>
    %907 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %908 = stablehlo.multiply %907, %906 : tensor<16x64xbf16>
    %909 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %910 = stablehlo.multiply %909, %arg52 : tensor<16x64xbf16>
    %911 = stablehlo.add %908, %910 : tensor<16x64xbf16>
    %912 = stablehlo.multiply %719, %719 : tensor<12x16xbf16>
    %913 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %914 = stablehlo.multiply %913, %912 : tensor<12x16xbf16>
    %915 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %916 = stablehlo.multiply %915, %arg53 : tensor<12x16xbf16>
    %917 = stablehlo.add %914, %916 : tensor<12x16xbf16>
    %918 = stablehlo.multiply %725, %725 : tensor<31x16xbf16>
    %919 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %920 = stablehlo.multiply %919, %918 : tensor<31x16xbf16>
    %921 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %922 = stablehlo.multiply %921, %arg54 : tensor<31x16xbf16>
    %923 = stablehlo.add %920, %922 : tensor<31x16xbf16>
    %924 = stablehlo.compare LT, %arg18, %c_11, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %925 = stablehlo.add %arg18, %c_10 : tensor<i32>
    %926 = call @_where_7(%924, %925, %c_11) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %927 = stablehlo.convert %926 : (tensor<i32>) -> tensor<f32>
    %928 = stablehlo.power %cst_15, %927 : tensor<f32>
    %929 = stablehlo.subtract %cst_26, %928 : tensor<f32>
    %930 = stablehlo.convert %929 : (tensor<f32>) -> tensor<bf16>
    %931 = stablehlo.broadcast_in_dim %930, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %932 = stablehlo.divide %730, %931 : tensor<64x16xbf16>
    %933 = stablehlo.broadcast_in_dim %929, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %934 = stablehlo.divide %735, %933 : tensor<16xf32>
    %935 = stablehlo.broadcast_in_dim %929, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %936 = stablehlo.divide %740, %935 : tensor<16xf32>
    %937 = stablehlo.convert %929 : (tensor<f32>) -> tensor<bf16>
    %938 = stablehlo.broadcast_in_dim %937, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %939 = stablehlo.divide %745, %938 : tensor<16x16xbf16>
    %940 = stablehlo.convert %929 : (tensor<f32>) -> tensor<bf16>
    %941 = stablehlo.broadcast_in_dim %940, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %942 = stablehlo.divide %750, %941 : tensor<16x48xbf16>
    %943 = stablehlo.broadcast_in_dim %929, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %944 = stablehlo.divide %755, %943 : tensor<16xf32>
    %945 = stablehlo.broadcast_in_dim %929, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %946 = stablehlo.divide %760, %945 : tensor<16xf32>
    %947 = stablehlo.convert %929 : (tensor<f32>) -> tensor<bf16>
    %948 = stablehlo.broadcast_in_dim %947, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %949 = stablehlo.divide %765, %948 : tensor<16x64xbf16>
    %950 = stablehlo.convert %929 : (tensor<f32>) -> tensor<bf16>
    %951 = stablehlo.broadcast_in_dim %950, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %952 = stablehlo.divide %770, %951 : tensor<64x16xbf16>
    %953 = stablehlo.broadcast_in_dim %929, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %954 = stablehlo.divide %775, %953 : tensor<16xf32>
    %955 = stablehlo.broadcast_in_dim %929, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %956 = stablehlo.divide %780, %955 : tensor<16xf32>
    %957 = stablehlo.convert %929 : (tensor<f32>) -> tensor<bf16>
    %958 = stablehlo.broadcast_in_dim %957, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %959 = stablehlo.divide %785, %958 : tensor<16x16xbf16>
    %960 = stablehlo.convert %929 : (tensor<f32>) -> tensor<bf16>
    %961 = stablehlo.broadcast_in_dim %960, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %962 = stablehlo.divide %790, %961 : tensor<16x48xbf16>
    %963 = stablehlo.broadcast_in_dim %929, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %964 = stablehlo.divide %795, %963 : tensor<16xf32>
    %965 = stablehlo.broadcast_in_dim %929, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %966 = stablehlo.divide %800, %965 : tensor<16xf32>
    %967 = stablehlo.convert %929 : (tensor<f32>) -> tensor<bf16>
    %968 = stablehlo.broadcast_in_dim %967, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %969 = stablehlo.divide %805, %968 : tensor<16x64xbf16>
    %970 = stablehlo.convert %929 : (tensor<f32>) -> tensor<bf16>
    %971 = stablehlo.broadcast_in_dim %970, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %972 = stablehlo.divide %810, %971 : tensor<12x16xbf16>
    %973 = stablehlo.convert %929 : (tensor<f32>) -> tensor<bf16>
    %974 = stablehlo.broadcast_in_dim %973, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %975 = stablehlo.divide %815, %974 : tensor<31x16xbf16>
    %976 = stablehlo.convert %926 : (tensor<i32>) -> tensor<f32>
    %977 = stablehlo.power %cst_12, %976 : tensor<f32>
    %978 = stablehlo.subtract %cst_26, %977 : tensor<f32>
    %979 = stablehlo.convert %978 : (tensor<f32>) -> tensor<bf16>
    %980 = stablehlo.broadcast_in_dim %979, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %981 = stablehlo.divide %821, %980 : tensor<64x16xbf16>
    %982 = stablehlo.broadcast_in_dim %978, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %983 = stablehlo.divide %827, %982 : tensor<16xf32>
    %984 = stablehlo.broadcast_in_dim %978, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %985 = stablehlo.divide %833, %984 : tensor<16xf32>
    %986 = stablehlo.convert %978 : (tensor<f32>) -> tensor<bf16>
    %987 = stablehlo.broadcast_in_dim %986, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %988 = stablehlo.divide %839, %987 : tensor<16x16xbf16>
    %989 = stablehlo.convert %978 : (tensor<f32>) -> tensor<bf16>
    %990 = stablehlo.broadcast_in_dim %989, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %991 = stablehlo.divide %845, %990 : tensor<16x48xbf16>
    %992 = stablehlo.broadcast_in_dim %978, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %993 = stablehlo.divide %851, %992 : tensor<16xf32>
    %994 = stablehlo.broadcast_in_dim %978, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %995 = stablehlo.divide %857, %994 : tensor<16xf32>
    %996 = stablehlo.convert %978 : (tensor<f32>) -> tensor<bf16>
    %997 = stablehlo.broadcast_in_dim %996, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %998 = stablehlo.divide %863, %997 : tensor<16x64xbf16>
    %999 = stablehlo.convert %978 : (tensor<f32>) -> tensor<bf16>
    %1000 = stablehlo.broadcast_in_dim %999, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %1001 = stablehlo.divide %869, %1000 : tensor<64x16xbf16>
    %1002 = stablehlo.broadcast_in_dim %978, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1003 = stablehlo.divide %875, %1002 : tensor<16xf32>
    %1004 = stablehlo.broadcast_in_dim %978, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1005 = stablehlo.divide %881, %1004 : tensor<16xf32>
    %1006 = stablehlo.convert %978 : (tensor<f32>) -> tensor<bf16>
    %1007 = stablehlo.broadcast_in_dim %1006, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %1008 = stablehlo.divide %887, %1007 : tensor<16x16xbf16>
    %1009 = stablehlo.convert %978 : (tensor<f32>) -> tensor<bf16>
    %1010 = stablehlo.broadcast_in_dim %1009, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %1011 = stablehlo.divide %893, %1010 : tensor<16x48xbf16>
    %1012 = stablehlo.broadcast_in_dim %978, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1013 = stablehlo.divide %899, %1012 : tensor<16xf32>
    %1014 = stablehlo.broadcast_in_dim %978, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1015 = stablehlo.divide %905, %1014 : tensor<16xf32>
    %1016 = stablehlo.convert %978 : (tensor<f32>) -> tensor<bf16>
    %1017 = stablehlo.broadcast_in_dim %1016, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %1018 = stablehlo.divide %911, %1017 : tensor<16x64xbf16>
    %1019 = stablehlo.convert %978 : (tensor<f32>) -> tensor<bf16>
    %1020 = stablehlo.broadcast_in_dim %1019, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %1021 = stablehlo.divide %917, %1020 : tensor<12x16xbf16>
    %1022 = stablehlo.convert %978 : (tensor<f32>) -> tensor<bf16>
    %1023 = stablehlo.broadcast_in_dim %1022, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %1024 = stablehlo.divide %923, %1023 : tensor<31x16xbf16>
    %1025 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %1026 = stablehlo.add %981, %1025 : tensor<64x16xbf16>
    %1027 = stablehlo.sqrt %1026 : tensor<64x16xbf16>
    %1028 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %1029 = stablehlo.add %1027, %1028 : tensor<64x16xbf16>
    %1030 = stablehlo.divide %932, %1029 : tensor<64x16xbf16>
    %1031 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1032 = stablehlo.add %983, %1031 : tensor<16xf32>
    %1033 = stablehlo.sqrt %1032 : tensor<16xf32>
    %1034 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1035 = stablehlo.add %1033, %1034 : tensor<16xf32>
    %1036 = stablehlo.divide %934, %1035 : tensor<16xf32>
    %1037 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1038 = stablehlo.add %985, %1037 : tensor<16xf32>
    %1039 = stablehlo.sqrt %1038 : tensor<16xf32>
    %1040 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1041 = stablehlo.add %1039, %1040 : tensor<16xf32>
    %1042 = stablehlo.divide %936, %1041 : tensor<16xf32>
    %1043 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %1044 = stablehlo.add %988, %1043 : tensor<16x16xbf16>
    %1045 = stablehlo.sqrt %1044 : tensor<16x16xbf16>
    %1046 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %1047 = stablehlo.add %1045, %1046 : tensor<16x16xbf16>
    %1048 = stablehlo.divide %939, %1047 : tensor<16x16xbf16>
    %1049 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %1050 = stablehlo.add %991, %1049 : tensor<16x48xbf16>
    %1051 = stablehlo.sqrt %1050 : tensor<16x48xbf16>
    %1052 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %1053 = stablehlo.add %1051, %1052 : tensor<16x48xbf16>
    %1054 = stablehlo.divide %942, %1053 : tensor<16x48xbf16>
    %1055 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1056 = stablehlo.add %993, %1055 : tensor<16xf32>
    %1057 = stablehlo.sqrt %1056 : tensor<16xf32>
    %1058 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1059 = stablehlo.add %1057, %1058 : tensor<16xf32>
    %1060 = stablehlo.divide %944, %1059 : tensor<16xf32>
    %1061 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1062 = stablehlo.add %995, %1061 : tensor<16xf32>
    %1063 = stablehlo.sqrt %1062 : tensor<16xf32>
    %1064 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1065 = stablehlo.add %1063, %1064 : tensor<16xf32>
    %1066 = stablehlo.divide %946, %1065 : tensor<16xf32>
    %1067 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %1068 = stablehlo.add %998, %1067 : tensor<16x64xbf16>
    %1069 = stablehlo.sqrt %1068 : tensor<16x64xbf16>
    %1070 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %1071 = stablehlo.add %1069, %1070 : tensor<16x64xbf16>
    %1072 = stablehlo.divide %949, %1071 : tensor<16x64xbf16>
    %1073 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %1074 = stablehlo.add %1001, %1073 : tensor<64x16xbf16>
    %1075 = stablehlo.sqrt %1074 : tensor<64x16xbf16>
    %1076 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %1077 = stablehlo.add %1075, %1076 : tensor<64x16xbf16>
    %1078 = stablehlo.divide %952, %1077 : tensor<64x16xbf16>
    %1079 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1080 = stablehlo.add %1003, %1079 : tensor<16xf32>
    %1081 = stablehlo.sqrt %1080 : tensor<16xf32>
    %1082 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1083 = stablehlo.add %1081, %1082 : tensor<16xf32>
    %1084 = stablehlo.divide %954, %1083 : tensor<16xf32>
    %1085 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1086 = stablehlo.add %1005, %1085 : tensor<16xf32>
    %1087 = stablehlo.sqrt %1086 : tensor<16xf32>
    %1088 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1089 = stablehlo.add %1087, %1088 : tensor<16xf32>
    %1090 = stablehlo.divide %956, %1089 : tensor<16xf32>
    %1091 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %1092 = stablehlo.add %1008, %1091 : tensor<16x16xbf16>
    %1093 = stablehlo.sqrt %1092 : tensor<16x16xbf16>
    %1094 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %1095 = stablehlo.add %1093, %1094 : tensor<16x16xbf16>
    %1096 = stablehlo.divide %959, %1095 : tensor<16x16xbf16>
    %1097 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %1098 = stablehlo.add %1011, %1097 : tensor<16x48xbf16>
    %1099 = stablehlo.sqrt %1098 : tensor<16x48xbf16>
    %1100 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %1101 = stablehlo.add %1099, %1100 : tensor<16x48xbf16>
    %1102 = stablehlo.divide %962, %1101 : tensor<16x48xbf16>
    %1103 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1104 = stablehlo.add %1013, %1103 : tensor<16xf32>
    %1105 = stablehlo.sqrt %1104 : tensor<16xf32>
    %1106 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1107 = stablehlo.add %1105, %1106 : tensor<16xf32>
    %1108 = stablehlo.divide %964, %1107 : tensor<16xf32>
    %1109 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1110 = stablehlo.add %1015, %1109 : tensor<16xf32>
    %1111 = stablehlo.sqrt %1110 : tensor<16xf32>
    %1112 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1113 = stablehlo.add %1111, %1112 : tensor<16xf32>
    %1114 = stablehlo.divide %966, %1113 : tensor<16xf32>
    %1115 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %1116 = stablehlo.add %1018, %1115 : tensor<16x64xbf16>
    %1117 = stablehlo.sqrt %1116 : tensor<16x64xbf16>
    %1118 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %1119 = stablehlo.add %1117, %1118 : tensor<16x64xbf16>
    %1120 = stablehlo.divide %969, %1119 : tensor<16x64xbf16>
    %1121 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %1122 = stablehlo.add %1021, %1121 : tensor<12x16xbf16>
    %1123 = stablehlo.sqrt %1122 : tensor<12x16xbf16>
    %1124 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %1125 = stablehlo.add %1123, %1124 : tensor<12x16xbf16>
    %1126 = stablehlo.divide %972, %1125 : tensor<12x16xbf16>
    %1127 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %1128 = stablehlo.add %1024, %1127 : tensor<31x16xbf16>
    %1129 = stablehlo.sqrt %1128 : tensor<31x16xbf16>
    %1130 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %1131 = stablehlo.add %1129, %1130 : tensor<31x16xbf16>
    %1132 = stablehlo.divide %975, %1131 : tensor<31x16xbf16>
    %1133 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %1134 = stablehlo.multiply %1133, %arg0 : tensor<64x16xbf16>
    %1135 = stablehlo.add %1030, %1134 : tensor<64x16xbf16>
    %1136 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1137 = stablehlo.multiply %1136, %arg1 : tensor<16xf32>
    %1138 = stablehlo.add %1036, %1137 : tensor<16xf32>
    %1139 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1140 = stablehlo.multiply %1139, %arg2 : tensor<16xf32>
    %1141 = stablehlo.add %1042, %1140 : tensor<16xf32>
    %1142 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %1143 = stablehlo.multiply %1142, %arg3 : tensor<16x16xbf16>
    %1144 = stablehlo.add %1048, %1143 : tensor<16x16xbf16>
    %1145 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %1146 = stablehlo.multiply %1145, %arg4 : tensor<16x48xbf16>
    %1147 = stablehlo.add %1054, %1146 : tensor<16x48xbf16>
    %1148 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1149 = stablehlo.multiply %1148, %arg5 : tensor<16xf32>
    %1150 = stablehlo.add %1060, %1149 : tensor<16xf32>
    %1151 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1152 = stablehlo.multiply %1151, %arg6 : tensor<16xf32>
    %1153 = stablehlo.add %1066, %1152 : tensor<16xf32>
    %1154 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %1155 = stablehlo.multiply %1154, %arg7 : tensor<16x64xbf16>
    %1156 = stablehlo.add %1072, %1155 : tensor<16x64xbf16>
    %1157 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %1158 = stablehlo.multiply %1157, %arg8 : tensor<64x16xbf16>
    %1159 = stablehlo.add %1078, %1158 : tensor<64x16xbf16>
    %1160 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1161 = stablehlo.multiply %1160, %arg9 : tensor<16xf32>
    %1162 = stablehlo.add %1084, %1161 : tensor<16xf32>
    %1163 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1164 = stablehlo.multiply %1163, %arg10 : tensor<16xf32>
    %1165 = stablehlo.add %1090, %1164 : tensor<16xf32>
    %1166 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %1167 = stablehlo.multiply %1166, %arg11 : tensor<16x16xbf16>
    %1168 = stablehlo.add %1096, %1167 : tensor<16x16xbf16>
    %1169 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %1170 = stablehlo.multiply %1169, %arg12 : tensor<16x48xbf16>
    %1171 = stablehlo.add %1102, %1170 : tensor<16x48xbf16>
    %1172 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1173 = stablehlo.multiply %1172, %arg13 : tensor<16xf32>
    %1174 = stablehlo.add %1108, %1173 : tensor<16xf32>
    %1175 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1176 = stablehlo.multiply %1175, %arg14 : tensor<16xf32>
    %1177 = stablehlo.add %1114, %1176 : tensor<16xf32>
    %1178 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %1179 = stablehlo.multiply %1178, %arg15 : tensor<16x64xbf16>
    %1180 = stablehlo.add %1120, %1179 : tensor<16x64xbf16>
    %1181 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %1182 = stablehlo.multiply %1181, %arg16 : tensor<12x16xbf16>
    %1183 = stablehlo.add %1126, %1182 : tensor<12x16xbf16>
    %1184 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %1185 = stablehlo.multiply %1184, %arg17 : tensor<31x16xbf16>
    %1186 = stablehlo.add %1132, %1185 : tensor<31x16xbf16>
    %1187 = stablehlo.subtract %arg55, %c_36 : tensor<i32>
    %1188 = call @clip(%1187, %c_36, %c) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %1189 = stablehlo.convert %1188 : (tensor<i32>) -> tensor<f32>
    %1190 = stablehlo.divide %1189, %cst_5 : tensor<f32>
    %1191 = stablehlo.subtract %cst_26, %1190 : tensor<f32>
    %1192 = stablehlo.multiply %cst_4, %1191 : tensor<f32>
    %1193 = stablehlo.add %1192, %cst_3 : tensor<f32>
    %1194 = stablehlo.compare LT, %arg55, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1195 = stablehlo.subtract %arg55, %c : tensor<i32>
    %1196 = stablehlo.convert %1195 : (tensor<i32>) -> tensor<f32>
    %1197 = stablehlo.minimum %1196, %cst_2 : tensor<f32>
    %1198 = stablehlo.multiply %cst_1, %1197 : tensor<f32>
    %1199 = stablehlo.divide %1198, %cst_2 : tensor<f32>
    %1200 = stablehlo.cosine %1199 : tensor<f32>
    %1201 = stablehlo.add %cst_26, %1200 : tensor<f32>
    %1202 = stablehlo.multiply %cst_0, %1201 : tensor<f32>
    %1203 = stablehlo.power %1202, %cst_26 : tensor<f32>
    %1204 = stablehlo.multiply %cst_26, %1203 : tensor<f32>
    %1205 = stablehlo.add %1204, %cst_34 : tensor<f32>
    %1206 = stablehlo.multiply %cst_3, %1205 : tensor<f32>
    %1207 = call @_where_8(%1194, %1193, %1206) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %1208 = stablehlo.multiply %cst, %1207 : tensor<f32>
    %1209 = stablehlo.convert %1208 : (tensor<f32>) -> tensor<bf16>
    %1210 = stablehlo.broadcast_in_dim %1209, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %1211 = stablehlo.multiply %1210, %1135 : tensor<64x16xbf16>
    %1212 = stablehlo.broadcast_in_dim %1208, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1213 = stablehlo.multiply %1212, %1138 : tensor<16xf32>
    %1214 = stablehlo.broadcast_in_dim %1208, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1215 = stablehlo.multiply %1214, %1141 : tensor<16xf32>
    %1216 = stablehlo.convert %1208 : (tensor<f32>) -> tensor<bf16>
    %1217 = stablehlo.broadcast_in_dim %1216, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %1218 = stablehlo.multiply %1217, %1144 : tensor<16x16xbf16>
    %1219 = stablehlo.convert %1208 : (tensor<f32>) -> tensor<bf16>
    %1220 = stablehlo.broadcast_in_dim %1219, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %1221 = stablehlo.multiply %1220, %1147 : tensor<16x48xbf16>
    %1222 = stablehlo.broadcast_in_dim %1208, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1223 = stablehlo.multiply %1222, %1150 : tensor<16xf32>
    %1224 = stablehlo.broadcast_in_dim %1208, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1225 = stablehlo.multiply %1224, %1153 : tensor<16xf32>
    %1226 = stablehlo.convert %1208 : (tensor<f32>) -> tensor<bf16>
    %1227 = stablehlo.broadcast_in_dim %1226, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %1228 = stablehlo.multiply %1227, %1156 : tensor<16x64xbf16>
    %1229 = stablehlo.convert %1208 : (tensor<f32>) -> tensor<bf16>
    %1230 = stablehlo.broadcast_in_dim %1229, dims = [] : (tensor<bf16>) -> tensor<64x16xbf16>
    %1231 = stablehlo.multiply %1230, %1159 : tensor<64x16xbf16>
    %1232 = stablehlo.broadcast_in_dim %1208, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1233 = stablehlo.multiply %1232, %1162 : tensor<16xf32>
    %1234 = stablehlo.broadcast_in_dim %1208, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1235 = stablehlo.multiply %1234, %1165 : tensor<16xf32>
    %1236 = stablehlo.convert %1208 : (tensor<f32>) -> tensor<bf16>
    %1237 = stablehlo.broadcast_in_dim %1236, dims = [] : (tensor<bf16>) -> tensor<16x16xbf16>
    %1238 = stablehlo.multiply %1237, %1168 : tensor<16x16xbf16>
    %1239 = stablehlo.convert %1208 : (tensor<f32>) -> tensor<bf16>
    %1240 = stablehlo.broadcast_in_dim %1239, dims = [] : (tensor<bf16>) -> tensor<16x48xbf16>
    %1241 = stablehlo.multiply %1240, %1171 : tensor<16x48xbf16>
    %1242 = stablehlo.broadcast_in_dim %1208, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1243 = stablehlo.multiply %1242, %1174 : tensor<16xf32>
    %1244 = stablehlo.broadcast_in_dim %1208, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1245 = stablehlo.multiply %1244, %1177 : tensor<16xf32>
    %1246 = stablehlo.convert %1208 : (tensor<f32>) -> tensor<bf16>
    %1247 = stablehlo.broadcast_in_dim %1246, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %1248 = stablehlo.multiply %1247, %1180 : tensor<16x64xbf16>
    %1249 = stablehlo.convert %1208 : (tensor<f32>) -> tensor<bf16>
    %1250 = stablehlo.broadcast_in_dim %1249, dims = [] : (tensor<bf16>) -> tensor<12x16xbf16>
    %1251 = stablehlo.multiply %1250, %1183 : tensor<12x16xbf16>
    %1252 = stablehlo.convert %1208 : (tensor<f32>) -> tensor<bf16>
    %1253 = stablehlo.broadcast_in_dim %1252, dims = [] : (tensor<bf16>) -> tensor<31x16xbf16>
    %1254 = stablehlo.multiply %1253, %1186 : tensor<31x16xbf16>
    %1255 = stablehlo.compare LT, %arg55, %c_11, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1256 = stablehlo.add %arg55, %c_10 : tensor<i32>
    %1257 = call @_where_7(%1255, %1256, %c_11) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %1258 = stablehlo.add %arg0, %1211 : tensor<64x16xbf16>
    %1259 = stablehlo.add %arg1, %1213 : tensor<16xf32>
    %1260 = stablehlo.add %arg2, %1215 : tensor<16xf32>
    %1261 = stablehlo.add %arg3, %1218 : tensor<16x16xbf16>
    %1262 = stablehlo.add %arg4, %1221 : tensor<16x48xbf16>
    %1263 = stablehlo.add %arg5, %1223 : tensor<16xf32>
    %1264 = stablehlo.add %arg6, %1225 : tensor<16xf32>
    %1265 = stablehlo.add %arg7, %1228 : tensor<16x64xbf16>
    %1266 = stablehlo.add %arg8, %1231 : tensor<64x16xbf16>
    %1267 = stablehlo.add %arg9, %1233 : tensor<16xf32>
    %1268 = stablehlo.add %arg10, %1235 : tensor<16xf32>
    %1269 = stablehlo.add %arg11, %1238 : tensor<16x16xbf16>
    %1270 = stablehlo.add %arg12, %1241 : tensor<16x48xbf16>
    %1271 = stablehlo.add %arg13, %1243 : tensor<16xf32>
    %1272 = stablehlo.add %arg14, %1245 : tensor<16xf32>
    %1273 = stablehlo.add %arg15, %1248 : tensor<16x64xbf16>
    %1274 = stablehlo.add %arg16, %1251 : tensor<12x16xbf16>
    %1275 = stablehlo.add %arg17, %1254 : tensor<31x16xbf16>
    return %1258, %1259, %1260, %1261, %1262, %1263, %1264, %1265, %1266, %1267, %1268, %1269, %1270, %1271, %1272, %1273, %1274, %1275, %926, %730, %735, %740, %745, %750, %755, %760, %765, %770, %775, %780, %785, %790, %795, %800, %805, %810, %815, %821, %827, %833, %839, %845, %851, %857, %863, %869, %875, %881, %887, %893, %899, %905, %911, %917, %923, %1257, %236 : tensor<64x16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xbf16>, tensor<16x48xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xbf16>, tensor<64x16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xbf16>, tensor<16x48xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xbf16>, tensor<12x16xbf16>, tensor<31x16xbf16>, tensor<i32>, tensor<64x16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xbf16>, tensor<16x48xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xbf16>, tensor<64x16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xbf16>, tensor<16x48xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xbf16>, tensor<12x16xbf16>, tensor<31x16xbf16>, tensor<64x16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xbf16>, tensor<16x48xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xbf16>, tensor<64x16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xbf16>, tensor<16x48xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xbf16>, tensor<12x16xbf16>, tensor<31x16xbf16>, tensor<i32>, tensor<f32>
  }
  func.func private @_var(%arg0: tensor<3x12x16xf32>, %arg1: tensor<i32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<f32>, tensor<i1>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<3x12x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<3x12x16xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<3x12x16xf32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x12x16xf32>
    %8 = stablehlo.multiply %7, %5 : tensor<3x12x16xf32>
    %9 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %10 = stablehlo.subtract %cst_1, %9 : tensor<f32>
    %11 = stablehlo.reduce(%6 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %13 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %14 = stablehlo.divide %12, %13 : tensor<3x12x1xf32>
    %15 = stablehlo.compare GT, %10, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %16 = call @_where(%15, %14, %cst) : (tensor<i1>, tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12x1xf32>
    return %16, %8, %10, %15 : tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<f32>, tensor<i1>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<3x12x1xf32>, %arg2: tensor<f32>) -> tensor<3x12x1xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<i1>, tensor<3x12x1xf32>
    return %2 : tensor<3x12x1xf32>
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
  func.func private @_where_0(%arg0: tensor<12x12xi1>, %arg1: tensor<3x2x12x12xf32>, %arg2: tensor<f32>) -> (tensor<3x2x12x12xf32>, tensor<3x2x12x12xi1>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<12x12xi1>) -> tensor<3x2x12x12xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3x2x12x12xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>
    return %3, %1 : tensor<3x2x12x12xf32>, tensor<3x2x12x12xi1>
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
    %2 = call @_where_1(%0, %1, %arg1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
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
  func.func private @_where_1(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @_take_2(%arg0: tensor<1xi32>, %arg1: tensor<3x12xf32>) -> tensor<3x12x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2]>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<3x12x1xf32>, tensor<1xi32>, tensor<3x12xf32>) -> tensor<3x12x1xf32>
    return %1 : tensor<3x12x1xf32>
  }
  func.func private @take_along_axis_3(%arg0: tensor<3x12x1x1xi32>, %arg1: tensor<3x12x1xf32>) -> tensor<3x12x31xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x12x31xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<3x12x31xf32>, tensor<3x12x1x1xi32>, tensor<3x12x1xf32>) -> tensor<3x12x31xf32>
    return %1 : tensor<3x12x31xf32>
  }
  func.func private @_var_4(%arg0: tensor<3x12x16xf32>, %arg1: tensor<f32>, %arg2: tensor<i1>, %arg3: tensor<3x12x1xf32>) -> tensor<3x12x16xf32> {
    %cst = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = call @_where_5(%arg2, %arg3) : (tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x1xf32>
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
  func.func private @_where_5(%arg0: tensor<i1>, %arg1: tensor<3x12x1xf32>) -> tensor<3x12x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<i1>, tensor<3x12x1xf32>
    return %1 : tensor<3x12x1xf32>
  }
  func.func private @_where_6(%arg0: tensor<3x2x12x12xi1>, %arg1: tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x2x12x12xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>
    return %1 : tensor<3x2x12x12xf32>
  }
  func.func private @_where_7(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
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
  func.func private @_where_8(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<i1>, tensor<f32>
    return %1 : tensor<f32>
  }
}
