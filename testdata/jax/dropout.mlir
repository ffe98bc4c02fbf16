module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<40x3xf32> {tf.aliasing_output = 0 : i32} loc("p['v']"), %arg1: tensor<6x40xf32> {tf.aliasing_output = 1 : i32} loc("p['w']"), %arg2: tensor<40x3xf32> {tf.aliasing_output = 2 : i32} loc("s[0].nu['v']"), %arg3: tensor<6x40xf32> {tf.aliasing_output = 3 : i32} loc("s[0].nu['w']"), %arg4: tensor<9x6xf32> loc("data[0]"), %arg5: tensor<9xi32> loc("data[1]"), %arg6: tensor<2xui32> loc("data[2]")) -> (tensor<40x3xf32> {jax.result_info = "result[0]['v']"}, tensor<6x40xf32> {jax.result_info = "result[0]['w']"}, tensor<40x3xf32> {jax.result_info = "result[1][0].nu['v']"}, tensor<6x40xf32> {jax.result_info = "result[1][0].nu['w']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<-0.00999999977> : tensor<f32>
    %cst_0 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_4 = stablehlo.constant dense<9.000000e+00> : tensor<f32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst_7 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %cst_8 = stablehlo.constant dense<0.699999988> : tensor<f32>
    %0 = stablehlo.dot_general %arg4, %arg1, contracting_dims = [1] x [0] : (tensor<9x6xf32>, tensor<6x40xf32>) -> tensor<9x40xf32>
    %1:3 = call @silu(%0) : (tensor<9x40xf32>) -> (tensor<9x40xf32>, tensor<9x40xf32>, tensor<9x40xf32>)
    %2 = call @_threefry_split(%arg6) : (tensor<2xui32>) -> tensor<2x2xui32>
    %3 = stablehlo.slice %2 [0:1, 0:2] : (tensor<2x2xui32>) -> tensor<1x2xui32>
    %4 = stablehlo.reshape %3 : (tensor<1x2xui32>) -> tensor<2xui32>
    %5 = stablehlo.slice %2 [1:2, 0:2] : (tensor<2x2xui32>) -> tensor<1x2xui32>
    %6 = stablehlo.reshape %5 : (tensor<1x2xui32>) -> tensor<2xui32>
    %7 = call @_bernoulli(%4, %cst_8) : (tensor<2xui32>, tensor<f32>) -> tensor<9x40xi1>
    %8 = call @_normal(%6) : (tensor<2xui32>) -> tensor<9x40xf32>
    %9 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %10 = stablehlo.multiply %8, %9 : tensor<9x40xf32>
    %11 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %12 = stablehlo.divide %1#0, %11 : tensor<9x40xf32>
    %13 = call @_where(%7, %12, %c) : (tensor<9x40xi1>, tensor<9x40xf32>, tensor<i32>) -> tensor<9x40xf32>
    %14 = stablehlo.add %13, %10 : tensor<9x40xf32>
    %15 = stablehlo.dot_general %14, %arg0, contracting_dims = [1] x [0] : (tensor<9x40xf32>, tensor<40x3xf32>) -> tensor<9x3xf32>
    %16 = stablehlo.broadcast_in_dim %arg5, dims = [0] : (tensor<9xi32>) -> tensor<9x1xi32>
    %17:2 = call @take_along_axis(%15, %16) : (tensor<9x3xf32>, tensor<9x1xi32>) -> (tensor<9x1xf32>, tensor<9x1x1xi32>)
    %18:2 = call @_take(%17#0, %c) : (tensor<9x1xf32>, tensor<i32>) -> (tensor<9xf32>, tensor<1xi32>)
    %19 = stablehlo.reduce(%15 init: %cst_6) applies stablehlo.maximum across dimensions = [1] : (tensor<9x3xf32>, tensor<f32>) -> tensor<9xf32>
    %20 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<9xf32>
    %21 = stablehlo.maximum %20, %19 : tensor<9xf32>
    %22 = stablehlo.is_finite %21 : (tensor<9xf32>) -> tensor<9xi1>
    %23 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<9xf32>
    %24 = stablehlo.select %22, %21, %23 : tensor<9xi1>, tensor<9xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0] : (tensor<9xf32>) -> tensor<9x1xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1] : (tensor<9x1xf32>) -> tensor<9x3xf32>
    %27 = stablehlo.subtract %15, %26 : tensor<9x3xf32>
    %28 = stablehlo.exponential %27 : tensor<9x3xf32>
    %29 = stablehlo.reduce(%28 init: %cst_5) applies stablehlo.add across dimensions = [1] : (tensor<9x3xf32>, tensor<f32>) -> tensor<9xf32>
    %30 = stablehlo.abs %29 : tensor<9xf32>
    %31 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<9xf32>
    %32 = stablehlo.compare GE, %29, %31, FLOAT : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xi1>
    %33 = stablehlo.log %30 : tensor<9xf32>
    %34 = stablehlo.add %33, %24 : tensor<9xf32>
    %35 = stablehlo.subtract %34, %18#0 : tensor<9xf32>
    %36 = stablehlo.reduce(%35 init: %cst_5) applies stablehlo.add across dimensions = [0] : (tensor<9xf32>, tensor<f32>) -> tensor<f32>
    %37 = stablehlo.divide %36, %cst_4 : tensor<f32>
    %38 = stablehlo.divide %cst_3, %cst_4 : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [] : (tensor<f32>) -> tensor<9xf32>
    %40 = stablehlo.negate %39 : tensor<9xf32>
    %41 = stablehlo.divide %39, %30 : tensor<9xf32>
    %42 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<9xf32>
    %43 = stablehlo.select %32, %42, %41 : tensor<9xi1>, tensor<9xf32>
    %44 = stablehlo.select %32, %41, %42 : tensor<9xi1>, tensor<9xf32>
    %45 = stablehlo.negate %43 : tensor<9xf32>
    %46 = stablehlo.add %44, %45 : tensor<9xf32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0] : (tensor<9xf32>) -> tensor<9x3xf32>
    %48 = stablehlo.multiply %47, %28 : tensor<9x3xf32>
    %49 = call @_take_4(%18#1, %40) : (tensor<1xi32>, tensor<9xf32>) -> tensor<9x1xf32>
    %50 = call @take_along_axis_5(%17#1, %49) : (tensor<9x1x1xi32>, tensor<9x1xf32>) -> tensor<9x3xf32>
    %51 = stablehlo.add %48, %50 : tensor<9x3xf32>
    %52 = stablehlo.dot_general %51, %14, contracting_dims = [0] x [0] : (tensor<9x3xf32>, tensor<9x40xf32>) -> tensor<3x40xf32>
    %53 = stablehlo.transpose %52, dims = [1, 0] : (tensor<3x40xf32>) -> tensor<40x3xf32>
    %54 = stablehlo.dot_general %51, %arg0, contracting_dims = [1] x [1] : (tensor<9x3xf32>, tensor<40x3xf32>) -> tensor<9x40xf32>
    %55 = call @_where_6(%7, %54) : (tensor<9x40xi1>, tensor<9x40xf32>) -> tensor<9x40xf32>
    %56 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %57 = stablehlo.divide %55, %56 : tensor<9x40xf32>
    %58 = call @silu_7(%1#1, %1#2, %0, %57) : (tensor<9x40xf32>, tensor<9x40xf32>, tensor<9x40xf32>, tensor<9x40xf32>) -> tensor<9x40xf32>
    %59 = stablehlo.dot_general %58, %arg4, contracting_dims = [0] x [0] : (tensor<9x40xf32>, tensor<9x6xf32>) -> tensor<40x6xf32>
    %60 = stablehlo.transpose %59, dims = [1, 0] : (tensor<40x6xf32>) -> tensor<6x40xf32>
    %61 = stablehlo.multiply %53, %53 : tensor<40x3xf32>
    %62 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<40x3xf32>
    %63 = stablehlo.multiply %62, %61 : tensor<40x3xf32>
    %64 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<40x3xf32>
    %65 = stablehlo.multiply %64, %arg2 : tensor<40x3xf32>
    %66 = stablehlo.add %63, %65 : tensor<40x3xf32>
    %67 = stablehlo.multiply %60, %60 : tensor<6x40xf32>
    %68 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x40xf32>
    %69 = stablehlo.multiply %68, %67 : tensor<6x40xf32>
    %70 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<6x40xf32>
    %71 = stablehlo.multiply %70, %arg3 : tensor<6x40xf32>
    %72 = stablehlo.add %69, %71 : tensor<6x40xf32>
    %73 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<40x3xf32>
    %74 = stablehlo.add %66, %73 : tensor<40x3xf32>
    %75 = stablehlo.rsqrt %74 : tensor<40x3xf32>
    %76 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<6x40xf32>
    %77 = stablehlo.add %72, %76 : tensor<6x40xf32>
    %78 = stablehlo.rsqrt %77 : tensor<6x40xf32>
    %79 = stablehlo.multiply %75, %53 : tensor<40x3xf32>
    %80 = stablehlo.multiply %78, %60 : tensor<6x40xf32>
    %81 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<40x3xf32>
    %82 = stablehlo.multiply %81, %79 : tensor<40x3xf32>
    %83 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x40xf32>
    %84 = stablehlo.multiply %83, %80 : tensor<6x40xf32>
    %85 = stablehlo.add %arg0, %82 : tensor<40x3xf32>
    %86 = stablehlo.add %arg1, %84 : tensor<6x40xf32>
    return %85, %86, %66, %72, %37 : tensor<40x3xf32>, tensor<6x40xf32>, tensor<40x3xf32>, tensor<6x40xf32>, tensor<f32>
  }
  func.func private @silu(%arg0: tensor<9x40xf32>) -> (tensor<9x40xf32>, tensor<9x40xf32>, tensor<9x40xf32>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.negate %arg0 : tensor<9x40xf32>
    %1 = stablehlo.exponential %0 : tensor<9x40xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %3 = stablehlo.add %2, %1 : tensor<9x40xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %5 = stablehlo.divide %4, %3 : tensor<9x40xf32>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %7 = stablehlo.subtract %6, %5 : tensor<9x40xf32>
    %8 = stablehlo.multiply %5, %7 : tensor<9x40xf32>
    %9 = stablehlo.multiply %arg0, %5 : tensor<9x40xf32>
    return %9, %8, %5 : tensor<9x40xf32>, tensor<9x40xf32>, tensor<9x40xf32>
  }
  func.func private @_threefry_split(%arg0: tensor<2xui32>) -> tensor<2x2xui32> {
    %c = stablehlo.constant dense<32> : tensor<ui64>
    %c_0 = stablehlo.constant dense<1> : tensor<ui64>
    %0 = stablehlo.slice %arg0 [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %1 = stablehlo.reshape %0 : (tensor<1xui32>) -> tensor<ui32>
    %2 = stablehlo.slice %arg0 [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %3 = stablehlo.reshape %2 : (tensor<1xui32>) -> tensor<ui32>
    %4 = stablehlo.iota dim = 0 : tensor<2xui64>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %6 = stablehlo.multiply %5, %4 : tensor<2xui64>
    %7 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %8 = stablehlo.shift_right_logical %6, %7 : tensor<2xui64>
    %9 = stablehlo.convert %6 : (tensor<2xui64>) -> tensor<2xui32>
    %10 = stablehlo.convert %8 : (tensor<2xui64>) -> tensor<2xui32>
    %11:2 = call @threefry2x32(%1, %3, %10, %9) : (tensor<ui32>, tensor<ui32>, tensor<2xui32>, tensor<2xui32>) -> (tensor<2xui32>, tensor<2xui32>)
    %12 = stablehlo.broadcast_in_dim %11#0, dims = [0] : (tensor<2xui32>) -> tensor<2x1xui32>
    %13 = stablehlo.broadcast_in_dim %11#1, dims = [0] : (tensor<2xui32>) -> tensor<2x1xui32>
    %14 = stablehlo.concatenate %12, %13, dim = 1 : (tensor<2x1xui32>, tensor<2x1xui32>) -> tensor<2x2xui32>
    return %14 : tensor<2x2xui32>
  }
  func.func private @threefry2x32(%arg0: tensor<ui32> loc(callsite(#loc95 at #loc93)), %arg1: tensor<ui32> loc(callsite(#loc95 at #loc93)), %arg2: tensor<2xui32> loc(callsite(#loc95 at #loc93)), %arg3: tensor<2xui32> loc(callsite(#loc95 at #loc93))) -> (tensor<2xui32>, tensor<2xui32>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<5> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<466688986> : tensor<ui32>
    %c_3 = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xui32>
    %c_4 = stablehlo.constant dense<[17, 29, 16, 24]> : tensor<4xui32>
    %0 = stablehlo.xor %arg0, %arg1 : tensor<ui32>
    %1 = stablehlo.xor %0, %c_2 : tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %3 = stablehlo.add %arg2, %2 : tensor<2xui32>
    %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %5 = stablehlo.add %arg3, %4 : tensor<2xui32>
    %6:9 = stablehlo.while(%iterArg = %c_1, %iterArg_5 = %c_1, %iterArg_6 = %3, %iterArg_7 = %5, %iterArg_8 = %arg1, %iterArg_9 = %1, %iterArg_10 = %arg0, %iterArg_11 = %c_3, %iterArg_12 = %c_4) : tensor<i32>, tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
    cond {
      %7 = stablehlo.compare LT, %iterArg, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    } do {
      %7:8 = func.call @closed_call(%iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12) : (tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>)
      %8 = stablehlo.add %iterArg, %c : tensor<i32>
      stablehlo.return %8, %7#0, %7#1, %7#2, %7#3, %7#4, %7#5, %7#6, %7#7 : tensor<i32>, tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
    }
    return %6#2, %6#3 : tensor<2xui32>, tensor<2xui32>
  }
  func.func private @closed_call(%arg0: tensor<i32>, %arg1: tensor<2xui32>, %arg2: tensor<2xui32>, %arg3: tensor<ui32>, %arg4: tensor<ui32>, %arg5: tensor<ui32>, %arg6: tensor<4xui32>, %arg7: tensor<4xui32>) -> (tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) {
    %c = stablehlo.constant dense<32> : tensor<ui32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %arg0, %c_0 : tensor<i32>
    %1 = stablehlo.slice %arg6 [0:1] : (tensor<4xui32>) -> tensor<1xui32>
    %2 = stablehlo.reshape %1 : (tensor<1xui32>) -> tensor<ui32>
    %3 = stablehlo.add %arg1, %arg2 : tensor<2xui32>
    %4 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %5 = stablehlo.shift_left %arg2, %4 : tensor<2xui32>
    %6 = stablehlo.subtract %c, %2 : tensor<ui32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %8 = stablehlo.shift_right_logical %arg2, %7 : tensor<2xui32>
    %9 = stablehlo.or %5, %8 : tensor<2xui32>
    %10 = stablehlo.xor %3, %9 : tensor<2xui32>
    %11 = stablehlo.slice %arg6 [1:2] : (tensor<4xui32>) -> tensor<1xui32>
    %12 = stablehlo.reshape %11 : (tensor<1xui32>) -> tensor<ui32>
    %13 = stablehlo.add %3, %10 : tensor<2xui32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %15 = stablehlo.shift_left %10, %14 : tensor<2xui32>
    %16 = stablehlo.subtract %c, %12 : tensor<ui32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %18 = stablehlo.shift_right_logical %10, %17 : tensor<2xui32>
    %19 = stablehlo.or %15, %18 : tensor<2xui32>
    %20 = stablehlo.xor %13, %19 : tensor<2xui32>
    %21 = stablehlo.slice %arg6 [2:3] : (tensor<4xui32>) -> tensor<1xui32>
    %22 = stablehlo.reshape %21 : (tensor<1xui32>) -> tensor<ui32>
    %23 = stablehlo.add %13, %20 : tensor<2xui32>
    %24 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %25 = stablehlo.shift_left %20, %24 : tensor<2xui32>
    %26 = stablehlo.subtract %c, %22 : tensor<ui32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %28 = stablehlo.shift_right_logical %20, %27 : tensor<2xui32>
    %29 = stablehlo.or %25, %28 : tensor<2xui32>
    %30 = stablehlo.xor %23, %29 : tensor<2xui32>
    %31 = stablehlo.slice %arg6 [3:4] : (tensor<4xui32>) -> tensor<1xui32>
    %32 = stablehlo.reshape %31 : (tensor<1xui32>) -> tensor<ui32>
    %33 = stablehlo.add %23, %30 : tensor<2xui32>
    %34 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %35 = stablehlo.shift_left %30, %34 : tensor<2xui32>
    %36 = stablehlo.subtract %c, %32 : tensor<ui32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %38 = stablehlo.shift_right_logical %30, %37 : tensor<2xui32>
    %39 = stablehlo.or %35, %38 : tensor<2xui32>
    %40 = stablehlo.xor %33, %39 : tensor<2xui32>
    %41 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %42 = stablehlo.add %33, %41 : tensor<2xui32>
    %43 = stablehlo.broadcast_in_dim %arg4, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %44 = stablehlo.add %40, %43 : tensor<2xui32>
    %45 = stablehlo.add %arg0, %c_0 : tensor<i32>
    %46 = stablehlo.convert %45 : (tensor<i32>) -> tensor<ui32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %48 = stablehlo.add %44, %47 : tensor<2xui32>
    return %0, %42, %48, %arg4, %arg5, %arg3, %arg7, %arg6 : tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
  }
  func.func private @_bernoulli(%arg0: tensor<2xui32>, %arg1: tensor<f32>) -> tensor<9x40xi1> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = call @_uniform(%arg0, %cst, %cst_0) : (tensor<2xui32>, tensor<f32>, tensor<f32>) -> tensor<9x40xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %2 = stablehlo.compare LT, %0, %1, FLOAT : (tensor<9x40xf32>, tensor<9x40xf32>) -> tensor<9x40xi1>
    return %2 : tensor<9x40xi1>
  }
  func.func private @_uniform(%arg0: tensor<2xui32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<9x40xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<1065353216> : tensor<ui32>
    %c_0 = stablehlo.constant dense<9> : tensor<ui32>
    %c_1 = stablehlo.constant dense<32> : tensor<ui64>
    %c_2 = stablehlo.constant dense<1> : tensor<ui64>
    %c_3 = stablehlo.constant dense<40> : tensor<ui64>
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.convert %arg2 : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %4 = stablehlo.slice %arg0 [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %5 = stablehlo.reshape %4 : (tensor<1xui32>) -> tensor<ui32>
    %6 = stablehlo.slice %arg0 [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %7 = stablehlo.reshape %6 : (tensor<1xui32>) -> tensor<ui32>
    %8 = stablehlo.iota dim = 0 : tensor<9x40xui64>
    %9 = stablehlo.iota dim = 1 : tensor<9x40xui64>
    %10 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<ui64>) -> tensor<9x40xui64>
    %11 = stablehlo.multiply %10, %8 : tensor<9x40xui64>
    %12 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui64>) -> tensor<9x40xui64>
    %13 = stablehlo.multiply %12, %9 : tensor<9x40xui64>
    %14 = stablehlo.add %11, %13 : tensor<9x40xui64>
    %15 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui64>) -> tensor<9x40xui64>
    %16 = stablehlo.shift_right_logical %14, %15 : tensor<9x40xui64>
    %17 = stablehlo.convert %14 : (tensor<9x40xui64>) -> tensor<9x40xui32>
    %18 = stablehlo.convert %16 : (tensor<9x40xui64>) -> tensor<9x40xui32>
    %19:2 = call @threefry2x32_0(%5, %7, %18, %17) : (tensor<ui32>, tensor<ui32>, tensor<9x40xui32>, tensor<9x40xui32>) -> (tensor<9x40xui32>, tensor<9x40xui32>)
    %20 = stablehlo.xor %19#0, %19#1 : tensor<9x40xui32>
    %21 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %22 = stablehlo.shift_right_logical %20, %21 : tensor<9x40xui32>
    %23 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %24 = stablehlo.or %22, %23 : tensor<9x40xui32>
    %25 = stablehlo.bitcast_convert %24 : (tensor<9x40xui32>) -> tensor<9x40xf32>
    %26 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %27 = stablehlo.subtract %25, %26 : tensor<9x40xf32>
    %28 = stablehlo.subtract %3, %2 : tensor<1x1xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<9x40xf32>
    %30 = stablehlo.multiply %27, %29 : tensor<9x40xf32>
    %31 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<9x40xf32>
    %32 = stablehlo.add %30, %31 : tensor<9x40xf32>
    %33 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<9x40xf32>
    %34 = stablehlo.maximum %33, %32 : tensor<9x40xf32>
    return %34 : tensor<9x40xf32>
  }
  func.func private @threefry2x32_0(%arg0: tensor<ui32>, %arg1: tensor<ui32>, %arg2: tensor<9x40xui32>, %arg3: tensor<9x40xui32>) -> (tensor<9x40xui32>, tensor<9x40xui32>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<5> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<466688986> : tensor<ui32>
    %c_3 = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xui32>
    %c_4 = stablehlo.constant dense<[17, 29, 16, 24]> : tensor<4xui32>
    %0 = stablehlo.xor %arg0, %arg1 : tensor<ui32>
    %1 = stablehlo.xor %0, %c_2 : tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %3 = stablehlo.add %arg2, %2 : tensor<9x40xui32>
    %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %5 = stablehlo.add %arg3, %4 : tensor<9x40xui32>
    %6:9 = stablehlo.while(%iterArg = %c_1, %iterArg_5 = %c_1, %iterArg_6 = %3, %iterArg_7 = %5, %iterArg_8 = %arg1, %iterArg_9 = %1, %iterArg_10 = %arg0, %iterArg_11 = %c_3, %iterArg_12 = %c_4) : tensor<i32>, tensor<i32>, tensor<9x40xui32>, tensor<9x40xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
    cond {
      %7 = stablehlo.compare LT, %iterArg, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    } do {
      %7:8 = func.call @closed_call_1(%iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12) : (tensor<i32>, tensor<9x40xui32>, tensor<9x40xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<9x40xui32>, tensor<9x40xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>)
      %8 = stablehlo.add %iterArg, %c : tensor<i32>
      stablehlo.return %8, %7#0, %7#1, %7#2, %7#3, %7#4, %7#5, %7#6, %7#7 : tensor<i32>, tensor<i32>, tensor<9x40xui32>, tensor<9x40xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
    }
    return %6#2, %6#3 : tensor<9x40xui32>, tensor<9x40xui32>
  }
  func.func private @closed_call_1(%arg0: tensor<i32>, %arg1: tensor<9x40xui32>, %arg2: tensor<9x40xui32>, %arg3: tensor<ui32>, %arg4: tensor<ui32>, %arg5: tensor<ui32>, %arg6: tensor<4xui32>, %arg7: tensor<4xui32>) -> (tensor<i32>, tensor<9x40xui32>, tensor<9x40xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) {
    %c = stablehlo.constant dense<32> : tensor<ui32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %arg0, %c_0 : tensor<i32>
    %1 = stablehlo.slice %arg6 [0:1] : (tensor<4xui32>) -> tensor<1xui32>
    %2 = stablehlo.reshape %1 : (tensor<1xui32>) -> tensor<ui32>
    %3 = stablehlo.add %arg1, %arg2 : tensor<9x40xui32>
    %4 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %5 = stablehlo.shift_left %arg2, %4 : tensor<9x40xui32>
    %6 = stablehlo.subtract %c, %2 : tensor<ui32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %8 = stablehlo.shift_right_logical %arg2, %7 : tensor<9x40xui32>
    %9 = stablehlo.or %5, %8 : tensor<9x40xui32>
    %10 = stablehlo.xor %3, %9 : tensor<9x40xui32>
    %11 = stablehlo.slice %arg6 [1:2] : (tensor<4xui32>) -> tensor<1xui32>
    %12 = stablehlo.reshape %11 : (tensor<1xui32>) -> tensor<ui32>
    %13 = stablehlo.add %3, %10 : tensor<9x40xui32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %15 = stablehlo.shift_left %10, %14 : tensor<9x40xui32>
    %16 = stablehlo.subtract %c, %12 : tensor<ui32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %18 = stablehlo.shift_right_logical %10, %17 : tensor<9x40xui32>
    %19 = stablehlo.or %15, %18 : tensor<9x40xui32>
    %20 = stablehlo.xor %13, %19 : tensor<9x40xui32>
    %21 = stablehlo.slice %arg6 [2:3] : (tensor<4xui32>) -> tensor<1xui32>
    %22 = stablehlo.reshape %21 : (tensor<1xui32>) -> tensor<ui32>
    %23 = stablehlo.add %13, %20 : tensor<9x40xui32>
    %24 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %25 = stablehlo.shift_left %20, %24 : tensor<9x40xui32>
    %26 = stablehlo.subtract %c, %22 : tensor<ui32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %28 = stablehlo.shift_right_logical %20, %27 : tensor<9x40xui32>
    %29 = stablehlo.or %25, %28 : tensor<9x40xui32>
    %30 = stablehlo.xor %23, %29 : tensor<9x40xui32>
    %31 = stablehlo.slice %arg6 [3:4] : (tensor<4xui32>) -> tensor<1xui32>
    %32 = stablehlo.reshape %31 : (tensor<1xui32>) -> tensor<ui32>
    %33 = stablehlo.add %23, %30 : tensor<9x40xui32>
    %34 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %35 = stablehlo.shift_left %30, %34 : tensor<9x40xui32>
    %36 = stablehlo.subtract %c, %32 : tensor<ui32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %38 = stablehlo.shift_right_logical %30, %37 : tensor<9x40xui32>
    %39 = stablehlo.or %35, %38 : tensor<9x40xui32>
    %40 = stablehlo.xor %33, %39 : tensor<9x40xui32>
    %41 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %42 = stablehlo.add %33, %41 : tensor<9x40xui32>
    %43 = stablehlo.broadcast_in_dim %arg4, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %44 = stablehlo.add %40, %43 : tensor<9x40xui32>
    %45 = stablehlo.add %arg0, %c_0 : tensor<i32>
    %46 = stablehlo.convert %45 : (tensor<i32>) -> tensor<ui32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %48 = stablehlo.add %44, %47 : tensor<9x40xui32>
    return %0, %42, %48, %arg4, %arg5, %arg3, %arg7, %arg6 : tensor<i32>, tensor<9x40xui32>, tensor<9x40xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
  }
  func.func private @_normal(%arg0: tensor<2xui32>) -> tensor<9x40xf32> {
    %0 = call @_normal_real(%arg0) : (tensor<2xui32>) -> tensor<9x40xf32>
    return %0 : tensor<9x40xf32>
  }
  func.func private @_normal_real(%arg0: tensor<2xui32>) -> tensor<9x40xf32> {
    %cst = stablehlo.constant dense<0x7F800000> : tensor<9x40xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<9x40xf32>
    %cst_1 = stablehlo.constant dense<2.83297682> : tensor<9x40xf32>
    %cst_2 = stablehlo.constant dense<1.50140941> : tensor<9x40xf32>
    %cst_3 = stablehlo.constant dense<1.00167406> : tensor<9x40xf32>
    %cst_4 = stablehlo.constant dense<0.246640727> : tensor<9x40xf32>
    %cst_5 = stablehlo.constant dense<0.00943887047> : tensor<9x40xf32>
    %cst_6 = stablehlo.constant dense<-0.00417768164> : tensor<9x40xf32>
    %cst_7 = stablehlo.constant dense<-0.0076224613> : tensor<9x40xf32>
    %cst_8 = stablehlo.constant dense<-0.00125372503> : tensor<9x40xf32>
    %cst_9 = stablehlo.constant dense<0.00573950773> : tensor<9x40xf32>
    %cst_10 = stablehlo.constant dense<2.1858087E-4> : tensor<9x40xf32>
    %cst_11 = stablehlo.constant dense<-0.00367342844> : tensor<9x40xf32>
    %cst_12 = stablehlo.constant dense<-4.39150654E-6> : tensor<9x40xf32>
    %cst_13 = stablehlo.constant dense<0.00134934322> : tensor<9x40xf32>
    %cst_14 = stablehlo.constant dense<-3.5233877E-6> : tensor<9x40xf32>
    %cst_15 = stablehlo.constant dense<1.00950558E-4> : tensor<9x40xf32>
    %cst_16 = stablehlo.constant dense<3.43273939E-7> : tensor<9x40xf32>
    %cst_17 = stablehlo.constant dense<-2.00214257E-4> : tensor<9x40xf32>
    %cst_18 = stablehlo.constant dense<2.81022636E-8> : tensor<9x40xf32>
    %cst_19 = stablehlo.constant dense<3.000000e+00> : tensor<9x40xf32>
    %cst_20 = stablehlo.constant dense<2.500000e+00> : tensor<9x40xf32>
    %cst_21 = stablehlo.constant dense<5.000000e+00> : tensor<9x40xf32>
    %cst_22 = stablehlo.constant dense<1.41421354> : tensor<f32>
    %cst_23 = stablehlo.constant dense<-0.99999994> : tensor<f32>
    %cst_24 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = call @_uniform_2(%arg0, %cst_23, %cst_24) : (tensor<2xui32>, tensor<f32>, tensor<f32>) -> tensor<9x40xf32>
    %1 = stablehlo.negate %0 : tensor<9x40xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<9x40xf32>
    %3 = stablehlo.log_plus_one %2 : tensor<9x40xf32>
    %4 = stablehlo.negate %3 : tensor<9x40xf32>
    %5 = stablehlo.compare LT, %4, %cst_21 : (tensor<9x40xf32>, tensor<9x40xf32>) -> tensor<9x40xi1>
    %6 = stablehlo.subtract %4, %cst_20 : tensor<9x40xf32>
    %7 = stablehlo.sqrt %4 : tensor<9x40xf32>
    %8 = stablehlo.subtract %7, %cst_19 : tensor<9x40xf32>
    %9 = stablehlo.select %5, %6, %8 : tensor<9x40xi1>, tensor<9x40xf32>
    %10 = stablehlo.select %5, %cst_18, %cst_17 : tensor<9x40xi1>, tensor<9x40xf32>
    %11 = stablehlo.select %5, %cst_16, %cst_15 : tensor<9x40xi1>, tensor<9x40xf32>
    %12 = stablehlo.multiply %10, %9 : tensor<9x40xf32>
    %13 = stablehlo.add %11, %12 : tensor<9x40xf32>
    %14 = stablehlo.select %5, %cst_14, %cst_13 : tensor<9x40xi1>, tensor<9x40xf32>
    %15 = stablehlo.multiply %13, %9 : tensor<9x40xf32>
    %16 = stablehlo.add %14, %15 : tensor<9x40xf32>
    %17 = stablehlo.select %5, %cst_12, %cst_11 : tensor<9x40xi1>, tensor<9x40xf32>
    %18 = stablehlo.multiply %16, %9 : tensor<9x40xf32>
    %19 = stablehlo.add %17, %18 : tensor<9x40xf32>
    %20 = stablehlo.select %5, %cst_10, %cst_9 : tensor<9x40xi1>, tensor<9x40xf32>
    %21 = stablehlo.multiply %19, %9 : tensor<9x40xf32>
    %22 = stablehlo.add %20, %21 : tensor<9x40xf32>
    %23 = stablehlo.select %5, %cst_8, %cst_7 : tensor<9x40xi1>, tensor<9x40xf32>
    %24 = stablehlo.multiply %22, %9 : tensor<9x40xf32>
    %25 = stablehlo.add %23, %24 : tensor<9x40xf32>
    %26 = stablehlo.select %5, %cst_6, %cst_5 : tensor<9x40xi1>, tensor<9x40xf32>
    %27 = stablehlo.multiply %25, %9 : tensor<9x40xf32>
    %28 = stablehlo.add %26, %27 : tensor<9x40xf32>
    %29 = stablehlo.select %5, %cst_4, %cst_3 : tensor<9x40xi1>, tensor<9x40xf32>
    %30 = stablehlo.multiply %28, %9 : tensor<9x40xf32>
    %31 = stablehlo.add %29, %30 : tensor<9x40xf32>
    %32 = stablehlo.select %5, %cst_2, %cst_1 : tensor<9x40xi1>, tensor<9x40xf32>
    %33 = stablehlo.multiply %31, %9 : tensor<9x40xf32>
    %34 = stablehlo.add %32, %33 : tensor<9x40xf32>
    %35 = stablehlo.multiply %34, %0 : tensor<9x40xf32>
    %36 = stablehlo.abs %0 : tensor<9x40xf32>
    %37 = stablehlo.compare EQ, %36, %cst_0 : (tensor<9x40xf32>, tensor<9x40xf32>) -> tensor<9x40xi1>
    %38 = stablehlo.multiply %0, %cst : tensor<9x40xf32>
    %39 = stablehlo.select %37, %38, %35 : tensor<9x40xi1>, tensor<9x40xf32>
    %40 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %41 = stablehlo.multiply %40, %39 : tensor<9x40xf32>
    return %41 : tensor<9x40xf32>
  }
  func.func private @_uniform_2(%arg0: tensor<2xui32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<9x40xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<1065353216> : tensor<ui32>
    %c_0 = stablehlo.constant dense<9> : tensor<ui32>
    %c_1 = stablehlo.constant dense<32> : tensor<ui64>
    %c_2 = stablehlo.constant dense<1> : tensor<ui64>
    %c_3 = stablehlo.constant dense<40> : tensor<ui64>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %2 = stablehlo.slice %arg0 [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %3 = stablehlo.reshape %2 : (tensor<1xui32>) -> tensor<ui32>
    %4 = stablehlo.slice %arg0 [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %5 = stablehlo.reshape %4 : (tensor<1xui32>) -> tensor<ui32>
    %6 = stablehlo.iota dim = 0 : tensor<9x40xui64>
    %7 = stablehlo.iota dim = 1 : tensor<9x40xui64>
    %8 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<ui64>) -> tensor<9x40xui64>
    %9 = stablehlo.multiply %8, %6 : tensor<9x40xui64>
    %10 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui64>) -> tensor<9x40xui64>
    %11 = stablehlo.multiply %10, %7 : tensor<9x40xui64>
    %12 = stablehlo.add %9, %11 : tensor<9x40xui64>
    %13 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui64>) -> tensor<9x40xui64>
    %14 = stablehlo.shift_right_logical %12, %13 : tensor<9x40xui64>
    %15 = stablehlo.convert %12 : (tensor<9x40xui64>) -> tensor<9x40xui32>
    %16 = stablehlo.convert %14 : (tensor<9x40xui64>) -> tensor<9x40xui32>
    %17:2 = call @threefry2x32_0(%3, %5, %16, %15) : (tensor<ui32>, tensor<ui32>, tensor<9x40xui32>, tensor<9x40xui32>) -> (tensor<9x40xui32>, tensor<9x40xui32>)
    %18 = stablehlo.xor %17#0, %17#1 : tensor<9x40xui32>
    %19 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %20 = stablehlo.shift_right_logical %18, %19 : tensor<9x40xui32>
    %21 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<9x40xui32>
    %22 = stablehlo.or %20, %21 : tensor<9x40xui32>
    %23 = stablehlo.bitcast_convert %22 : (tensor<9x40xui32>) -> tensor<9x40xf32>
    %24 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %25 = stablehlo.subtract %23, %24 : tensor<9x40xf32>
    %26 = stablehlo.subtract %1, %0 : tensor<1x1xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<9x40xf32>
    %28 = stablehlo.multiply %25, %27 : tensor<9x40xf32>
    %29 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<9x40xf32>
    %30 = stablehlo.add %28, %29 : tensor<9x40xf32>
    %31 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<9x40xf32>
    %32 = stablehlo.maximum %31, %30 : tensor<9x40xf32>
    return %32 : tensor<9x40xf32>
  }
  func.func private @_where(%arg0: tensor<9x40xi1>, %arg1: tensor<9x40xf32>, %arg2: tensor<i32>) -> tensor<9x40xf32> {
    %0 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<9x40xi1>, tensor<9x40xf32>
    return %2 : tensor<9x40xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<9x3xf32>, %arg1: tensor<9x1xi32>) -> (tensor<9x1xf32>, tensor<9x1x1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<2> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<3> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<9x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<9x1xi32>, tensor<9x1xi32>) -> tensor<9x1xi1>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<9x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<9x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<9x1xi1>, tensor<9x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<9x1xi32>) -> tensor<9x1x1xi32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<9x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<9x1x1xi32>, tensor<9x1x1xi32>) -> tensor<9x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<9x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<9x1x1xi32>, tensor<9x1x1xi32>) -> tensor<9x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<9x1x1xi1>
    %12 = stablehlo.reduce(%11 init: %c) applies stablehlo.and across dimensions = [2] : (tensor<9x1x1xi1>, tensor<i1>) -> tensor<9x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<9x3xf32>, tensor<9x1x1xi32>) -> tensor<9x1xf32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<9x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<9x1xi1>, tensor<9x1xf32>
    return %15, %5 : tensor<9x1xf32>, tensor<9x1x1xi32>
  }
  func.func private @_take(%arg0: tensor<9x1xf32>, %arg1: tensor<i32>) -> (tensor<9xf32>, tensor<1xi32>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = stablehlo.add %arg1, %c_1 : tensor<i32>
    %2 = call @_where_3(%0, %1, %arg1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.convert %3 : tensor<1xi32>
    %5 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %7 = stablehlo.compare LE, %4, %c_0, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %8 = stablehlo.and %6, %7 : tensor<1xi1>
    %9 = stablehlo.reduce(%8 init: %c) applies stablehlo.and across dimensions = [0] : (tensor<1xi1>, tensor<i1>) -> tensor<i1>
    %10 = "stablehlo.gather"(%arg0, %4) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, slice_sizes = array<i64: 9, 1>}> : (tensor<9x1xf32>, tensor<1xi32>) -> tensor<9xf32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<9xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<9xf32>
    %13 = stablehlo.select %11, %10, %12 : tensor<9xi1>, tensor<9xf32>
    return %13, %3 : tensor<9xf32>, tensor<1xi32>
  }
  func.func private @_where_3(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @_take_4(%arg0: tensor<1xi32>, %arg1: tensor<9xf32>) -> tensor<9x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<9x1xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<9x1xf32>, tensor<1xi32>, tensor<9xf32>) -> tensor<9x1xf32>
    return %1 : tensor<9x1xf32>
  }
  func.func private @take_along_axis_5(%arg0: tensor<9x1x1xi32>, %arg1: tensor<9x1xf32>) -> tensor<9x3xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<9x3xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<9x3xf32>, tensor<9x1x1xi32>, tensor<9x1xf32>) -> tensor<9x3xf32>
    return %1 : tensor<9x3xf32>
  }
  func.func private @_where_6(%arg0: tensor<9x40xi1>, %arg1: tensor<9x40xf32>) -> tensor<9x40xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<9x40xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<9x40xi1>, tensor<9x40xf32>
    return %1 : tensor<9x40xf32>
  }
  func.func private @silu_7(%arg0: tensor<9x40xf32>, %arg1: tensor<9x40xf32>, %arg2: tensor<9x40xf32>, %arg3: tensor<9x40xf32>) -> tensor<9x40xf32> {
    %0 = stablehlo.multiply %arg2, %arg3 : tensor<9x40xf32>
    %1 = stablehlo.multiply %arg3, %arg1 : tensor<9x40xf32>
    %2 = stablehlo.multiply %0, %arg0 : tensor<9x40xf32>
    %3 = stablehlo.add %1, %2 : tensor<9x40xf32>
    return %3 : tensor<9x40xf32>
  }
}
