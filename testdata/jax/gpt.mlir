module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64x16xf32> {tf.aliasing_output = 0 : i32} loc("p['h'][0]['down']"), %arg1: tensor<16xf32> {tf.aliasing_output = 1 : i32} loc("p['h'][0]['o1']"), %arg2: tensor<16xf32> {tf.aliasing_output = 2 : i32} loc("p['h'][0]['o2']"), %arg3: tensor<16x16xf32> {tf.aliasing_output = 3 : i32} loc("p['h'][0]['out']"), %arg4: tensor<16x48xf32> {tf.aliasing_output = 4 : i32} loc("p['h'][0]['qkv']"), %arg5: tensor<16xf32> {tf.aliasing_output = 5 : i32} loc("p['h'][0]['s1']"), %arg6: tensor<16xf32> {tf.aliasing_output = 6 : i32} loc("p['h'][0]['s2']"), %arg7: tensor<16x64xf32> {tf.aliasing_output = 7 : i32} loc("p['h'][0]['up']"), %arg8: tensor<64x16xf32> {tf.aliasing_output = 8 : i32} loc("p['h'][1]['down']"), %arg9: tensor<16xf32> {tf.aliasing_output = 9 : i32} loc("p['h'][1]['o1']"), %arg10: tensor<16xf32> {tf.aliasing_output = 10 : i32} loc("p['h'][1]['o2']"), %arg11: tensor<16x16xf32> {tf.aliasing_output = 11 : i32} loc("p['h'][1]['out']"), %arg12: tensor<16x48xf32> {tf.aliasing_output = 12 : i32} loc("p['h'][1]['qkv']"), %arg13: tensor<16xf32> {tf.aliasing_output = 13 : i32} loc("p['h'][1]['s1']"), %arg14: tensor<16xf32> {tf.aliasing_output = 14 : i32} loc("p['h'][1]['s2']"), %arg15: tensor<16x64xf32> {tf.aliasing_output = 15 : i32} loc("p['h'][1]['up']"), %arg16: tensor<12x16xf32> {tf.aliasing_output = 16 : i32} loc("p['wpe']"), %arg17: tensor<31x16xf32> {tf.aliasing_output = 17 : i32} loc("p['wte']"), %arg18: tensor<i32> {tf.aliasing_output = 18 : i32} loc("s[1][0].count"), %arg19: tensor<64x16xf32> {tf.aliasing_output = 19 : i32} loc("s[1][0].mu['h'][0]['down']"), %arg20: tensor<16xf32> {tf.aliasing_output = 20 : i32} loc("s[1][0].mu['h'][0]['o1']"), %arg21: tensor<16xf32> {tf.aliasing_output = 21 : i32} loc("s[1][0].mu['h'][0]['o2']"), %arg22: tensor<16x16xf32> {tf.aliasing_output = 22 : i32} loc("s[1][0].mu['h'][0]['out']"), %arg23: tensor<16x48xf32> {tf.aliasing_output = 23 : i32} loc("s[1][0].mu['h'][0]['qkv']"), %arg24: tensor<16xf32> {tf.aliasing_output = 24 : i32} loc("s[1][0].mu['h'][0]['s1']"), %arg25: tensor<16xf32> {tf.aliasing_output = 25 : i32} loc("s[1][0].mu['h'][0]['s2']"), %arg26: tensor<16x64xf32> {tf.aliasing_output = 26 : i32} loc("s[1][0].mu['h'][0]['up']"), %arg27: tensor<64x16xf32> {tf.aliasing_output = 27 : i32} loc("s[1][0].mu['h'][1]['down']"), %arg28: tensor<16xf32> {tf.aliasing_output = 28 : i32} loc("s[1][0].mu['h'][1]['o1']"), %arg29: tensor<16xf32> {tf.aliasing_output = 29 : i32} loc("s[1][0].mu['h'][1]['o2']"), %arg30: tensor<16x16xf32> {tf.aliasing_output = 30 : i32} loc("s[1][0].mu['h'][1]['out']"), %arg31: tensor<16x48xf32> {tf.aliasing_output = 31 : i32} loc("s[1][0].mu['h'][1]['qkv']"), %arg32: tensor<16xf32> {tf.aliasing_output = 32 : i32} loc("s[1][0].mu['h'][1]['s1']"), %arg33: tensor<16xf32> {tf.aliasing_output = 33 : i32} loc("s[1][0].mu['h'][1]['s2']"), %arg34: tensor<16x64xf32> {tf.aliasing_output = 34 : i32} loc("s[1][0].mu['h'][1]['up']"), %arg35: tensor<12x16xf32> {tf.aliasing_output = 35 : i32} loc("s[1][0].mu['wpe']"), %arg36: tensor<31x16xf32> {tf.aliasing_output = 36 : i32} loc("s[1][0].mu['wte']"), %arg37: tensor<64x16xf32> {tf.aliasing_output = 37 : i32} loc("s[1][0].nu['h'][0]['down']"), %arg38: tensor<16xf32> {tf.aliasing_output = 38 : i32} loc("s[1][0].nu['h'][0]['o1']"), %arg39: tensor<16xf32> {tf.aliasing_output = 39 : i32} loc("s[1][0].nu['h'][0]['o2']"), %arg40: tensor<16x16xf32> {tf.aliasing_output = 40 : i32} loc("s[1][0].nu['h'][0]['out']"), %arg41: tensor<16x48xf32> {tf.aliasing_output = 41 : i32} loc("s[1][0].nu['h'][0]['qkv']"), %arg42: tensor<16xf32> {tf.aliasing_output = 42 : i32} loc("s[1][0].nu['h'][0]['s1']"), %arg43: tensor<16xf32> {tf.aliasing_output = 43 : i32} loc("s[1][0].nu['h'][0]['s2']"), %arg44: tensor<16x64xf32> {tf.aliasing_output = 44 : i32} loc("s[1][0].nu['h'][0]['up']"), %arg45: tensor<64x16xf32> {tf.aliasing_output = 45 : i32} loc("s[1][0].nu['h'][1]['down']"), %arg46: tensor<16xf32> {tf.aliasing_output = 46 : i32} loc("s[1][0].nu['h'][1]['o1']"), %arg47: tensor<16xf32> {tf.aliasing_output = 47 : i32} loc("s[1][0].nu['h'][1]['o2']"), %arg48: tensor<16x16xf32> {tf.aliasing_output = 48 : i32} loc("s[1][0].nu['h'][1]['out']"), %arg49: tensor<16x48xf32> {tf.aliasing_output = 49 : i32} loc("s[1][0].nu['h'][1]['qkv']"), %arg50: tensor<16xf32> {tf.aliasing_output = 50 : i32} loc("s[1][0].nu['h'][1]['s1']"), %arg51: tensor<16xf32> {tf.aliasing_output = 51 : i32} loc("s[1][0].nu['h'][1]['s2']"), %arg52: tensor<16x64xf32> {tf.aliasing_output = 52 : i32} loc("s[1][0].nu['h'][1]['up']"), %arg53: tensor<12x16xf32> {tf.aliasing_output = 53 : i32} loc("s[1][0].nu['wpe']"), %arg54: tensor<31x16xf32> {tf.aliasing_output = 54 : i32} loc("s[1][0].nu['wte']"), %arg55: tensor<i32> {tf.aliasing_output = 55 : i32} loc("s[1][2].count"), %arg56: tensor<3x12xi32> loc("data[0]"), %arg57: tensor<3x12xi32> loc("data[1]")) -> (tensor<64x16xf32> {jax.result_info = "result[0]['h'][0]['down']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][0]['o1']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][0]['o2']"}, tensor<16x16xf32> {jax.result_info = "result[0]['h'][0]['out']"}, tensor<16x48xf32> {jax.result_info = "result[0]['h'][0]['qkv']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][0]['s1']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][0]['s2']"}, tensor<16x64xf32> {jax.result_info = "result[0]['h'][0]['up']"}, tensor<64x16xf32> {jax.result_info = "result[0]['h'][1]['down']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][1]['o1']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][1]['o2']"}, tensor<16x16xf32> {jax.result_info = "result[0]['h'][1]['out']"}, tensor<16x48xf32> {jax.result_info = "result[0]['h'][1]['qkv']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][1]['s1']"}, tensor<16xf32> {jax.result_info = "result[0]['h'][1]['s2']"}, tensor<16x64xf32> {jax.result_info = "result[0]['h'][1]['up']"}, tensor<12x16xf32> {jax.result_info = "result[0]['wpe']"}, tensor<31x16xf32> {jax.result_info = "result[0]['wte']"}, tensor<i32> {jax.result_info = "result[1][1][0].count"}, tensor<64x16xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['down']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['o1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['o2']"}, tensor<16x16xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['out']"}, tensor<16x48xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['qkv']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['s1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['s2']"}, tensor<16x64xf32> {jax.result_info = "result[1][1][0].mu['h'][0]['up']"}, tensor<64x16xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['down']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['o1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['o2']"}, tensor<16x16xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['out']"}, tensor<16x48xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['qkv']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['s1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['s2']"}, tensor<16x64xf32> {jax.result_info = "result[1][1][0].mu['h'][1]['up']"}, tensor<12x16xf32> {jax.result_info = "result[1][1][0].mu['wpe']"}, tensor<31x16xf32> {jax.result_info = "result[1][1][0].mu['wte']"}, tensor<64x16xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['down']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['o1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['o2']"}, tensor<16x16xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['out']"}, tensor<16x48xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['qkv']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['s1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['s2']"}, tensor<16x64xf32> {jax.result_info = "result[1][1][0].nu['h'][0]['up']"}, tensor<64x16xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['down']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['o1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['o2']"}, tensor<16x16xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['out']"}, tensor<16x48xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['qkv']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['s1']"}, tensor<16xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['s2']"}, tensor<16x64xf32> {jax.result_info = "result[1][1][0].nu['h'][1]['up']"}, tensor<12x16xf32> {jax.result_info = "result[1][1][0].nu['wpe']"}, tensor<31x16xf32> {jax.result_info = "result[1][1][0].nu['wte']"}, tensor<i32> {jax.result_info = "result[1][1][2].count"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<3.14159274> : tensor<f32>
    %cst_1 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %cst_3 = stablehlo.constant dense<-0.00999999977> : tensor<f32>
    %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %cst_5 = stablehlo.constant dense<9.99999974E-5> : tensor<f32>
    %cst_6 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %c_7 = stablehlo.constant dense<1> : tensor<i32>
    %c_8 = stablehlo.constant dense<2147483647> : tensor<i32>
    %cst_9 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %cst_10 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %cst_11 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %cst_12 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %cst_13 = stablehlo.constant dense<3.600000e+01> : tensor<f32>
    %cst_14 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_15 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %cst_16 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %cst_17 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %cst_18 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_19 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_20 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %c_21 = stablehlo.constant dense<true> : tensor<i1>
    %cst_22 = stablehlo.constant dense<2.82842708> : tensor<f32>
    %cst_23 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %cst_24 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %cst_25 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %cst_26 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c_27 = stablehlo.constant dense<31> : tensor<i32>
    %c_28 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_28, dims = [] : (tensor<i32>) -> tensor<3x12xi32>
    %1 = stablehlo.compare LT, %arg56, %0, SIGNED : (tensor<3x12xi32>, tensor<3x12xi32>) -> tensor<3x12xi1>
    %2 = stablehlo.broadcast_in_dim %c_27, dims = [] : (tensor<i32>) -> tensor<3x12xi32>
    %3 = stablehlo.add %arg56, %2 : tensor<3x12xi32>
    %4 = stablehlo.select %1, %3, %arg56 : tensor<3x12xi1>, tensor<3x12xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<3x12xi32>) -> tensor<3x12x1xi32>
    %6 = "stablehlo.gather"(%arg17, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 16>}> : (tensor<31x16xf32>, tensor<3x12x1xi32>) -> tensor<3x12x16xf32>
    %7 = stablehlo.broadcast_in_dim %arg16, dims = [1, 2] : (tensor<12x16xf32>) -> tensor<1x12x16xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<1x12x16xf32>) -> tensor<3x12x16xf32>
    %9 = stablehlo.add %6, %8 : tensor<3x12x16xf32>
    %10 = stablehlo.reduce(%9 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %12 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %13 = stablehlo.divide %11, %12 : tensor<3x12x1xf32>
    %14:4 = call @_var(%9, %c_28) : (tensor<3x12x16xf32>, tensor<i32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<f32>, tensor<i1>)
    %15 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %16 = stablehlo.subtract %9, %15 : tensor<3x12x16xf32>
    %17 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %18 = stablehlo.add %14#0, %17 : tensor<3x12x1xf32>
    %19 = stablehlo.rsqrt %18 : tensor<3x12x1xf32>
    %20 = stablehlo.divide %19, %18 : tensor<3x12x1xf32>
    %21 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %22 = stablehlo.multiply %21, %20 : tensor<3x12x1xf32>
    %23 = stablehlo.broadcast_in_dim %19, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %24 = stablehlo.multiply %16, %23 : tensor<3x12x16xf32>
    %25 = stablehlo.broadcast_in_dim %arg5, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %27 = stablehlo.multiply %24, %26 : tensor<3x12x16xf32>
    %28 = stablehlo.broadcast_in_dim %arg1, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %30 = stablehlo.add %27, %29 : tensor<3x12x16xf32>
    %31 = stablehlo.dot_general %30, %arg4, contracting_dims = [2] x [0] : (tensor<3x12x16xf32>, tensor<16x48xf32>) -> tensor<3x12x48xf32>
    %32 = stablehlo.slice %31 [0:3, 0:12, 0:16] : (tensor<3x12x48xf32>) -> tensor<3x12x16xf32>
    %33 = stablehlo.slice %31 [0:3, 0:12, 16:32] : (tensor<3x12x48xf32>) -> tensor<3x12x16xf32>
    %34 = stablehlo.slice %31 [0:3, 0:12, 32:48] : (tensor<3x12x48xf32>) -> tensor<3x12x16xf32>
    %35 = stablehlo.reshape %32 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %36 = stablehlo.reshape %33 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %37 = stablehlo.reshape %34 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %38 = stablehlo.dot_general %35, %36, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x12x2x8xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x12xf32>
    %39 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<3x2x12x12xf32>
    %40 = stablehlo.divide %38, %39 : tensor<3x2x12x12xf32>
    %41 = stablehlo.broadcast_in_dim %c_21, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %42 = call @tril(%41) : (tensor<12x12xi1>) -> tensor<12x12xi1>
    %43:2 = call @_where_0(%42, %40, %cst_20) : (tensor<12x12xi1>, tensor<3x2x12x12xf32>, tensor<f32>) -> (tensor<3x2x12x12xf32>, tensor<3x2x12x12xi1>)
    %44 = stablehlo.reduce(%43#0 init: %cst_19) applies stablehlo.maximum across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %45 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<3x2x12xf32>
    %46 = stablehlo.maximum %45, %44 : tensor<3x2x12xf32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %49 = stablehlo.subtract %43#0, %48 : tensor<3x2x12x12xf32>
    %50 = stablehlo.exponential %49 : tensor<3x2x12x12xf32>
    %51 = stablehlo.reduce(%50 init: %cst_26) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %54 = stablehlo.divide %50, %53 : tensor<3x2x12x12xf32>
    %55 = stablehlo.multiply %52, %52 : tensor<3x2x12x1xf32>
    %56 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x2x12x1xf32>
    %57 = stablehlo.divide %56, %55 : tensor<3x2x12x1xf32>
    %58 = stablehlo.dot_general %37, %54, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<3x12x2x8xf32>, tensor<3x2x12x12xf32>) -> tensor<3x2x8x12xf32>
    %59 = stablehlo.transpose %58, dims = [0, 3, 1, 2] : (tensor<3x2x8x12xf32>) -> tensor<3x12x2x8xf32>
    %60 = stablehlo.reshape %59 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %61 = stablehlo.dot_general %60, %arg3, contracting_dims = [2] x [0] : (tensor<3x12x16xf32>, tensor<16x16xf32>) -> tensor<3x12x16xf32>
    %62 = stablehlo.add %9, %61 : tensor<3x12x16xf32>
    %63 = stablehlo.reduce(%62 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %64 = stablehlo.broadcast_in_dim %63, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %65 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %66 = stablehlo.divide %64, %65 : tensor<3x12x1xf32>
    %67:4 = call @_var(%62, %c_28) : (tensor<3x12x16xf32>, tensor<i32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<f32>, tensor<i1>)
    %68 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %69 = stablehlo.subtract %62, %68 : tensor<3x12x16xf32>
    %70 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %71 = stablehlo.add %67#0, %70 : tensor<3x12x1xf32>
    %72 = stablehlo.rsqrt %71 : tensor<3x12x1xf32>
    %73 = stablehlo.divide %72, %71 : tensor<3x12x1xf32>
    %74 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %75 = stablehlo.multiply %74, %73 : tensor<3x12x1xf32>
    %76 = stablehlo.broadcast_in_dim %72, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %77 = stablehlo.multiply %69, %76 : tensor<3x12x16xf32>
    %78 = stablehlo.broadcast_in_dim %arg6, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %79 = stablehlo.broadcast_in_dim %78, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %80 = stablehlo.multiply %77, %79 : tensor<3x12x16xf32>
    %81 = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %82 = stablehlo.broadcast_in_dim %81, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %83 = stablehlo.add %80, %82 : tensor<3x12x16xf32>
    %84 = stablehlo.dot_general %83, %arg7, contracting_dims = [2] x [0] : (tensor<3x12x16xf32>, tensor<16x64xf32>) -> tensor<3x12x64xf32>
    %85 = stablehlo.multiply %84, %84 : tensor<3x12x64xf32>
    %86 = stablehlo.multiply %85, %84 : tensor<3x12x64xf32>
    %87 = stablehlo.multiply %84, %84 : tensor<3x12x64xf32>
    %88 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %89 = stablehlo.multiply %88, %87 : tensor<3x12x64xf32>
    %90 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %91 = stablehlo.multiply %90, %86 : tensor<3x12x64xf32>
    %92 = stablehlo.add %84, %91 : tensor<3x12x64xf32>
    %93 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %94 = stablehlo.multiply %93, %92 : tensor<3x12x64xf32>
    %95 = stablehlo.tanh %94 : tensor<3x12x64xf32>
    %96 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %97 = stablehlo.subtract %96, %95 : tensor<3x12x64xf32>
    %98 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %99 = stablehlo.add %98, %95 : tensor<3x12x64xf32>
    %100 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %101 = stablehlo.multiply %100, %99 : tensor<3x12x64xf32>
    %102 = stablehlo.multiply %84, %101 : tensor<3x12x64xf32>
    %103 = stablehlo.dot_general %102, %arg0, contracting_dims = [2] x [0] : (tensor<3x12x64xf32>, tensor<64x16xf32>) -> tensor<3x12x16xf32>
    %104 = stablehlo.add %62, %103 : tensor<3x12x16xf32>
    %105 = stablehlo.reduce(%104 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %106 = stablehlo.broadcast_in_dim %105, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %107 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %108 = stablehlo.divide %106, %107 : tensor<3x12x1xf32>
    %109:4 = call @_var(%104, %c_28) : (tensor<3x12x16xf32>, tensor<i32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<f32>, tensor<i1>)
    %110 = stablehlo.broadcast_in_dim %108, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %111 = stablehlo.subtract %104, %110 : tensor<3x12x16xf32>
    %112 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %113 = stablehlo.add %109#0, %112 : tensor<3x12x1xf32>
    %114 = stablehlo.rsqrt %113 : tensor<3x12x1xf32>
    %115 = stablehlo.divide %114, %113 : tensor<3x12x1xf32>
    %116 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %117 = stablehlo.multiply %116, %115 : tensor<3x12x1xf32>
    %118 = stablehlo.broadcast_in_dim %114, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %119 = stablehlo.multiply %111, %118 : tensor<3x12x16xf32>
    %120 = stablehlo.broadcast_in_dim %arg13, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %121 = stablehlo.broadcast_in_dim %120, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %122 = stablehlo.multiply %119, %121 : tensor<3x12x16xf32>
    %123 = stablehlo.broadcast_in_dim %arg9, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %124 = stablehlo.broadcast_in_dim %123, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %125 = stablehlo.add %122, %124 : tensor<3x12x16xf32>
    %126 = stablehlo.dot_general %125, %arg12, contracting_dims = [2] x [0] : (tensor<3x12x16xf32>, tensor<16x48xf32>) -> tensor<3x12x48xf32>
    %127 = stablehlo.slice %126 [0:3, 0:12, 0:16] : (tensor<3x12x48xf32>) -> tensor<3x12x16xf32>
    %128 = stablehlo.slice %126 [0:3, 0:12, 16:32] : (tensor<3x12x48xf32>) -> tensor<3x12x16xf32>
    %129 = stablehlo.slice %126 [0:3, 0:12, 32:48] : (tensor<3x12x48xf32>) -> tensor<3x12x16xf32>
    %130 = stablehlo.reshape %127 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %131 = stablehlo.reshape %128 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %132 = stablehlo.reshape %129 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %133 = stablehlo.dot_general %130, %131, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<3x12x2x8xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x12xf32>
    %134 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<3x2x12x12xf32>
    %135 = stablehlo.divide %133, %134 : tensor<3x2x12x12xf32>
    %136 = stablehlo.broadcast_in_dim %c_21, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %137 = call @tril(%136) : (tensor<12x12xi1>) -> tensor<12x12xi1>
    %138:2 = call @_where_0(%137, %135, %cst_20) : (tensor<12x12xi1>, tensor<3x2x12x12xf32>, tensor<f32>) -> (tensor<3x2x12x12xf32>, tensor<3x2x12x12xi1>)
    %139 = stablehlo.reduce(%138#0 init: %cst_19) applies stablehlo.maximum across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %140 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<3x2x12xf32>
    %141 = stablehlo.maximum %140, %139 : tensor<3x2x12xf32>
    %142 = stablehlo.broadcast_in_dim %141, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %143 = stablehlo.broadcast_in_dim %142, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %144 = stablehlo.subtract %138#0, %143 : tensor<3x2x12x12xf32>
    %145 = stablehlo.exponential %144 : tensor<3x2x12x12xf32>
    %146 = stablehlo.reduce(%145 init: %cst_26) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %147 = stablehlo.broadcast_in_dim %146, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %148 = stablehlo.broadcast_in_dim %147, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %149 = stablehlo.divide %145, %148 : tensor<3x2x12x12xf32>
    %150 = stablehlo.multiply %147, %147 : tensor<3x2x12x1xf32>
    %151 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x2x12x1xf32>
    %152 = stablehlo.divide %151, %150 : tensor<3x2x12x1xf32>
    %153 = stablehlo.dot_general %132, %149, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<3x12x2x8xf32>, tensor<3x2x12x12xf32>) -> tensor<3x2x8x12xf32>
    %154 = stablehlo.transpose %153, dims = [0, 3, 1, 2] : (tensor<3x2x8x12xf32>) -> tensor<3x12x2x8xf32>
    %155 = stablehlo.reshape %154 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %156 = stablehlo.dot_general %155, %arg11, contracting_dims = [2] x [0] : (tensor<3x12x16xf32>, tensor<16x16xf32>) -> tensor<3x12x16xf32>
    %157 = stablehlo.add %104, %156 : tensor<3x12x16xf32>
    %158 = stablehlo.reduce(%157 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %159 = stablehlo.broadcast_in_dim %158, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %160 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %161 = stablehlo.divide %159, %160 : tensor<3x12x1xf32>
    %162:4 = call @_var(%157, %c_28) : (tensor<3x12x16xf32>, tensor<i32>) -> (tensor<3x12x1xf32>, tensor<3x12x16xf32>, tensor<f32>, tensor<i1>)
    %163 = stablehlo.broadcast_in_dim %161, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %164 = stablehlo.subtract %157, %163 : tensor<3x12x16xf32>
    %165 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %166 = stablehlo.add %162#0, %165 : tensor<3x12x1xf32>
    %167 = stablehlo.rsqrt %166 : tensor<3x12x1xf32>
    %168 = stablehlo.divide %167, %166 : tensor<3x12x1xf32>
    %169 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %170 = stablehlo.multiply %169, %168 : tensor<3x12x1xf32>
    %171 = stablehlo.broadcast_in_dim %167, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %172 = stablehlo.multiply %164, %171 : tensor<3x12x16xf32>
    %173 = stablehlo.broadcast_in_dim %arg14, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %174 = stablehlo.broadcast_in_dim %173, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %175 = stablehlo.multiply %172, %174 : tensor<3x12x16xf32>
    %176 = stablehlo.broadcast_in_dim %arg10, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %177 = stablehlo.broadcast_in_dim %176, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %178 = stablehlo.add %175, %177 : tensor<3x12x16xf32>
    %179 = stablehlo.dot_general %178, %arg15, contracting_dims = [2] x [0] : (tensor<3x12x16xf32>, tensor<16x64xf32>) -> tensor<3x12x64xf32>
    %180 = stablehlo.multiply %179, %179 : tensor<3x12x64xf32>
    %181 = stablehlo.multiply %180, %179 : tensor<3x12x64xf32>
    %182 = stablehlo.multiply %179, %179 : tensor<3x12x64xf32>
    %183 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %184 = stablehlo.multiply %183, %182 : tensor<3x12x64xf32>
    %185 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %186 = stablehlo.multiply %185, %181 : tensor<3x12x64xf32>
    %187 = stablehlo.add %179, %186 : tensor<3x12x64xf32>
    %188 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %189 = stablehlo.multiply %188, %187 : tensor<3x12x64xf32>
    %190 = stablehlo.tanh %189 : tensor<3x12x64xf32>
    %191 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %192 = stablehlo.subtract %191, %190 : tensor<3x12x64xf32>
    %193 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %194 = stablehlo.add %193, %190 : tensor<3x12x64xf32>
    %195 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %196 = stablehlo.multiply %195, %194 : tensor<3x12x64xf32>
    %197 = stablehlo.multiply %179, %196 : tensor<3x12x64xf32>
    %198 = stablehlo.dot_general %197, %arg8, contracting_dims = [2] x [0] : (tensor<3x12x64xf32>, tensor<64x16xf32>) -> tensor<3x12x16xf32>
    %199 = stablehlo.add %157, %198 : tensor<3x12x16xf32>
    %200 = stablehlo.transpose %arg17, dims = [1, 0] : (tensor<31x16xf32>) -> tensor<16x31xf32>
    %201 = stablehlo.dot_general %199, %200, contracting_dims = [2] x [0] : (tensor<3x12x16xf32>, tensor<16x31xf32>) -> tensor<3x12x31xf32>
    %202 = stablehlo.broadcast_in_dim %arg57, dims = [0, 1] : (tensor<3x12xi32>) -> tensor<3x12x1xi32>
    %203:2 = call @take_along_axis(%201, %202) : (tensor<3x12x31xf32>, tensor<3x12x1xi32>) -> (tensor<3x12x1xf32>, tensor<3x12x1x1xi32>)
    %204:2 = call @_take(%203#0, %c_28) : (tensor<3x12x1xf32>, tensor<i32>) -> (tensor<3x12xf32>, tensor<1xi32>)
    %205 = stablehlo.reduce(%201 init: %cst_19) applies stablehlo.maximum across dimensions = [2] : (tensor<3x12x31xf32>, tensor<f32>) -> tensor<3x12xf32>
    %206 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %207 = stablehlo.maximum %206, %205 : tensor<3x12xf32>
    %208 = stablehlo.is_finite %207 : (tensor<3x12xf32>) -> tensor<3x12xi1>
    %209 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %210 = stablehlo.select %208, %207, %209 : tensor<3x12xi1>, tensor<3x12xf32>
    %211 = stablehlo.broadcast_in_dim %210, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %212 = stablehlo.broadcast_in_dim %211, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x31xf32>
    %213 = stablehlo.subtract %201, %212 : tensor<3x12x31xf32>
    %214 = stablehlo.exponential %213 : tensor<3x12x31xf32>
    %215 = stablehlo.reduce(%214 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x31xf32>, tensor<f32>) -> tensor<3x12xf32>
    %216 = stablehlo.abs %215 : tensor<3x12xf32>
    %217 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %218 = stablehlo.compare GE, %215, %217, FLOAT : (tensor<3x12xf32>, tensor<3x12xf32>) -> tensor<3x12xi1>
    %219 = stablehlo.log %216 : tensor<3x12xf32>
    %220 = stablehlo.add %219, %210 : tensor<3x12xf32>
    %221 = stablehlo.subtract %220, %204#0 : tensor<3x12xf32>
    %222 = stablehlo.reduce(%221 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12xf32>, tensor<f32>) -> tensor<f32>
    %223 = stablehlo.divide %222, %cst_13 : tensor<f32>
    %224 = stablehlo.divide %cst_18, %cst_13 : tensor<f32>
    %225 = stablehlo.broadcast_in_dim %224, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %226 = stablehlo.negate %225 : tensor<3x12xf32>
    %227 = stablehlo.divide %225, %216 : tensor<3x12xf32>
    %228 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<3x12xf32>
    %229 = stablehlo.select %218, %228, %227 : tensor<3x12xi1>, tensor<3x12xf32>
    %230 = stablehlo.select %218, %227, %228 : tensor<3x12xi1>, tensor<3x12xf32>
    %231 = stablehlo.negate %229 : tensor<3x12xf32>
    %232 = stablehlo.add %230, %231 : tensor<3x12xf32>
    %233 = stablehlo.broadcast_in_dim %232, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x31xf32>
    %234 = stablehlo.multiply %233, %214 : tensor<3x12x31xf32>
    %235 = call @_take_2(%204#1, %226) : (tensor<1xi32>, tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %236 = call @take_along_axis_3(%203#1, %235) : (tensor<3x12x1x1xi32>, tensor<3x12x1xf32>) -> tensor<3x12x31xf32>
    %237 = stablehlo.add %234, %236 : tensor<3x12x31xf32>
    %238 = stablehlo.dot_general %237, %199, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x31xf32>, tensor<3x12x16xf32>) -> tensor<31x16xf32>
    %239 = stablehlo.transpose %238, dims = [1, 0] : (tensor<31x16xf32>) -> tensor<16x31xf32>
    %240 = stablehlo.dot_general %237, %200, contracting_dims = [2] x [1] : (tensor<3x12x31xf32>, tensor<16x31xf32>) -> tensor<3x12x16xf32>
    %241 = stablehlo.transpose %239, dims = [1, 0] : (tensor<16x31xf32>) -> tensor<31x16xf32>
    %242 = stablehlo.dot_general %240, %197, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x16xf32>, tensor<3x12x64xf32>) -> tensor<16x64xf32>
    %243 = stablehlo.transpose %242, dims = [1, 0] : (tensor<16x64xf32>) -> tensor<64x16xf32>
    %244 = stablehlo.dot_general %240, %arg8, contracting_dims = [2] x [1] : (tensor<3x12x16xf32>, tensor<64x16xf32>) -> tensor<3x12x64xf32>
    %245 = stablehlo.multiply %179, %244 : tensor<3x12x64xf32>
    %246 = stablehlo.multiply %244, %196 : tensor<3x12x64xf32>
    %247 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %248 = stablehlo.multiply %247, %245 : tensor<3x12x64xf32>
    %249 = stablehlo.multiply %248, %192 : tensor<3x12x64xf32>
    %250 = stablehlo.multiply %249, %190 : tensor<3x12x64xf32>
    %251 = stablehlo.add %249, %250 : tensor<3x12x64xf32>
    %252 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %253 = stablehlo.multiply %252, %251 : tensor<3x12x64xf32>
    %254 = stablehlo.add %246, %253 : tensor<3x12x64xf32>
    %255 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %256 = stablehlo.multiply %255, %253 : tensor<3x12x64xf32>
    %257 = stablehlo.multiply %256, %184 : tensor<3x12x64xf32>
    %258 = stablehlo.add %254, %257 : tensor<3x12x64xf32>
    %259 = stablehlo.dot_general %258, %178, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x64xf32>, tensor<3x12x16xf32>) -> tensor<64x16xf32>
    %260 = stablehlo.transpose %259, dims = [1, 0] : (tensor<64x16xf32>) -> tensor<16x64xf32>
    %261 = stablehlo.dot_general %258, %arg15, contracting_dims = [2] x [1] : (tensor<3x12x64xf32>, tensor<16x64xf32>) -> tensor<3x12x16xf32>
    %262 = stablehlo.reduce(%261 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %263 = stablehlo.reshape %262 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %264 = stablehlo.reduce(%263 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %265 = stablehlo.multiply %172, %261 : tensor<3x12x16xf32>
    %266 = stablehlo.reduce(%265 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %267 = stablehlo.reshape %266 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %268 = stablehlo.broadcast_in_dim %173, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %269 = stablehlo.multiply %261, %268 : tensor<3x12x16xf32>
    %270 = stablehlo.reduce(%267 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %271 = stablehlo.multiply %164, %269 : tensor<3x12x16xf32>
    %272 = stablehlo.reduce(%271 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %273 = stablehlo.reshape %272 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %274 = stablehlo.broadcast_in_dim %167, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %275 = stablehlo.multiply %269, %274 : tensor<3x12x16xf32>
    %276 = stablehlo.multiply %273, %170 : tensor<3x12x1xf32>
    %277 = stablehlo.negate %275 : tensor<3x12x16xf32>
    %278 = stablehlo.reduce(%277 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %279 = stablehlo.reshape %278 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %280 = stablehlo.add %240, %275 : tensor<3x12x16xf32>
    %281 = call @_var_4(%162#1, %162#2, %162#3, %276) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %282 = stablehlo.add %280, %281 : tensor<3x12x16xf32>
    %283 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %284 = stablehlo.divide %279, %283 : tensor<3x12x1xf32>
    %285 = stablehlo.reduce(%284 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %286 = stablehlo.broadcast_in_dim %285, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %287 = stablehlo.add %282, %286 : tensor<3x12x16xf32>
    %288 = stablehlo.dot_general %287, %155, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x16xf32>, tensor<3x12x16xf32>) -> tensor<16x16xf32>
    %289 = stablehlo.transpose %288, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %290 = stablehlo.dot_general %287, %arg11, contracting_dims = [2] x [1] : (tensor<3x12x16xf32>, tensor<16x16xf32>) -> tensor<3x12x16xf32>
    %291 = stablehlo.reshape %290 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %292 = stablehlo.transpose %291, dims = [0, 2, 3, 1] : (tensor<3x12x2x8xf32>) -> tensor<3x2x8x12xf32>
    %293 = stablehlo.dot_general %292, %132, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3] : (tensor<3x2x8x12xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x12xf32>
    %294 = stablehlo.dot_general %292, %149, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<3x2x8x12xf32>, tensor<3x2x12x12xf32>) -> tensor<3x2x8x12xf32>
    %295 = stablehlo.transpose %294, dims = [0, 3, 1, 2] : (tensor<3x2x8x12xf32>) -> tensor<3x12x2x8xf32>
    %296 = stablehlo.broadcast_in_dim %152, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %297 = stablehlo.multiply %293, %296 : tensor<3x2x12x12xf32>
    %298 = stablehlo.multiply %297, %145 : tensor<3x2x12x12xf32>
    %299 = stablehlo.reduce(%298 init: %cst_26) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %300 = stablehlo.reshape %299 : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %301 = stablehlo.negate %300 : tensor<3x2x12x1xf32>
    %302 = stablehlo.broadcast_in_dim %147, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %303 = stablehlo.divide %293, %302 : tensor<3x2x12x12xf32>
    %304 = stablehlo.reduce(%301 init: %cst_26) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x1xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %305 = stablehlo.broadcast_in_dim %304, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x12xf32>
    %306 = stablehlo.add %303, %305 : tensor<3x2x12x12xf32>
    %307 = stablehlo.multiply %306, %145 : tensor<3x2x12x12xf32>
    %308 = call @_where_6(%138#1, %307) : (tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xf32>
    %309 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<3x2x12x12xf32>
    %310 = stablehlo.divide %308, %309 : tensor<3x2x12x12xf32>
    %311 = stablehlo.dot_general %310, %130, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1] : (tensor<3x2x12x12xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x8xf32>
    %312 = stablehlo.transpose %311, dims = [0, 2, 1, 3] : (tensor<3x2x12x8xf32>) -> tensor<3x12x2x8xf32>
    %313 = stablehlo.dot_general %310, %131, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<3x2x12x12xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x8xf32>
    %314 = stablehlo.transpose %313, dims = [0, 2, 1, 3] : (tensor<3x2x12x8xf32>) -> tensor<3x12x2x8xf32>
    %315 = stablehlo.reshape %295 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %316 = stablehlo.reshape %312 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %317 = stablehlo.reshape %314 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %318 = stablehlo.concatenate %317, %316, %315, dim = 2 : (tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>) -> tensor<3x12x48xf32>
    %319 = stablehlo.dot_general %318, %125, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x48xf32>, tensor<3x12x16xf32>) -> tensor<48x16xf32>
    %320 = stablehlo.transpose %319, dims = [1, 0] : (tensor<48x16xf32>) -> tensor<16x48xf32>
    %321 = stablehlo.dot_general %318, %arg12, contracting_dims = [2] x [1] : (tensor<3x12x48xf32>, tensor<16x48xf32>) -> tensor<3x12x16xf32>
    %322 = stablehlo.reduce(%321 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %323 = stablehlo.reshape %322 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %324 = stablehlo.reduce(%323 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %325 = stablehlo.multiply %119, %321 : tensor<3x12x16xf32>
    %326 = stablehlo.reduce(%325 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %327 = stablehlo.reshape %326 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %328 = stablehlo.broadcast_in_dim %120, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %329 = stablehlo.multiply %321, %328 : tensor<3x12x16xf32>
    %330 = stablehlo.reduce(%327 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %331 = stablehlo.multiply %111, %329 : tensor<3x12x16xf32>
    %332 = stablehlo.reduce(%331 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %333 = stablehlo.reshape %332 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %334 = stablehlo.broadcast_in_dim %114, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %335 = stablehlo.multiply %329, %334 : tensor<3x12x16xf32>
    %336 = stablehlo.multiply %333, %117 : tensor<3x12x1xf32>
    %337 = stablehlo.negate %335 : tensor<3x12x16xf32>
    %338 = stablehlo.reduce(%337 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %339 = stablehlo.reshape %338 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %340 = stablehlo.add %287, %335 : tensor<3x12x16xf32>
    %341 = call @_var_4(%109#1, %109#2, %109#3, %336) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %342 = stablehlo.add %340, %341 : tensor<3x12x16xf32>
    %343 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %344 = stablehlo.divide %339, %343 : tensor<3x12x1xf32>
    %345 = stablehlo.reduce(%344 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %346 = stablehlo.broadcast_in_dim %345, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %347 = stablehlo.add %342, %346 : tensor<3x12x16xf32>
    %348 = stablehlo.dot_general %347, %102, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x16xf32>, tensor<3x12x64xf32>) -> tensor<16x64xf32>
    %349 = stablehlo.transpose %348, dims = [1, 0] : (tensor<16x64xf32>) -> tensor<64x16xf32>
    %350 = stablehlo.dot_general %347, %arg0, contracting_dims = [2] x [1] : (tensor<3x12x16xf32>, tensor<64x16xf32>) -> tensor<3x12x64xf32>
    %351 = stablehlo.multiply %84, %350 : tensor<3x12x64xf32>
    %352 = stablehlo.multiply %350, %101 : tensor<3x12x64xf32>
    %353 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %354 = stablehlo.multiply %353, %351 : tensor<3x12x64xf32>
    %355 = stablehlo.multiply %354, %97 : tensor<3x12x64xf32>
    %356 = stablehlo.multiply %355, %95 : tensor<3x12x64xf32>
    %357 = stablehlo.add %355, %356 : tensor<3x12x64xf32>
    %358 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %359 = stablehlo.multiply %358, %357 : tensor<3x12x64xf32>
    %360 = stablehlo.add %352, %359 : tensor<3x12x64xf32>
    %361 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<3x12x64xf32>
    %362 = stablehlo.multiply %361, %359 : tensor<3x12x64xf32>
    %363 = stablehlo.multiply %362, %89 : tensor<3x12x64xf32>
    %364 = stablehlo.add %360, %363 : tensor<3x12x64xf32>
    %365 = stablehlo.dot_general %364, %83, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x64xf32>, tensor<3x12x16xf32>) -> tensor<64x16xf32>
    %366 = stablehlo.transpose %365, dims = [1, 0] : (tensor<64x16xf32>) -> tensor<16x64xf32>
    %367 = stablehlo.dot_general %364, %arg7, contracting_dims = [2] x [1] : (tensor<3x12x64xf32>, tensor<16x64xf32>) -> tensor<3x12x16xf32>
    %368 = stablehlo.reduce(%367 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %369 = stablehlo.reshape %368 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %370 = stablehlo.reduce(%369 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %371 = stablehlo.multiply %77, %367 : tensor<3x12x16xf32>
    %372 = stablehlo.reduce(%371 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %373 = stablehlo.reshape %372 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %374 = stablehlo.broadcast_in_dim %78, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %375 = stablehlo.multiply %367, %374 : tensor<3x12x16xf32>
    %376 = stablehlo.reduce(%373 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %377 = stablehlo.multiply %69, %375 : tensor<3x12x16xf32>
    %378 = stablehlo.reduce(%377 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %379 = stablehlo.reshape %378 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %380 = stablehlo.broadcast_in_dim %72, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %381 = stablehlo.multiply %375, %380 : tensor<3x12x16xf32>
    %382 = stablehlo.multiply %379, %75 : tensor<3x12x1xf32>
    %383 = stablehlo.negate %381 : tensor<3x12x16xf32>
    %384 = stablehlo.reduce(%383 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %385 = stablehlo.reshape %384 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %386 = stablehlo.add %347, %381 : tensor<3x12x16xf32>
    %387 = call @_var_4(%67#1, %67#2, %67#3, %382) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %388 = stablehlo.add %386, %387 : tensor<3x12x16xf32>
    %389 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %390 = stablehlo.divide %385, %389 : tensor<3x12x1xf32>
    %391 = stablehlo.reduce(%390 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %392 = stablehlo.broadcast_in_dim %391, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %393 = stablehlo.add %388, %392 : tensor<3x12x16xf32>
    %394 = stablehlo.dot_general %393, %60, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x16xf32>, tensor<3x12x16xf32>) -> tensor<16x16xf32>
    %395 = stablehlo.transpose %394, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %396 = stablehlo.dot_general %393, %arg3, contracting_dims = [2] x [1] : (tensor<3x12x16xf32>, tensor<16x16xf32>) -> tensor<3x12x16xf32>
    %397 = stablehlo.reshape %396 : (tensor<3x12x16xf32>) -> tensor<3x12x2x8xf32>
    %398 = stablehlo.transpose %397, dims = [0, 2, 3, 1] : (tensor<3x12x2x8xf32>) -> tensor<3x2x8x12xf32>
    %399 = stablehlo.dot_general %398, %37, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3] : (tensor<3x2x8x12xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x12xf32>
    %400 = stablehlo.dot_general %398, %54, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<3x2x8x12xf32>, tensor<3x2x12x12xf32>) -> tensor<3x2x8x12xf32>
    %401 = stablehlo.transpose %400, dims = [0, 3, 1, 2] : (tensor<3x2x8x12xf32>) -> tensor<3x12x2x8xf32>
    %402 = stablehlo.broadcast_in_dim %57, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %403 = stablehlo.multiply %399, %402 : tensor<3x2x12x12xf32>
    %404 = stablehlo.multiply %403, %50 : tensor<3x2x12x12xf32>
    %405 = stablehlo.reduce(%404 init: %cst_26) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x12xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %406 = stablehlo.reshape %405 : (tensor<3x2x12xf32>) -> tensor<3x2x12x1xf32>
    %407 = stablehlo.negate %406 : tensor<3x2x12x1xf32>
    %408 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2, 3] : (tensor<3x2x12x1xf32>) -> tensor<3x2x12x12xf32>
    %409 = stablehlo.divide %399, %408 : tensor<3x2x12x12xf32>
    %410 = stablehlo.reduce(%407 init: %cst_26) applies stablehlo.add across dimensions = [3] : (tensor<3x2x12x1xf32>, tensor<f32>) -> tensor<3x2x12xf32>
    %411 = stablehlo.broadcast_in_dim %410, dims = [0, 1, 2] : (tensor<3x2x12xf32>) -> tensor<3x2x12x12xf32>
    %412 = stablehlo.add %409, %411 : tensor<3x2x12x12xf32>
    %413 = stablehlo.multiply %412, %50 : tensor<3x2x12x12xf32>
    %414 = call @_where_6(%43#1, %413) : (tensor<3x2x12x12xi1>, tensor<3x2x12x12xf32>) -> tensor<3x2x12x12xf32>
    %415 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<3x2x12x12xf32>
    %416 = stablehlo.divide %414, %415 : tensor<3x2x12x12xf32>
    %417 = stablehlo.dot_general %416, %35, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1] : (tensor<3x2x12x12xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x8xf32>
    %418 = stablehlo.transpose %417, dims = [0, 2, 1, 3] : (tensor<3x2x12x8xf32>) -> tensor<3x12x2x8xf32>
    %419 = stablehlo.dot_general %416, %36, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<3x2x12x12xf32>, tensor<3x12x2x8xf32>) -> tensor<3x2x12x8xf32>
    %420 = stablehlo.transpose %419, dims = [0, 2, 1, 3] : (tensor<3x2x12x8xf32>) -> tensor<3x12x2x8xf32>
    %421 = stablehlo.reshape %401 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %422 = stablehlo.reshape %418 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %423 = stablehlo.reshape %420 : (tensor<3x12x2x8xf32>) -> tensor<3x12x16xf32>
    %424 = stablehlo.concatenate %423, %422, %421, dim = 2 : (tensor<3x12x16xf32>, tensor<3x12x16xf32>, tensor<3x12x16xf32>) -> tensor<3x12x48xf32>
    %425 = stablehlo.dot_general %424, %30, contracting_dims = [0, 1] x [0, 1] : (tensor<3x12x48xf32>, tensor<3x12x16xf32>) -> tensor<48x16xf32>
    %426 = stablehlo.transpose %425, dims = [1, 0] : (tensor<48x16xf32>) -> tensor<16x48xf32>
    %427 = stablehlo.dot_general %424, %arg4, contracting_dims = [2] x [1] : (tensor<3x12x48xf32>, tensor<16x48xf32>) -> tensor<3x12x16xf32>
    %428 = stablehlo.reduce(%427 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %429 = stablehlo.reshape %428 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %430 = stablehlo.reduce(%429 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %431 = stablehlo.multiply %24, %427 : tensor<3x12x16xf32>
    %432 = stablehlo.reduce(%431 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<16xf32>
    %433 = stablehlo.reshape %432 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %434 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<3x12x16xf32>
    %435 = stablehlo.multiply %427, %434 : tensor<3x12x16xf32>
    %436 = stablehlo.reduce(%433 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %437 = stablehlo.multiply %16, %435 : tensor<3x12x16xf32>
    %438 = stablehlo.reduce(%437 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %439 = stablehlo.reshape %438 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %440 = stablehlo.broadcast_in_dim %19, dims = [0, 1, 2] : (tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %441 = stablehlo.multiply %435, %440 : tensor<3x12x16xf32>
    %442 = stablehlo.multiply %439, %22 : tensor<3x12x1xf32>
    %443 = stablehlo.negate %441 : tensor<3x12x16xf32>
    %444 = stablehlo.reduce(%443 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<3x12xf32>
    %445 = stablehlo.reshape %444 : (tensor<3x12xf32>) -> tensor<3x12x1xf32>
    %446 = stablehlo.add %393, %441 : tensor<3x12x16xf32>
    %447 = call @_var_4(%14#1, %14#2, %14#3, %442) : (tensor<3x12x16xf32>, tensor<f32>, tensor<i1>, tensor<3x12x1xf32>) -> tensor<3x12x16xf32>
    %448 = stablehlo.add %446, %447 : tensor<3x12x16xf32>
    %449 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<3x12x1xf32>
    %450 = stablehlo.divide %445, %449 : tensor<3x12x1xf32>
    %451 = stablehlo.reduce(%450 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<3x12x1xf32>, tensor<f32>) -> tensor<3x12xf32>
    %452 = stablehlo.broadcast_in_dim %451, dims = [0, 1] : (tensor<3x12xf32>) -> tensor<3x12x16xf32>
    %453 = stablehlo.add %448, %452 : tensor<3x12x16xf32>
    %454 = stablehlo.reduce(%453 init: %cst_26) applies stablehlo.add across dimensions = [0] : (tensor<3x12x16xf32>, tensor<f32>) -> tensor<12x16xf32>
    %455 = stablehlo.reshape %454 : (tensor<12x16xf32>) -> tensor<1x12x16xf32>
    %456 = stablehlo.reduce(%455 init: %cst_26) applies stablehlo.add across dimensions = [0] : (tensor<1x12x16xf32>, tensor<f32>) -> tensor<12x16xf32>
    %457 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %458 = "stablehlo.scatter"(%457, %5, %453) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
    ^bb0(%arg58: tensor<f32>, %arg59: tensor<f32>):
      %1180 = stablehlo.add %arg58, %arg59 : tensor<f32>
      stablehlo.return %1180 : tensor<f32>
    }) : (tensor<31x16xf32>, tensor<3x12x1xi32>, tensor<3x12x16xf32>) -> tensor<31x16xf32>
    %459 = stablehlo.add %241, %458 : tensor<31x16xf32>
    %460 = stablehlo.multiply %349, %349 : tensor<64x16xf32>
    %461 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %462 = stablehlo.multiply %461, %461 : tensor<64x16xf32>
    %463 = stablehlo.add %460, %462 : tensor<64x16xf32>
    %464 = stablehlo.multiply %430, %430 : tensor<16xf32>
    %465 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %466 = stablehlo.multiply %465, %465 : tensor<16xf32>
    %467 = stablehlo.add %464, %466 : tensor<16xf32>
    %468 = stablehlo.multiply %370, %370 : tensor<16xf32>
    %469 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %470 = stablehlo.multiply %469, %469 : tensor<16xf32>
    %471 = stablehlo.add %468, %470 : tensor<16xf32>
    %472 = stablehlo.multiply %395, %395 : tensor<16x16xf32>
    %473 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %474 = stablehlo.multiply %473, %473 : tensor<16x16xf32>
    %475 = stablehlo.add %472, %474 : tensor<16x16xf32>
    %476 = stablehlo.multiply %426, %426 : tensor<16x48xf32>
    %477 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %478 = stablehlo.multiply %477, %477 : tensor<16x48xf32>
    %479 = stablehlo.add %476, %478 : tensor<16x48xf32>
    %480 = stablehlo.multiply %436, %436 : tensor<16xf32>
    %481 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %482 = stablehlo.multiply %481, %481 : tensor<16xf32>
    %483 = stablehlo.add %480, %482 : tensor<16xf32>
    %484 = stablehlo.multiply %376, %376 : tensor<16xf32>
    %485 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %486 = stablehlo.multiply %485, %485 : tensor<16xf32>
    %487 = stablehlo.add %484, %486 : tensor<16xf32>
    %488 = stablehlo.multiply %366, %366 : tensor<16x64xf32>
    %489 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %490 = stablehlo.multiply %489, %489 : tensor<16x64xf32>
    %491 = stablehlo.add %488, %490 : tensor<16x64xf32>
    %492 = stablehlo.multiply %243, %243 : tensor<64x16xf32>
    %493 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %494 = stablehlo.multiply %493, %493 : tensor<64x16xf32>
    %495 = stablehlo.add %492, %494 : tensor<64x16xf32>
    %496 = stablehlo.multiply %324, %324 : tensor<16xf32>
    %497 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %498 = stablehlo.multiply %497, %497 : tensor<16xf32>
    %499 = stablehlo.add %496, %498 : tensor<16xf32>
    %500 = stablehlo.multiply %264, %264 : tensor<16xf32>
    %501 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %502 = stablehlo.multiply %501, %501 : tensor<16xf32>
    %503 = stablehlo.add %500, %502 : tensor<16xf32>
    %504 = stablehlo.multiply %289, %289 : tensor<16x16xf32>
    %505 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %506 = stablehlo.multiply %505, %505 : tensor<16x16xf32>
    %507 = stablehlo.add %504, %506 : tensor<16x16xf32>
    %508 = stablehlo.multiply %320, %320 : tensor<16x48xf32>
    %509 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %510 = stablehlo.multiply %509, %509 : tensor<16x48xf32>
    %511 = stablehlo.add %508, %510 : tensor<16x48xf32>
    %512 = stablehlo.multiply %330, %330 : tensor<16xf32>
    %513 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %514 = stablehlo.multiply %513, %513 : tensor<16xf32>
    %515 = stablehlo.add %512, %514 : tensor<16xf32>
    %516 = stablehlo.multiply %270, %270 : tensor<16xf32>
    %517 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %518 = stablehlo.multiply %517, %517 : tensor<16xf32>
    %519 = stablehlo.add %516, %518 : tensor<16xf32>
    %520 = stablehlo.multiply %260, %260 : tensor<16x64xf32>
    %521 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %522 = stablehlo.multiply %521, %521 : tensor<16x64xf32>
    %523 = stablehlo.add %520, %522 : tensor<16x64xf32>
    %524 = stablehlo.multiply %456, %456 : tensor<12x16xf32>
    %525 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %526 = stablehlo.multiply %525, %525 : tensor<12x16xf32>
    %527 = stablehlo.add %524, %526 : tensor<12x16xf32>
    %528 = stablehlo.multiply %459, %459 : tensor<31x16xf32>
    %529 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %530 = stablehlo.multiply %529, %529 : tensor<31x16xf32>
    %531 = stablehlo.add %528, %530 : tensor<31x16xf32>
    %532 = stablehlo.reduce(%463 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x16xf32>, tensor<f32>) -> tensor<f32>
    %533 = stablehlo.reduce(%467 init: %cst_26) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %534 = stablehlo.reduce(%471 init: %cst_26) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %535 = stablehlo.reduce(%475 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>
    %536 = stablehlo.reduce(%479 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x48xf32>, tensor<f32>) -> tensor<f32>
    %537 = stablehlo.reduce(%483 init: %cst_26) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %538 = stablehlo.reduce(%487 init: %cst_26) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %539 = stablehlo.reduce(%491 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x64xf32>, tensor<f32>) -> tensor<f32>
    %540 = stablehlo.reduce(%495 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x16xf32>, tensor<f32>) -> tensor<f32>
    %541 = stablehlo.reduce(%499 init: %cst_26) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %542 = stablehlo.reduce(%503 init: %cst_26) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %543 = stablehlo.reduce(%507 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>
    %544 = stablehlo.reduce(%511 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x48xf32>, tensor<f32>) -> tensor<f32>
    %545 = stablehlo.reduce(%515 init: %cst_26) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %546 = stablehlo.reduce(%519 init: %cst_26) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %547 = stablehlo.reduce(%523 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x64xf32>, tensor<f32>) -> tensor<f32>
    %548 = stablehlo.reduce(%527 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<12x16xf32>, tensor<f32>) -> tensor<f32>
    %549 = stablehlo.reduce(%531 init: %cst_26) applies stablehlo.add across dimensions = [0, 1] : (tensor<31x16xf32>, tensor<f32>) -> tensor<f32>
    %550 = stablehlo.add %cst_26, %532 : tensor<f32>
    %551 = stablehlo.add %550, %533 : tensor<f32>
    %552 = stablehlo.add %551, %534 : tensor<f32>
    %553 = stablehlo.add %552, %535 : tensor<f32>
    %554 = stablehlo.add %553, %536 : tensor<f32>
    %555 = stablehlo.add %554, %537 : tensor<f32>
    %556 = stablehlo.add %555, %538 : tensor<f32>
    %557 = stablehlo.add %556, %539 : tensor<f32>
    %558 = stablehlo.add %557, %540 : tensor<f32>
    %559 = stablehlo.add %558, %541 : tensor<f32>
    %560 = stablehlo.add %559, %542 : tensor<f32>
    %561 = stablehlo.add %560, %543 : tensor<f32>
    %562 = stablehlo.add %561, %544 : tensor<f32>
    %563 = stablehlo.add %562, %545 : tensor<f32>
    %564 = stablehlo.add %563, %546 : tensor<f32>
    %565 = stablehlo.add %564, %547 : tensor<f32>
    %566 = stablehlo.add %565, %548 : tensor<f32>
    %567 = stablehlo.add %566, %549 : tensor<f32>
    %568 = stablehlo.sqrt %567 : tensor<f32>
    %569 = stablehlo.compare LT, %568, %cst_18, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %570 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %571 = stablehlo.divide %349, %570 : tensor<64x16xf32>
    %572 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %573 = stablehlo.multiply %571, %572 : tensor<64x16xf32>
    %574 = stablehlo.select %569, %349, %573 : tensor<i1>, tensor<64x16xf32>
    %575 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %576 = stablehlo.divide %430, %575 : tensor<16xf32>
    %577 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %578 = stablehlo.multiply %576, %577 : tensor<16xf32>
    %579 = stablehlo.select %569, %430, %578 : tensor<i1>, tensor<16xf32>
    %580 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %581 = stablehlo.divide %370, %580 : tensor<16xf32>
    %582 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %583 = stablehlo.multiply %581, %582 : tensor<16xf32>
    %584 = stablehlo.select %569, %370, %583 : tensor<i1>, tensor<16xf32>
    %585 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %586 = stablehlo.divide %395, %585 : tensor<16x16xf32>
    %587 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %588 = stablehlo.multiply %586, %587 : tensor<16x16xf32>
    %589 = stablehlo.select %569, %395, %588 : tensor<i1>, tensor<16x16xf32>
    %590 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %591 = stablehlo.divide %426, %590 : tensor<16x48xf32>
    %592 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %593 = stablehlo.multiply %591, %592 : tensor<16x48xf32>
    %594 = stablehlo.select %569, %426, %593 : tensor<i1>, tensor<16x48xf32>
    %595 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %596 = stablehlo.divide %436, %595 : tensor<16xf32>
    %597 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %598 = stablehlo.multiply %596, %597 : tensor<16xf32>
    %599 = stablehlo.select %569, %436, %598 : tensor<i1>, tensor<16xf32>
    %600 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %601 = stablehlo.divide %376, %600 : tensor<16xf32>
    %602 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %603 = stablehlo.multiply %601, %602 : tensor<16xf32>
    %604 = stablehlo.select %569, %376, %603 : tensor<i1>, tensor<16xf32>
    %605 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %606 = stablehlo.divide %366, %605 : tensor<16x64xf32>
    %607 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %608 = stablehlo.multiply %606, %607 : tensor<16x64xf32>
    %609 = stablehlo.select %569, %366, %608 : tensor<i1>, tensor<16x64xf32>
    %610 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %611 = stablehlo.divide %243, %610 : tensor<64x16xf32>
    %612 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %613 = stablehlo.multiply %611, %612 : tensor<64x16xf32>
    %614 = stablehlo.select %569, %243, %613 : tensor<i1>, tensor<64x16xf32>
    %615 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %616 = stablehlo.divide %324, %615 : tensor<16xf32>
    %617 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %618 = stablehlo.multiply %616, %617 : tensor<16xf32>
    %619 = stablehlo.select %569, %324, %618 : tensor<i1>, tensor<16xf32>
    %620 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %621 = stablehlo.divide %264, %620 : tensor<16xf32>
    %622 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %623 = stablehlo.multiply %621, %622 : tensor<16xf32>
    %624 = stablehlo.select %569, %264, %623 : tensor<i1>, tensor<16xf32>
    %625 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %626 = stablehlo.divide %289, %625 : tensor<16x16xf32>
    %627 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %628 = stablehlo.multiply %626, %627 : tensor<16x16xf32>
    %629 = stablehlo.select %569, %289, %628 : tensor<i1>, tensor<16x16xf32>
    %630 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %631 = stablehlo.divide %320, %630 : tensor<16x48xf32>
    %632 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %633 = stablehlo.multiply %631, %632 : tensor<16x48xf32>
    %634 = stablehlo.select %569, %320, %633 : tensor<i1>, tensor<16x48xf32>
    %635 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %636 = stablehlo.divide %330, %635 : tensor<16xf32>
    %637 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %638 = stablehlo.multiply %636, %637 : tensor<16xf32>
    %639 = stablehlo.select %569, %330, %638 : tensor<i1>, tensor<16xf32>
    %640 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %641 = stablehlo.divide %270, %640 : tensor<16xf32>
    %642 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %643 = stablehlo.multiply %641, %642 : tensor<16xf32>
    %644 = stablehlo.select %569, %270, %643 : tensor<i1>, tensor<16xf32>
    %645 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %646 = stablehlo.divide %260, %645 : tensor<16x64xf32>
    %647 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %648 = stablehlo.multiply %646, %647 : tensor<16x64xf32>
    %649 = stablehlo.select %569, %260, %648 : tensor<i1>, tensor<16x64xf32>
    %650 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %651 = stablehlo.divide %456, %650 : tensor<12x16xf32>
    %652 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %653 = stablehlo.multiply %651, %652 : tensor<12x16xf32>
    %654 = stablehlo.select %569, %456, %653 : tensor<i1>, tensor<12x16xf32>
    %655 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %656 = stablehlo.divide %459, %655 : tensor<31x16xf32>
    %657 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %658 = stablehlo.multiply %656, %657 : tensor<31x16xf32>
    %659 = stablehlo.select %569, %459, %658 : tensor<i1>, tensor<31x16xf32>
    %660 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %661 = stablehlo.multiply %660, %574 : tensor<64x16xf32>
    %662 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %663 = stablehlo.multiply %662, %arg19 : tensor<64x16xf32>
    %664 = stablehlo.add %661, %663 : tensor<64x16xf32>
    %665 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %666 = stablehlo.multiply %665, %579 : tensor<16xf32>
    %667 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %668 = stablehlo.multiply %667, %arg20 : tensor<16xf32>
    %669 = stablehlo.add %666, %668 : tensor<16xf32>
    %670 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %671 = stablehlo.multiply %670, %584 : tensor<16xf32>
    %672 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %673 = stablehlo.multiply %672, %arg21 : tensor<16xf32>
    %674 = stablehlo.add %671, %673 : tensor<16xf32>
    %675 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %676 = stablehlo.multiply %675, %589 : tensor<16x16xf32>
    %677 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %678 = stablehlo.multiply %677, %arg22 : tensor<16x16xf32>
    %679 = stablehlo.add %676, %678 : tensor<16x16xf32>
    %680 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %681 = stablehlo.multiply %680, %594 : tensor<16x48xf32>
    %682 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %683 = stablehlo.multiply %682, %arg23 : tensor<16x48xf32>
    %684 = stablehlo.add %681, %683 : tensor<16x48xf32>
    %685 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %686 = stablehlo.multiply %685, %599 : tensor<16xf32>
    %687 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %688 = stablehlo.multiply %687, %arg24 : tensor<16xf32>
    %689 = stablehlo.add %686, %688 : tensor<16xf32>
    %690 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %691 = stablehlo.multiply %690, %604 : tensor<16xf32>
    %692 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %693 = stablehlo.multiply %692, %arg25 : tensor<16xf32>
    %694 = stablehlo.add %691, %693 : tensor<16xf32>
    %695 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %696 = stablehlo.multiply %695, %609 : tensor<16x64xf32>
    %697 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %698 = stablehlo.multiply %697, %arg26 : tensor<16x64xf32>
    %699 = stablehlo.add %696, %698 : tensor<16x64xf32>
    %700 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %701 = stablehlo.multiply %700, %614 : tensor<64x16xf32>
    %702 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %703 = stablehlo.multiply %702, %arg27 : tensor<64x16xf32>
    %704 = stablehlo.add %701, %703 : tensor<64x16xf32>
    %705 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %706 = stablehlo.multiply %705, %619 : tensor<16xf32>
    %707 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %708 = stablehlo.multiply %707, %arg28 : tensor<16xf32>
    %709 = stablehlo.add %706, %708 : tensor<16xf32>
    %710 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %711 = stablehlo.multiply %710, %624 : tensor<16xf32>
    %712 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %713 = stablehlo.multiply %712, %arg29 : tensor<16xf32>
    %714 = stablehlo.add %711, %713 : tensor<16xf32>
    %715 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %716 = stablehlo.multiply %715, %629 : tensor<16x16xf32>
    %717 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %718 = stablehlo.multiply %717, %arg30 : tensor<16x16xf32>
    %719 = stablehlo.add %716, %718 : tensor<16x16xf32>
    %720 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %721 = stablehlo.multiply %720, %634 : tensor<16x48xf32>
    %722 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %723 = stablehlo.multiply %722, %arg31 : tensor<16x48xf32>
    %724 = stablehlo.add %721, %723 : tensor<16x48xf32>
    %725 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %726 = stablehlo.multiply %725, %639 : tensor<16xf32>
    %727 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %728 = stablehlo.multiply %727, %arg32 : tensor<16xf32>
    %729 = stablehlo.add %726, %728 : tensor<16xf32>
    %730 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %731 = stablehlo.multiply %730, %644 : tensor<16xf32>
    %732 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %733 = stablehlo.multiply %732, %arg33 : tensor<16xf32>
    %734 = stablehlo.add %731, %733 : tensor<16xf32>
    %735 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %736 = stablehlo.multiply %735, %649 : tensor<16x64xf32>
    %737 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %738 = stablehlo.multiply %737, %arg34 : tensor<16x64xf32>
    %739 = stablehlo.add %736, %738 : tensor<16x64xf32>
    %740 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %741 = stablehlo.multiply %740, %654 : tensor<12x16xf32>
    %742 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %743 = stablehlo.multiply %742, %arg35 : tensor<12x16xf32>
    %744 = stablehlo.add %741, %743 : tensor<12x16xf32>
    %745 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %746 = stablehlo.multiply %745, %659 : tensor<31x16xf32>
    %747 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %748 = stablehlo.multiply %747, %arg36 : tensor<31x16xf32>
    %749 = stablehlo.add %746, %748 : tensor<31x16xf32>
    %750 = stablehlo.multiply %574, %574 : tensor<64x16xf32>
    %751 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %752 = stablehlo.multiply %751, %750 : tensor<64x16xf32>
    %753 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %754 = stablehlo.multiply %753, %arg37 : tensor<64x16xf32>
    %755 = stablehlo.add %752, %754 : tensor<64x16xf32>
    %756 = stablehlo.multiply %579, %579 : tensor<16xf32>
    %757 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %758 = stablehlo.multiply %757, %756 : tensor<16xf32>
    %759 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %760 = stablehlo.multiply %759, %arg38 : tensor<16xf32>
    %761 = stablehlo.add %758, %760 : tensor<16xf32>
    %762 = stablehlo.multiply %584, %584 : tensor<16xf32>
    %763 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %764 = stablehlo.multiply %763, %762 : tensor<16xf32>
    %765 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %766 = stablehlo.multiply %765, %arg39 : tensor<16xf32>
    %767 = stablehlo.add %764, %766 : tensor<16xf32>
    %768 = stablehlo.multiply %589, %589 : tensor<16x16xf32>
    %769 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %770 = stablehlo.multiply %769, %768 : tensor<16x16xf32>
    %771 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %772 = stablehlo.multiply %771, %arg40 : tensor<16x16xf32>
    %773 = stablehlo.add %770, %772 : tensor<16x16xf32>
    %774 = stablehlo.multiply %594, %594 : tensor<16x48xf32>
    %775 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %776 = stablehlo.multiply %775, %774 : tensor<16x48xf32>
    %777 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %778 = stablehlo.multiply %777, %arg41 : tensor<16x48xf32>
    %779 = stablehlo.add %776, %778 : tensor<16x48xf32>
    %780 = stablehlo.multiply %599, %599 : tensor<16xf32>
    %781 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %782 = stablehlo.multiply %781, %780 : tensor<16xf32>
    %783 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %784 = stablehlo.multiply %783, %arg42 : tensor<16xf32>
    %785 = stablehlo.add %782, %784 : tensor<16xf32>
    %786 = stablehlo.multiply %604, %604 : tensor<16xf32>
    %787 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %788 = stablehlo.multiply %787, %786 : tensor<16xf32>
    %789 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %790 = stablehlo.multiply %789, %arg43 : tensor<16xf32>
    %791 = stablehlo.add %788, %790 : tensor<16xf32>
    %792 = stablehlo.multiply %609, %609 : tensor<16x64xf32>
    %793 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %794 = stablehlo.multiply %793, %792 : tensor<16x64xf32>
    %795 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %796 = stablehlo.multiply %795, %arg44 : tensor<16x64xf32>
    %797 = stablehlo.add %794, %796 : tensor<16x64xf32>
    %798 = stablehlo.multiply %614, %614 : tensor<64x16xf32>
    %799 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %800 = stablehlo.multiply %799, %798 : tensor<64x16xf32>
    %801 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %802 = stablehlo.multiply %801, %arg45 : tensor<64x16xf32>
    %803 = stablehlo.add %800, %802 : tensor<64x16xf32>
    %804 = stablehlo.multiply %619, %619 : tensor<16xf32>
    %805 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %806 = stablehlo.multiply %805, %804 : tensor<16xf32>
    %807 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %808 = stablehlo.multiply %807, %arg46 : tensor<16xf32>
    %809 = stablehlo.add %806, %808 : tensor<16xf32>
    %810 = stablehlo.multiply %624, %624 : tensor<16xf32>
    %811 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %812 = stablehlo.multiply %811, %810 : tensor<16xf32>
    %813 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %814 = stablehlo.multiply %813, %arg47 : tensor<16xf32>
    %815 = stablehlo.add %812, %814 : tensor<16xf32>
    %816 = stablehlo.multiply %629, %629 : tensor<16x16xf32>
    %817 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %818 = stablehlo.multiply %817, %816 : tensor<16x16xf32>
    %819 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %820 = stablehlo.multiply %819, %arg48 : tensor<16x16xf32>
    %821 = stablehlo.add %818, %820 : tensor<16x16xf32>
    %822 = stablehlo.multiply %634, %634 : tensor<16x48xf32>
    %823 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %824 = stablehlo.multiply %823, %822 : tensor<16x48xf32>
    %825 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %826 = stablehlo.multiply %825, %arg49 : tensor<16x48xf32>
    %827 = stablehlo.add %824, %826 : tensor<16x48xf32>
    %828 = stablehlo.multiply %639, %639 : tensor<16xf32>
    %829 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %830 = stablehlo.multiply %829, %828 : tensor<16xf32>
    %831 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %832 = stablehlo.multiply %831, %arg50 : tensor<16xf32>
    %833 = stablehlo.add %830, %832 : tensor<16xf32>
    %834 = stablehlo.multiply %644, %644 : tensor<16xf32>
    %835 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %836 = stablehlo.multiply %835, %834 : tensor<16xf32>
    %837 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %838 = stablehlo.multiply %837, %arg51 : tensor<16xf32>
    %839 = stablehlo.add %836, %838 : tensor<16xf32>
    %840 = stablehlo.multiply %649, %649 : tensor<16x64xf32>
    %841 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %842 = stablehlo.multiply %841, %840 : tensor<16x64xf32>
    %843 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %844 = stablehlo.multiply %843, %arg52 : tensor<16x64xf32>
    %845 = stablehlo.add %842, %844 : tensor<16x64xf32>
    %846 = stablehlo.multiply %654, %654 : tensor<12x16xf32>
    %847 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %848 = stablehlo.multiply %847, %846 : tensor<12x16xf32>
    %849 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %850 = stablehlo.multiply %849, %arg53 : tensor<12x16xf32>
    %851 = stablehlo.add %848, %850 : tensor<12x16xf32>
    %852 = stablehlo.multiply %659, %659 : tensor<31x16xf32>
    %853 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %854 = stablehlo.multiply %853, %852 : tensor<31x16xf32>
    %855 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %856 = stablehlo.multiply %855, %arg54 : tensor<31x16xf32>
    %857 = stablehlo.add %854, %856 : tensor<31x16xf32>
    %858 = stablehlo.compare LT, %arg18, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %859 = stablehlo.add %arg18, %c_7 : tensor<i32>
    %860 = call @_where_7(%858, %859, %c_8) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %861 = stablehlo.convert %860 : (tensor<i32>) -> tensor<f32>
    %862 = stablehlo.power %cst_11, %861 : tensor<f32>
    %863 = stablehlo.subtract %cst_18, %862 : tensor<f32>
    %864 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %865 = stablehlo.divide %664, %864 : tensor<64x16xf32>
    %866 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %867 = stablehlo.divide %669, %866 : tensor<16xf32>
    %868 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %869 = stablehlo.divide %674, %868 : tensor<16xf32>
    %870 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %871 = stablehlo.divide %679, %870 : tensor<16x16xf32>
    %872 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %873 = stablehlo.divide %684, %872 : tensor<16x48xf32>
    %874 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %875 = stablehlo.divide %689, %874 : tensor<16xf32>
    %876 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %877 = stablehlo.divide %694, %876 : tensor<16xf32>
    %878 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %879 = stablehlo.divide %699, %878 : tensor<16x64xf32>
    %880 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %881 = stablehlo.divide %704, %880 : tensor<64x16xf32>
    %882 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %883 = stablehlo.divide %709, %882 : tensor<16xf32>
    %884 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %885 = stablehlo.divide %714, %884 : tensor<16xf32>
    %886 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %887 = stablehlo.divide %719, %886 : tensor<16x16xf32>
    %888 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %889 = stablehlo.divide %724, %888 : tensor<16x48xf32>
    %890 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %891 = stablehlo.divide %729, %890 : tensor<16xf32>
    %892 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %893 = stablehlo.divide %734, %892 : tensor<16xf32>
    %894 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %895 = stablehlo.divide %739, %894 : tensor<16x64xf32>
    %896 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %897 = stablehlo.divide %744, %896 : tensor<12x16xf32>
    %898 = stablehlo.broadcast_in_dim %863, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %899 = stablehlo.divide %749, %898 : tensor<31x16xf32>
    %900 = stablehlo.convert %860 : (tensor<i32>) -> tensor<f32>
    %901 = stablehlo.power %cst_9, %900 : tensor<f32>
    %902 = stablehlo.subtract %cst_18, %901 : tensor<f32>
    %903 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %904 = stablehlo.divide %755, %903 : tensor<64x16xf32>
    %905 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %906 = stablehlo.divide %761, %905 : tensor<16xf32>
    %907 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %908 = stablehlo.divide %767, %907 : tensor<16xf32>
    %909 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %910 = stablehlo.divide %773, %909 : tensor<16x16xf32>
    %911 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %912 = stablehlo.divide %779, %911 : tensor<16x48xf32>
    %913 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %914 = stablehlo.divide %785, %913 : tensor<16xf32>
    %915 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %916 = stablehlo.divide %791, %915 : tensor<16xf32>
    %917 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %918 = stablehlo.divide %797, %917 : tensor<16x64xf32>
    %919 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %920 = stablehlo.divide %803, %919 : tensor<64x16xf32>
    %921 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %922 = stablehlo.divide %809, %921 : tensor<16xf32>
    %923 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %924 = stablehlo.divide %815, %923 : tensor<16xf32>
    %925 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %926 = stablehlo.divide %821, %925 : tensor<16x16xf32>
    %927 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %928 = stablehlo.divide %827, %927 : tensor<16x48xf32>
    %929 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %930 = stablehlo.divide %833, %929 : tensor<16xf32>
    %931 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %932 = stablehlo.divide %839, %931 : tensor<16xf32>
    %933 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %934 = stablehlo.divide %845, %933 : tensor<16x64xf32>
    %935 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %936 = stablehlo.divide %851, %935 : tensor<12x16xf32>
    %937 = stablehlo.broadcast_in_dim %902, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %938 = stablehlo.divide %857, %937 : tensor<31x16xf32>
    %939 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %940 = stablehlo.add %904, %939 : tensor<64x16xf32>
    %941 = stablehlo.sqrt %940 : tensor<64x16xf32>
    %942 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %943 = stablehlo.add %941, %942 : tensor<64x16xf32>
    %944 = stablehlo.divide %865, %943 : tensor<64x16xf32>
    %945 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %946 = stablehlo.add %906, %945 : tensor<16xf32>
    %947 = stablehlo.sqrt %946 : tensor<16xf32>
    %948 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %949 = stablehlo.add %947, %948 : tensor<16xf32>
    %950 = stablehlo.divide %867, %949 : tensor<16xf32>
    %951 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %952 = stablehlo.add %908, %951 : tensor<16xf32>
    %953 = stablehlo.sqrt %952 : tensor<16xf32>
    %954 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %955 = stablehlo.add %953, %954 : tensor<16xf32>
    %956 = stablehlo.divide %869, %955 : tensor<16xf32>
    %957 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %958 = stablehlo.add %910, %957 : tensor<16x16xf32>
    %959 = stablehlo.sqrt %958 : tensor<16x16xf32>
    %960 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %961 = stablehlo.add %959, %960 : tensor<16x16xf32>
    %962 = stablehlo.divide %871, %961 : tensor<16x16xf32>
    %963 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %964 = stablehlo.add %912, %963 : tensor<16x48xf32>
    %965 = stablehlo.sqrt %964 : tensor<16x48xf32>
    %966 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %967 = stablehlo.add %965, %966 : tensor<16x48xf32>
    %968 = stablehlo.divide %873, %967 : tensor<16x48xf32>
    %969 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %970 = stablehlo.add %914, %969 : tensor<16xf32>
    %971 = stablehlo.sqrt %970 : tensor<16xf32>
    %972 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %973 = stablehlo.add %971, %972 : tensor<16xf32>
    %974 = stablehlo.divide %875, %973 : tensor<16xf32>
    %975 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %976 = stablehlo.add %916, %975 : tensor<16xf32>
    %977 = stablehlo.sqrt %976 : tensor<16xf32>
    %978 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %979 = stablehlo.add %977, %978 : tensor<16xf32>
    %980 = stablehlo.divide %877, %979 : tensor<16xf32>
    %981 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %982 = stablehlo.add %918, %981 : tensor<16x64xf32>
    %983 = stablehlo.sqrt %982 : tensor<16x64xf32>
    %984 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %985 = stablehlo.add %983, %984 : tensor<16x64xf32>
    %986 = stablehlo.divide %879, %985 : tensor<16x64xf32>
    %987 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %988 = stablehlo.add %920, %987 : tensor<64x16xf32>
    %989 = stablehlo.sqrt %988 : tensor<64x16xf32>
    %990 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %991 = stablehlo.add %989, %990 : tensor<64x16xf32>
    %992 = stablehlo.divide %881, %991 : tensor<64x16xf32>
    %993 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %994 = stablehlo.add %922, %993 : tensor<16xf32>
    %995 = stablehlo.sqrt %994 : tensor<16xf32>
    %996 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %997 = stablehlo.add %995, %996 : tensor<16xf32>
    %998 = stablehlo.divide %883, %997 : tensor<16xf32>
    %999 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1000 = stablehlo.add %924, %999 : tensor<16xf32>
    %1001 = stablehlo.sqrt %1000 : tensor<16xf32>
    %1002 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1003 = stablehlo.add %1001, %1002 : tensor<16xf32>
    %1004 = stablehlo.divide %885, %1003 : tensor<16xf32>
    %1005 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %1006 = stablehlo.add %926, %1005 : tensor<16x16xf32>
    %1007 = stablehlo.sqrt %1006 : tensor<16x16xf32>
    %1008 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %1009 = stablehlo.add %1007, %1008 : tensor<16x16xf32>
    %1010 = stablehlo.divide %887, %1009 : tensor<16x16xf32>
    %1011 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %1012 = stablehlo.add %928, %1011 : tensor<16x48xf32>
    %1013 = stablehlo.sqrt %1012 : tensor<16x48xf32>
    %1014 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %1015 = stablehlo.add %1013, %1014 : tensor<16x48xf32>
    %1016 = stablehlo.divide %889, %1015 : tensor<16x48xf32>
    %1017 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1018 = stablehlo.add %930, %1017 : tensor<16xf32>
    %1019 = stablehlo.sqrt %1018 : tensor<16xf32>
    %1020 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1021 = stablehlo.add %1019, %1020 : tensor<16xf32>
    %1022 = stablehlo.divide %891, %1021 : tensor<16xf32>
    %1023 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1024 = stablehlo.add %932, %1023 : tensor<16xf32>
    %1025 = stablehlo.sqrt %1024 : tensor<16xf32>
    %1026 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1027 = stablehlo.add %1025, %1026 : tensor<16xf32>
    %1028 = stablehlo.divide %893, %1027 : tensor<16xf32>
    %1029 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %1030 = stablehlo.add %934, %1029 : tensor<16x64xf32>
    %1031 = stablehlo.sqrt %1030 : tensor<16x64xf32>
    %1032 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %1033 = stablehlo.add %1031, %1032 : tensor<16x64xf32>
    %1034 = stablehlo.divide %895, %1033 : tensor<16x64xf32>
    %1035 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %1036 = stablehlo.add %936, %1035 : tensor<12x16xf32>
    %1037 = stablehlo.sqrt %1036 : tensor<12x16xf32>
    %1038 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %1039 = stablehlo.add %1037, %1038 : tensor<12x16xf32>
    %1040 = stablehlo.divide %897, %1039 : tensor<12x16xf32>
    %1041 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %1042 = stablehlo.add %938, %1041 : tensor<31x16xf32>
    %1043 = stablehlo.sqrt %1042 : tensor<31x16xf32>
    %1044 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %1045 = stablehlo.add %1043, %1044 : tensor<31x16xf32>
    %1046 = stablehlo.divide %899, %1045 : tensor<31x16xf32>
    %1047 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %1048 = stablehlo.multiply %1047, %arg0 : tensor<64x16xf32>
    %1049 = stablehlo.add %944, %1048 : tensor<64x16xf32>
    %1050 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1051 = stablehlo.multiply %1050, %arg1 : tensor<16xf32>
    %1052 = stablehlo.add %950, %1051 : tensor<16xf32>
    %1053 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1054 = stablehlo.multiply %1053, %arg2 : tensor<16xf32>
    %1055 = stablehlo.add %956, %1054 : tensor<16xf32>
    %1056 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %1057 = stablehlo.multiply %1056, %arg3 : tensor<16x16xf32>
    %1058 = stablehlo.add %962, %1057 : tensor<16x16xf32>
    %1059 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %1060 = stablehlo.multiply %1059, %arg4 : tensor<16x48xf32>
    %1061 = stablehlo.add %968, %1060 : tensor<16x48xf32>
    %1062 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1063 = stablehlo.multiply %1062, %arg5 : tensor<16xf32>
    %1064 = stablehlo.add %974, %1063 : tensor<16xf32>
    %1065 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1066 = stablehlo.multiply %1065, %arg6 : tensor<16xf32>
    %1067 = stablehlo.add %980, %1066 : tensor<16xf32>
    %1068 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %1069 = stablehlo.multiply %1068, %arg7 : tensor<16x64xf32>
    %1070 = stablehlo.add %986, %1069 : tensor<16x64xf32>
    %1071 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %1072 = stablehlo.multiply %1071, %arg8 : tensor<64x16xf32>
    %1073 = stablehlo.add %992, %1072 : tensor<64x16xf32>
    %1074 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1075 = stablehlo.multiply %1074, %arg9 : tensor<16xf32>
    %1076 = stablehlo.add %998, %1075 : tensor<16xf32>
    %1077 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1078 = stablehlo.multiply %1077, %arg10 : tensor<16xf32>
    %1079 = stablehlo.add %1004, %1078 : tensor<16xf32>
    %1080 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %1081 = stablehlo.multiply %1080, %arg11 : tensor<16x16xf32>
    %1082 = stablehlo.add %1010, %1081 : tensor<16x16xf32>
    %1083 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %1084 = stablehlo.multiply %1083, %arg12 : tensor<16x48xf32>
    %1085 = stablehlo.add %1016, %1084 : tensor<16x48xf32>
    %1086 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1087 = stablehlo.multiply %1086, %arg13 : tensor<16xf32>
    %1088 = stablehlo.add %1022, %1087 : tensor<16xf32>
    %1089 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1090 = stablehlo.multiply %1089, %arg14 : tensor<16xf32>
    %1091 = stablehlo.add %1028, %1090 : tensor<16xf32>
    %1092 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %1093 = stablehlo.multiply %1092, %arg15 : tensor<16x64xf32>
    %1094 = stablehlo.add %1034, %1093 : tensor<16x64xf32>
    %1095 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %1096 = stablehlo.multiply %1095, %arg16 : tensor<12x16xf32>
    %1097 = stablehlo.add %1040, %1096 : tensor<12x16xf32>
    %1098 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %1099 = stablehlo.multiply %1098, %arg17 : tensor<31x16xf32>
    %1100 = stablehlo.add %1046, %1099 : tensor<31x16xf32>
    %1101 = stablehlo.subtract %arg55, %c_28 : tensor<i32>
    %1102 = call @clip(%1101, %c_28, %c) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %1103 = stablehlo.convert %1102 : (tensor<i32>) -> tensor<f32>
    %1104 = stablehlo.divide %1103, %cst_4 : tensor<f32>
    %1105 = stablehlo.subtract %cst_18, %1104 : tensor<f32>
    %1106 = stablehlo.multiply %cst_3, %1105 : tensor<f32>
    %1107 = stablehlo.add %1106, %cst_2 : tensor<f32>
    %1108 = stablehlo.compare LT, %arg55, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1109 = stablehlo.subtract %arg55, %c : tensor<i32>
    %1110 = stablehlo.convert %1109 : (tensor<i32>) -> tensor<f32>
    %1111 = stablehlo.minimum %1110, %cst_1 : tensor<f32>
    %1112 = stablehlo.multiply %cst_0, %1111 : tensor<f32>
    %1113 = stablehlo.divide %1112, %cst_1 : tensor<f32>
    %1114 = stablehlo.cosine %1113 : tensor<f32>
    %1115 = stablehlo.add %cst_18, %1114 : tensor<f32>
    %1116 = stablehlo.multiply %cst_14, %1115 : tensor<f32>
    %1117 = stablehlo.power %1116, %cst_18 : tensor<f32>
    %1118 = stablehlo.multiply %cst_18, %1117 : tensor<f32>
    %1119 = stablehlo.add %1118, %cst_26 : tensor<f32>
    %1120 = stablehlo.multiply %cst_2, %1119 : tensor<f32>
    %1121 = call @_where_8(%1108, %1107, %1120) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %1122 = stablehlo.multiply %cst, %1121 : tensor<f32>
    %1123 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %1124 = stablehlo.multiply %1123, %1049 : tensor<64x16xf32>
    %1125 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1126 = stablehlo.multiply %1125, %1052 : tensor<16xf32>
    %1127 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1128 = stablehlo.multiply %1127, %1055 : tensor<16xf32>
    %1129 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %1130 = stablehlo.multiply %1129, %1058 : tensor<16x16xf32>
    %1131 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %1132 = stablehlo.multiply %1131, %1061 : tensor<16x48xf32>
    %1133 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1134 = stablehlo.multiply %1133, %1064 : tensor<16xf32>
    %1135 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1136 = stablehlo.multiply %1135, %1067 : tensor<16xf32>
    %1137 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %1138 = stablehlo.multiply %1137, %1070 : tensor<16x64xf32>
    %1139 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %1140 = stablehlo.multiply %1139, %1073 : tensor<64x16xf32>
    %1141 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1142 = stablehlo.multiply %1141, %1076 : tensor<16xf32>
    %1143 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1144 = stablehlo.multiply %1143, %1079 : tensor<16xf32>
    %1145 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %1146 = stablehlo.multiply %1145, %1082 : tensor<16x16xf32>
    %1147 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16x48xf32>
    %1148 = stablehlo.multiply %1147, %1085 : tensor<16x48xf32>
    %1149 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1150 = stablehlo.multiply %1149, %1088 : tensor<16xf32>
    %1151 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1152 = stablehlo.multiply %1151, %1091 : tensor<16xf32>
    %1153 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %1154 = stablehlo.multiply %1153, %1094 : tensor<16x64xf32>
    %1155 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<12x16xf32>
    %1156 = stablehlo.multiply %1155, %1097 : tensor<12x16xf32>
    %1157 = stablehlo.broadcast_in_dim %1122, dims = [] : (tensor<f32>) -> tensor<31x16xf32>
    %1158 = stablehlo.multiply %1157, %1100 : tensor<31x16xf32>
    %1159 = stablehlo.compare LT, %arg55, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1160 = stablehlo.add %arg55, %c_7 : tensor<i32>
    %1161 = call @_where_7(%1159, %1160, %c_8) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %1162 = stablehlo.add %arg0, %1124 : tensor<64x16xf32>
    %1163 = stablehlo.add %arg1, %1126 : tensor<16xf32>
    %1164 = stablehlo.add %arg2, %1128 : tensor<16xf32>
    %1165 = stablehlo.add %arg3, %1130 : tensor<16x16xf32>
    %1166 = stablehlo.add %arg4, %1132 : tensor<16x48xf32>
    %1167 = stablehlo.add %arg5, %1134 : tensor<16xf32>
    %1168 = stablehlo.add %arg6, %1136 : tensor<16xf32>
    %1169 = stablehlo.add %arg7, %1138 : tensor<16x64xf32>
    %1170 = stablehlo.add %arg8, %1140 : tensor<64x16xf32>
    %1171 = stablehlo.add %arg9, %1142 : tensor<16xf32>
    %1172 = stablehlo.add %arg10, %1144 : tensor<16xf32>
    %1173 = stablehlo.add %arg11, %1146 : tensor<16x16xf32>
    %1174 = stablehlo.add %arg12, %1148 : tensor<16x48xf32>
    %1175 = stablehlo.add %arg13, %1150 : tensor<16xf32>
    %1176 = stablehlo.add %arg14, %1152 : tensor<16xf32>
    %1177 = stablehlo.add %arg15, %1154 : tensor<16x64xf32>
    %1178 = stablehlo.add %arg16, %1156 : tensor<12x16xf32>
    %1179 = stablehlo.add %arg17, %1158 : tensor<31x16xf32>
    return %1162, %1163, %1164, %1165, %1166, %1167, %1168, %1169, %1170, %1171, %1172, %1173, %1174, %1175, %1176, %1177, %1178, %1179, %860, %664, %669, %674, %679, %684, %689, %694, %699, %704, %709, %714, %719, %724, %729, %734, %739, %744, %749, %755, %761, %767, %773, %779, %785, %791, %797, %803, %809, %815, %821, %827, %833, %839, %845, %851, %857, %1161, %223 : tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<12x16xf32>, tensor<31x16xf32>, tensor<i32>, tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<12x16xf32>, tensor<31x16xf32>, tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<12x16xf32>, tensor<31x16xf32>, tensor<i32>, tensor<f32>
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
