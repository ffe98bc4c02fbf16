module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32xf32> {tf.aliasing_output = 0 : i32} loc("p['b1']"), %arg1: tensor<4xf32> {tf.aliasing_output = 1 : i32} loc("p['b2']"), %arg2: tensor<16x32xf32> {tf.aliasing_output = 2 : i32} loc("p['w1']"), %arg3: tensor<32x4xf32> {tf.aliasing_output = 3 : i32} loc("p['w2']"), %arg4: tensor<i32> {tf.aliasing_output = 4 : i32} loc("s[1][0].count"), %arg5: tensor<32xf32> {tf.aliasing_output = 5 : i32} loc("s[1][0].mu['b1']"), %arg6: tensor<4xf32> {tf.aliasing_output = 6 : i32} loc("s[1][0].mu['b2']"), %arg7: tensor<16x32xf32> {tf.aliasing_output = 7 : i32} loc("s[1][0].mu['w1']"), %arg8: tensor<32x4xf32> {tf.aliasing_output = 8 : i32} loc("s[1][0].mu['w2']"), %arg9: tensor<32xf32> {tf.aliasing_output = 9 : i32} loc("s[1][0].nu['b1']"), %arg10: tensor<4xf32> {tf.aliasing_output = 10 : i32} loc("s[1][0].nu['b2']"), %arg11: tensor<16x32xf32> {tf.aliasing_output = 11 : i32} loc("s[1][0].nu['w1']"), %arg12: tensor<32x4xf32> {tf.aliasing_output = 12 : i32} loc("s[1][0].nu['w2']"), %arg13: tensor<i32> {tf.aliasing_output = 13 : i32} loc("s[1][2].count"), %arg14: tensor<8x16xf32> loc("data[0]"), %arg15: tensor<8xi32> loc("data[1]")) -> (tensor<32xf32> {jax.result_info = "result[0]['b1']"}, tensor<4xf32> {jax.result_info = "result[0]['b2']"}, tensor<16x32xf32> {jax.result_info = "result[0]['w1']"}, tensor<32x4xf32> {jax.result_info = "result[0]['w2']"}, tensor<i32> {jax.result_info = "result[1][1][0].count"}, tensor<32xf32> {jax.result_info = "result[1][1][0].mu['b1']"}, tensor<4xf32> {jax.result_info = "result[1][1][0].mu['b2']"}, tensor<16x32xf32> {jax.result_info = "result[1][1][0].mu['w1']"}, tensor<32x4xf32> {jax.result_info = "result[1][1][0].mu['w2']"}, tensor<32xf32> {jax.result_info = "result[1][1][0].nu['b1']"}, tensor<4xf32> {jax.result_info = "result[1][1][0].nu['b2']"}, tensor<16x32xf32> {jax.result_info = "result[1][1][0].nu['w1']"}, tensor<32x4xf32> {jax.result_info = "result[1][1][0].nu['w2']"}, tensor<i32> {jax.result_info = "result[1][1][2].count"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_1 = stablehlo.constant dense<3.14159274> : tensor<f32>
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
    %cst_13 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_14 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %cst_15 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c_16 = stablehlo.constant dense<0> : tensor<i32>
    %cst_17 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %arg14, %arg2, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<8x32xf32>
    %3 = stablehlo.add %0, %2 : tensor<8x32xf32>
    %4 = call @relu(%3) : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %5 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %6 = stablehlo.compare GT, %3, %5, FLOAT : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xi1>
    %7 = stablehlo.dot_general %4, %arg3, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32>
    %8 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<8x4xf32>
    %10 = stablehlo.add %7, %9 : tensor<8x4xf32>
    %11 = stablehlo.broadcast_in_dim %arg15, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %12:2 = call @take_along_axis(%10, %11) : (tensor<8x4xf32>, tensor<8x1xi32>) -> (tensor<8x1xf32>, tensor<8x1x1xi32>)
    %13:2 = call @_take(%12#0, %c_16) : (tensor<8x1xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<1xi32>)
    %14 = stablehlo.reduce(%10 init: %cst_15) applies stablehlo.maximum across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %15 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %16 = stablehlo.maximum %15, %14 : tensor<8xf32>
    %17 = stablehlo.is_finite %16 : (tensor<8xf32>) -> tensor<8xi1>
    %18 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %19 = stablehlo.select %17, %16, %18 : tensor<8xi1>, tensor<8xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x4xf32>
    %22 = stablehlo.subtract %10, %21 : tensor<8x4xf32>
    %23 = stablehlo.exponential %22 : tensor<8x4xf32>
    %24 = stablehlo.reduce(%23 init: %cst_17) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %25 = stablehlo.abs %24 : tensor<8xf32>
    %26 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %27 = stablehlo.compare GE, %24, %26, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %28 = stablehlo.log %25 : tensor<8xf32>
    %29 = stablehlo.add %28, %19 : tensor<8xf32>
    %30 = stablehlo.subtract %29, %13#0 : tensor<8xf32>
    %31 = stablehlo.reduce(%30 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %32 = stablehlo.divide %31, %cst_14 : tensor<f32>
    %33 = stablehlo.divide %cst_13, %cst_14 : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %35 = stablehlo.negate %34 : tensor<8xf32>
    %36 = stablehlo.divide %34, %25 : tensor<8xf32>
    %37 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %38 = stablehlo.select %27, %37, %36 : tensor<8xi1>, tensor<8xf32>
    %39 = stablehlo.select %27, %36, %37 : tensor<8xi1>, tensor<8xf32>
    %40 = stablehlo.negate %38 : tensor<8xf32>
    %41 = stablehlo.add %39, %40 : tensor<8xf32>
    %42 = stablehlo.broadcast_in_dim %41, dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>
    %43 = stablehlo.multiply %42, %23 : tensor<8x4xf32>
    %44 = call @_take_0(%13#1, %35) : (tensor<1xi32>, tensor<8xf32>) -> tensor<8x1xf32>
    %45 = call @take_along_axis_1(%12#1, %44) : (tensor<8x1x1xi32>, tensor<8x1xf32>) -> tensor<8x4xf32>
    %46 = stablehlo.add %43, %45 : tensor<8x4xf32>
    %47 = stablehlo.reduce(%46 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    %48 = stablehlo.reshape %47 : (tensor<4xf32>) -> tensor<1x4xf32>
    %49 = stablehlo.reduce(%48 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<4xf32>
    %50 = stablehlo.dot_general %46, %4, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x32xf32>) -> tensor<4x32xf32>
    %51 = stablehlo.transpose %50, dims = [1, 0] : (tensor<4x32xf32>) -> tensor<32x4xf32>
    %52 = stablehlo.dot_general %46, %arg3, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<32x4xf32>) -> tensor<8x32xf32>
    %53 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %54 = stablehlo.select %6, %52, %53 : tensor<8x32xi1>, tensor<8x32xf32>
    %55 = stablehlo.reduce(%54 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<8x32xf32>, tensor<f32>) -> tensor<32xf32>
    %56 = stablehlo.reshape %55 : (tensor<32xf32>) -> tensor<1x32xf32>
    %57 = stablehlo.reduce(%56 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<1x32xf32>, tensor<f32>) -> tensor<32xf32>
    %58 = stablehlo.dot_general %54, %arg14, contracting_dims = [0] x [0] : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
    %59 = stablehlo.transpose %58, dims = [1, 0] : (tensor<32x16xf32>) -> tensor<16x32xf32>
    %60 = stablehlo.multiply %57, %57 : tensor<32xf32>
    %61 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %62 = stablehlo.multiply %61, %61 : tensor<32xf32>
    %63 = stablehlo.add %60, %62 : tensor<32xf32>
    %64 = stablehlo.multiply %49, %49 : tensor<4xf32>
    %65 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %66 = stablehlo.multiply %65, %65 : tensor<4xf32>
    %67 = stablehlo.add %64, %66 : tensor<4xf32>
    %68 = stablehlo.multiply %59, %59 : tensor<16x32xf32>
    %69 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %70 = stablehlo.multiply %69, %69 : tensor<16x32xf32>
    %71 = stablehlo.add %68, %70 : tensor<16x32xf32>
    %72 = stablehlo.multiply %51, %51 : tensor<32x4xf32>
    %73 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %74 = stablehlo.multiply %73, %73 : tensor<32x4xf32>
    %75 = stablehlo.add %72, %74 : tensor<32x4xf32>
    %76 = stablehlo.reduce(%63 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<32xf32>, tensor<f32>) -> tensor<f32>
    %77 = stablehlo.reduce(%67 init: %cst_17) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %78 = stablehlo.reduce(%71 init: %cst_17) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<f32>
    %79 = stablehlo.reduce(%75 init: %cst_17) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x4xf32>, tensor<f32>) -> tensor<f32>
    %80 = stablehlo.add %cst_17, %76 : tensor<f32>
    %81 = stablehlo.add %80, %77 : tensor<f32>
    %82 = stablehlo.add %81, %78 : tensor<f32>
    %83 = stablehlo.add %82, %79 : tensor<f32>
    %84 = stablehlo.sqrt %83 : tensor<f32>
    %85 = stablehlo.compare LT, %84, %cst_13, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %86 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %87 = stablehlo.divide %57, %86 : tensor<32xf32>
    %88 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %89 = stablehlo.multiply %87, %88 : tensor<32xf32>
    %90 = stablehlo.select %85, %57, %89 : tensor<i1>, tensor<32xf32>
    %91 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %92 = stablehlo.divide %49, %91 : tensor<4xf32>
    %93 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %94 = stablehlo.multiply %92, %93 : tensor<4xf32>
    %95 = stablehlo.select %85, %49, %94 : tensor<i1>, tensor<4xf32>
    %96 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %97 = stablehlo.divide %59, %96 : tensor<16x32xf32>
    %98 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %99 = stablehlo.multiply %97, %98 : tensor<16x32xf32>
    %100 = stablehlo.select %85, %59, %99 : tensor<i1>, tensor<16x32xf32>
    %101 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %102 = stablehlo.divide %51, %101 : tensor<32x4xf32>
    %103 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %104 = stablehlo.multiply %102, %103 : tensor<32x4xf32>
    %105 = stablehlo.select %85, %51, %104 : tensor<i1>, tensor<32x4xf32>
    %106 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %107 = stablehlo.multiply %106, %90 : tensor<32xf32>
    %108 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %109 = stablehlo.multiply %108, %arg5 : tensor<32xf32>
    %110 = stablehlo.add %107, %109 : tensor<32xf32>
    %111 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %112 = stablehlo.multiply %111, %95 : tensor<4xf32>
    %113 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %114 = stablehlo.multiply %113, %arg6 : tensor<4xf32>
    %115 = stablehlo.add %112, %114 : tensor<4xf32>
    %116 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %117 = stablehlo.multiply %116, %100 : tensor<16x32xf32>
    %118 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %119 = stablehlo.multiply %118, %arg7 : tensor<16x32xf32>
    %120 = stablehlo.add %117, %119 : tensor<16x32xf32>
    %121 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %122 = stablehlo.multiply %121, %105 : tensor<32x4xf32>
    %123 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %124 = stablehlo.multiply %123, %arg8 : tensor<32x4xf32>
    %125 = stablehlo.add %122, %124 : tensor<32x4xf32>
    %126 = stablehlo.multiply %90, %90 : tensor<32xf32>
    %127 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %128 = stablehlo.multiply %127, %126 : tensor<32xf32>
    %129 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %130 = stablehlo.multiply %129, %arg9 : tensor<32xf32>
    %131 = stablehlo.add %128, %130 : tensor<32xf32>
    %132 = stablehlo.multiply %95, %95 : tensor<4xf32>
    %133 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %134 = stablehlo.multiply %133, %132 : tensor<4xf32>
    %135 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %136 = stablehlo.multiply %135, %arg10 : tensor<4xf32>
    %137 = stablehlo.add %134, %136 : tensor<4xf32>
    %138 = stablehlo.multiply %100, %100 : tensor<16x32xf32>
    %139 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %140 = stablehlo.multiply %139, %138 : tensor<16x32xf32>
    %141 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %142 = stablehlo.multiply %141, %arg11 : tensor<16x32xf32>
    %143 = stablehlo.add %140, %142 : tensor<16x32xf32>
    %144 = stablehlo.multiply %105, %105 : tensor<32x4xf32>
    %145 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %146 = stablehlo.multiply %145, %144 : tensor<32x4xf32>
    %147 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %148 = stablehlo.multiply %147, %arg12 : tensor<32x4xf32>
    %149 = stablehlo.add %146, %148 : tensor<32x4xf32>
    %150 = stablehlo.compare LT, %arg4, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %151 = stablehlo.add %arg4, %c_7 : tensor<i32>
    %152 = call @_where_2(%150, %151, %c_8) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %153 = stablehlo.convert %152 : (tensor<i32>) -> tensor<f32>
    %154 = stablehlo.power %cst_11, %153 : tensor<f32>
    %155 = stablehlo.subtract %cst_13, %154 : tensor<f32>
    %156 = stablehlo.broadcast_in_dim %155, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %157 = stablehlo.divide %110, %156 : tensor<32xf32>
    %158 = stablehlo.broadcast_in_dim %155, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %159 = stablehlo.divide %115, %158 : tensor<4xf32>
    %160 = stablehlo.broadcast_in_dim %155, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %161 = stablehlo.divide %120, %160 : tensor<16x32xf32>
    %162 = stablehlo.broadcast_in_dim %155, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %163 = stablehlo.divide %125, %162 : tensor<32x4xf32>
    %164 = stablehlo.convert %152 : (tensor<i32>) -> tensor<f32>
    %165 = stablehlo.power %cst_9, %164 : tensor<f32>
    %166 = stablehlo.subtract %cst_13, %165 : tensor<f32>
    %167 = stablehlo.broadcast_in_dim %166, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %168 = stablehlo.divide %131, %167 : tensor<32xf32>
    %169 = stablehlo.broadcast_in_dim %166, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %170 = stablehlo.divide %137, %169 : tensor<4xf32>
    %171 = stablehlo.broadcast_in_dim %166, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %172 = stablehlo.divide %143, %171 : tensor<16x32xf32>
    %173 = stablehlo.broadcast_in_dim %166, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %174 = stablehlo.divide %149, %173 : tensor<32x4xf32>
    %175 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %176 = stablehlo.add %168, %175 : tensor<32xf32>
    %177 = stablehlo.sqrt %176 : tensor<32xf32>
    %178 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %179 = stablehlo.add %177, %178 : tensor<32xf32>
    %180 = stablehlo.divide %157, %179 : tensor<32xf32>
    %181 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %182 = stablehlo.add %170, %181 : tensor<4xf32>
    %183 = stablehlo.sqrt %182 : tensor<4xf32>
    %184 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %185 = stablehlo.add %183, %184 : tensor<4xf32>
    %186 = stablehlo.divide %159, %185 : tensor<4xf32>
    %187 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %188 = stablehlo.add %172, %187 : tensor<16x32xf32>
    %189 = stablehlo.sqrt %188 : tensor<16x32xf32>
    %190 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %191 = stablehlo.add %189, %190 : tensor<16x32xf32>
    %192 = stablehlo.divide %161, %191 : tensor<16x32xf32>
    %193 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %194 = stablehlo.add %174, %193 : tensor<32x4xf32>
    %195 = stablehlo.sqrt %194 : tensor<32x4xf32>
    %196 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %197 = stablehlo.add %195, %196 : tensor<32x4xf32>
    %198 = stablehlo.divide %163, %197 : tensor<32x4xf32>
    %199 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %200 = stablehlo.multiply %199, %arg0 : tensor<32xf32>
    %201 = stablehlo.add %180, %200 : tensor<32xf32>
    %202 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %203 = stablehlo.multiply %202, %arg1 : tensor<4xf32>
    %204 = stablehlo.add %186, %203 : tensor<4xf32>
    %205 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %206 = stablehlo.multiply %205, %arg2 : tensor<16x32xf32>
    %207 = stablehlo.add %192, %206 : tensor<16x32xf32>
    %208 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %209 = stablehlo.multiply %208, %arg3 : tensor<32x4xf32>
    %210 = stablehlo.add %198, %209 : tensor<32x4xf32>
    %211 = stablehlo.subtract %arg13, %c_16 : tensor<i32>
    %212 = call @clip(%211, %c_16, %c) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %213 = stablehlo.convert %212 : (tensor<i32>) -> tensor<f32>
    %214 = stablehlo.divide %213, %cst_4 : tensor<f32>
    %215 = stablehlo.subtract %cst_13, %214 : tensor<f32>
    %216 = stablehlo.multiply %cst_3, %215 : tensor<f32>
    %217 = stablehlo.add %216, %cst_2 : tensor<f32>
    %218 = stablehlo.compare LT, %arg13, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %219 = stablehlo.subtract %arg13, %c : tensor<i32>
    %220 = stablehlo.convert %219 : (tensor<i32>) -> tensor<f32>
    %221 = stablehlo.minimum %220, %cst_14 : tensor<f32>
    %222 = stablehlo.multiply %cst_1, %221 : tensor<f32>
    %223 = stablehlo.divide %222, %cst_14 : tensor<f32>
    %224 = stablehlo.cosine %223 : tensor<f32>
    %225 = stablehlo.add %cst_13, %224 : tensor<f32>
    %226 = stablehlo.multiply %cst_0, %225 : tensor<f32>
    %227 = stablehlo.power %226, %cst_13 : tensor<f32>
    %228 = stablehlo.multiply %cst_13, %227 : tensor<f32>
    %229 = stablehlo.add %228, %cst_17 : tensor<f32>
    %230 = stablehlo.multiply %cst_2, %229 : tensor<f32>
    %231 = call @_where_3(%218, %217, %230) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %232 = stablehlo.multiply %cst, %231 : tensor<f32>
    %233 = stablehlo.broadcast_in_dim %232, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %234 = stablehlo.multiply %233, %201 : tensor<32xf32>
    %235 = stablehlo.broadcast_in_dim %232, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %236 = stablehlo.multiply %235, %204 : tensor<4xf32>
    %237 = stablehlo.broadcast_in_dim %232, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %238 = stablehlo.multiply %237, %207 : tensor<16x32xf32>
    %239 = stablehlo.broadcast_in_dim %232, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %240 = stablehlo.multiply %239, %210 : tensor<32x4xf32>
    %241 = stablehlo.compare LT, %arg13, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %242 = stablehlo.add %arg13, %c_7 : tensor<i32>
    %243 = call @_where_2(%241, %242, %c_8) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %244 = stablehlo.add %arg0, %234 : tensor<32xf32>
    %245 = stablehlo.add %arg1, %236 : tensor<4xf32>
    %246 = stablehlo.add %arg2, %238 : tensor<16x32xf32>
    %247 = stablehlo.add %arg3, %240 : tensor<32x4xf32>
    return %244, %245, %246, %247, %152, %110, %115, %120, %125, %131, %137, %143, %149, %243, %32 : tensor<32xf32>, tensor<4xf32>, tensor<16x32xf32>, tensor<32x4xf32>, tensor<i32>, tensor<32xf32>, tensor<4xf32>, tensor<16x32xf32>, tensor<32x4xf32>, tensor<32xf32>, tensor<4xf32>, tensor<16x32xf32>, tensor<32x4xf32>, tensor<i32>, tensor<f32>
  }
  func.func private @relu(%arg0: tensor<8x32xf32>) -> tensor<8x32xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<8x32xf32>
    return %1 : tensor<8x32xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<8x4xf32>, %arg1: tensor<8x1xi32>) -> (tensor<8x1xf32>, tensor<8x1x1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<3> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<4> : tensor<i32>
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
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<8x1x1xi32>) -> tensor<8x1xf32>
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
  func.func private @_take_0(%arg0: tensor<1xi32>, %arg1: tensor<8xf32>) -> tensor<8x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x1xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<8x1xf32>, tensor<1xi32>, tensor<8xf32>) -> tensor<8x1xf32>
    return %1 : tensor<8x1xf32>
  }
  func.func private @take_along_axis_1(%arg0: tensor<8x1x1xi32>, %arg1: tensor<8x1xf32>) -> tensor<8x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<8x1x1xi32>, tensor<8x1xf32>) -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
  func.func private @_where_2(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
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
  func.func private @_where_3(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<i1>, tensor<f32>
    return %1 : tensor<f32>
  }
}
