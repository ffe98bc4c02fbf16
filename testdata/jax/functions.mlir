module @jit_step attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x5xf32> {tf.aliasing_output = 0 : i32} loc("p['w']"), %arg1: tensor<i32> {tf.aliasing_output = 1 : i32} loc("s[0].count"), %arg2: tensor<4x5xf32> {tf.aliasing_output = 2 : i32} loc("s[0].mu['w']"), %arg3: tensor<4x5xf32> {tf.aliasing_output = 3 : i32} loc("s[0].nu['w']"), %arg4: tensor<4x5xf32> loc("data[0]")) -> (tensor<4x5xf32> {jax.result_info = "result[0]['w']"}, tensor<i32> {jax.result_info = "result[1][0].count"}, tensor<4x5xf32> {jax.result_info = "result[1][0].mu['w']"}, tensor<4x5xf32> {jax.result_info = "result[1][0].nu['w']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<0x7F800000> : tensor<4x5xf32>
    %cst_0 = stablehlo.constant dense<2.83297682> : tensor<4x5xf32>
    %cst_1 = stablehlo.constant dense<1.50140941> : tensor<4x5xf32>
    %cst_2 = stablehlo.constant dense<1.00167406> : tensor<4x5xf32>
    %cst_3 = stablehlo.constant dense<0.246640727> : tensor<4x5xf32>
    %cst_4 = stablehlo.constant dense<0.00943887047> : tensor<4x5xf32>
    %cst_5 = stablehlo.constant dense<-0.00417768164> : tensor<4x5xf32>
    %cst_6 = stablehlo.constant dense<-0.0076224613> : tensor<4x5xf32>
    %cst_7 = stablehlo.constant dense<-0.00125372503> : tensor<4x5xf32>
    %cst_8 = stablehlo.constant dense<0.00573950773> : tensor<4x5xf32>
    %cst_9 = stablehlo.constant dense<2.1858087E-4> : tensor<4x5xf32>
    %cst_10 = stablehlo.constant dense<-0.00367342844> : tensor<4x5xf32>
    %cst_11 = stablehlo.constant dense<-4.39150654E-6> : tensor<4x5xf32>
    %cst_12 = stablehlo.constant dense<0.00134934322> : tensor<4x5xf32>
    %cst_13 = stablehlo.constant dense<-3.5233877E-6> : tensor<4x5xf32>
    %cst_14 = stablehlo.constant dense<1.00950558E-4> : tensor<4x5xf32>
    %cst_15 = stablehlo.constant dense<3.43273939E-7> : tensor<4x5xf32>
    %cst_16 = stablehlo.constant dense<-2.00214257E-4> : tensor<4x5xf32>
    %cst_17 = stablehlo.constant dense<2.81022636E-8> : tensor<4x5xf32>
    %cst_18 = stablehlo.constant dense<3.000000e+00> : tensor<4x5xf32>
    %cst_19 = stablehlo.constant dense<2.500000e+00> : tensor<4x5xf32>
    %cst_20 = stablehlo.constant dense<5.000000e+00> : tensor<4x5xf32>
    %cst_21 = stablehlo.constant dense<1.12837911> : tensor<4x5xf32>
    %cst_22 = stablehlo.constant dense<-0.37612626> : tensor<4x5xf32>
    %cst_23 = stablehlo.constant dense<0.112835854> : tensor<4x5xf32>
    %cst_24 = stablehlo.constant dense<-0.0268538129> : tensor<4x5xf32>
    %cst_25 = stablehlo.constant dense<0.00518832775> : tensor<4x5xf32>
    %cst_26 = stablehlo.constant dense<-8.0101937E-4> : tensor<4x5xf32>
    %cst_27 = stablehlo.constant dense<7.85386146E-5> : tensor<4x5xf32>
    %cst_28 = stablehlo.constant dense<0.000000e+00> : tensor<4x5xf32>
    %cst_29 = stablehlo.constant dense<-88.7228394> : tensor<4x5xf32>
    %cst_30 = stablehlo.constant dense<0.564189494> : tensor<4x5xf32>
    %cst_31 = stablehlo.constant dense<-0.282076746> : tensor<4x5xf32>
    %cst_32 = stablehlo.constant dense<0.42184633> : tensor<4x5xf32>
    %cst_33 = stablehlo.constant dense<-1.01526523> : tensor<4x5xf32>
    %cst_34 = stablehlo.constant dense<2.92101908> : tensor<4x5xf32>
    %cst_35 = stablehlo.constant dense<-7.49551868> : tensor<4x5xf32>
    %cst_36 = stablehlo.constant dense<1.297720e+01> : tensor<4x5xf32>
    %cst_37 = stablehlo.constant dense<-10.477664> : tensor<4x5xf32>
    %cst_38 = stablehlo.constant dense<0.563825965> : tensor<4x5xf32>
    %cst_39 = stablehlo.constant dense<-0.274112701> : tensor<4x5xf32>
    %cst_40 = stablehlo.constant dense<3.404880e-01> : tensor<4x5xf32>
    %cst_41 = stablehlo.constant dense<-0.494451523> : tensor<4x5xf32>
    %cst_42 = stablehlo.constant dense<0.621000468> : tensor<4x5xf32>
    %cst_43 = stablehlo.constant dense<-0.582473278> : tensor<4x5xf32>
    %cst_44 = stablehlo.constant dense<0.368742466> : tensor<4x5xf32>
    %cst_45 = stablehlo.constant dense<-0.138703942> : tensor<4x5xf32>
    %cst_46 = stablehlo.constant dense<2.326820e-02> : tensor<4x5xf32>
    %cst_47 = stablehlo.constant dense<2.000000e+00> : tensor<4x5xf32>
    %cst_48 = stablehlo.constant dense<1.000000e+00> : tensor<4x5xf32>
    %cst_49 = stablehlo.constant dense<-0.00999999977> : tensor<f32>
    %cst_50 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_51 = stablehlo.constant dense<2147483647> : tensor<i32>
    %cst_52 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %cst_53 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %cst_54 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %cst_55 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %cst_56 = stablehlo.constant dense<1.12837923> : tensor<f32>
    %cst_57 = stablehlo.constant dense<-1.12837923> : tensor<f32>
    %cst_58 = stablehlo.constant dense<0.886226952> : tensor<f32>
    %cst_59 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %cst_60 = stablehlo.constant dense<5.000000e+00> : tensor<f32>
    %cst_61 = stablehlo.constant dense<2.000000e+01> : tensor<f32>
    %c_62 = stablehlo.constant dense<0> : tensor<i32>
    %cst_63 = stablehlo.constant dense<3.000000e-01> : tensor<f32>
    %cst_64 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_65 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_66 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %cst_67 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %cst_68 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %cst_69 = stablehlo.constant dense<-2.000000e-01> : tensor<f32>
    %cst_70 = stablehlo.constant dense<0.333333343> : tensor<f32>
    %cst_71 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %cst_72 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_73 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<4x5xf32>
    %1 = stablehlo.log_plus_one %0 : tensor<4x5xf32>
    %2 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %3 = stablehlo.add %0, %2 : tensor<4x5xf32>
    %4 = stablehlo.exponential_minus_one %arg0 : tensor<4x5xf32>
    %5 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %6 = stablehlo.add %4, %5 : tensor<4x5xf32>
    %7:2 = call @softplus(%arg0) : (tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>)
    %8 = stablehlo.composite "chlo.erf" %arg0 {decomposition = @chlo.erf.impl, version = 1 : i32} : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %9 = stablehlo.multiply %arg0, %arg0 : tensor<4x5xf32>
    %10 = stablehlo.negate %9 : tensor<4x5xf32>
    %11 = stablehlo.exponential %10 : tensor<4x5xf32>
    %12 = stablehlo.broadcast_in_dim %cst_72, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %13 = stablehlo.multiply %12, %arg0 : tensor<4x5xf32>
    %14 = stablehlo.negate %arg0 : tensor<4x5xf32>
    %15 = stablehlo.broadcast_in_dim %cst_71, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %16 = stablehlo.multiply %14, %15 : tensor<4x5xf32>
    %17 = stablehlo.multiply %16, %16 : tensor<4x5xf32>
    %18 = stablehlo.negate %17 : tensor<4x5xf32>
    %19 = stablehlo.abs %16 : tensor<4x5xf32>
    %20 = stablehlo.divide %cst_48, %17 : tensor<4x5xf32>
    %21 = stablehlo.exponential %18 : tensor<4x5xf32>
    %22 = stablehlo.divide %cst_48, %19 : tensor<4x5xf32>
    %23 = stablehlo.multiply %21, %22 : tensor<4x5xf32>
    %24 = stablehlo.compare LT, %19, %cst_47 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %25 = stablehlo.multiply %cst_46, %20 : tensor<4x5xf32>
    %26 = stablehlo.add %25, %cst_45 : tensor<4x5xf32>
    %27 = stablehlo.multiply %26, %20 : tensor<4x5xf32>
    %28 = stablehlo.add %27, %cst_44 : tensor<4x5xf32>
    %29 = stablehlo.multiply %28, %20 : tensor<4x5xf32>
    %30 = stablehlo.add %29, %cst_43 : tensor<4x5xf32>
    %31 = stablehlo.multiply %30, %20 : tensor<4x5xf32>
    %32 = stablehlo.add %31, %cst_42 : tensor<4x5xf32>
    %33 = stablehlo.multiply %32, %20 : tensor<4x5xf32>
    %34 = stablehlo.add %33, %cst_41 : tensor<4x5xf32>
    %35 = stablehlo.multiply %34, %20 : tensor<4x5xf32>
    %36 = stablehlo.add %35, %cst_40 : tensor<4x5xf32>
    %37 = stablehlo.multiply %36, %20 : tensor<4x5xf32>
    %38 = stablehlo.add %37, %cst_39 : tensor<4x5xf32>
    %39 = stablehlo.multiply %38, %20 : tensor<4x5xf32>
    %40 = stablehlo.add %39, %cst_38 : tensor<4x5xf32>
    %41 = stablehlo.multiply %cst_37, %20 : tensor<4x5xf32>
    %42 = stablehlo.add %41, %cst_36 : tensor<4x5xf32>
    %43 = stablehlo.multiply %42, %20 : tensor<4x5xf32>
    %44 = stablehlo.add %43, %cst_35 : tensor<4x5xf32>
    %45 = stablehlo.multiply %44, %20 : tensor<4x5xf32>
    %46 = stablehlo.add %45, %cst_34 : tensor<4x5xf32>
    %47 = stablehlo.multiply %46, %20 : tensor<4x5xf32>
    %48 = stablehlo.add %47, %cst_33 : tensor<4x5xf32>
    %49 = stablehlo.multiply %48, %20 : tensor<4x5xf32>
    %50 = stablehlo.add %49, %cst_32 : tensor<4x5xf32>
    %51 = stablehlo.multiply %50, %20 : tensor<4x5xf32>
    %52 = stablehlo.add %51, %cst_31 : tensor<4x5xf32>
    %53 = stablehlo.multiply %52, %20 : tensor<4x5xf32>
    %54 = stablehlo.add %53, %cst_30 : tensor<4x5xf32>
    %55 = stablehlo.select %24, %40, %54 : tensor<4x5xi1>, tensor<4x5xf32>
    %56 = stablehlo.multiply %23, %55 : tensor<4x5xf32>
    %57 = stablehlo.compare LT, %18, %cst_29 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %58 = stablehlo.select %57, %cst_28, %56 : tensor<4x5xi1>, tensor<4x5xf32>
    %59 = stablehlo.compare LT, %16, %cst_28 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %60 = stablehlo.subtract %cst_47, %58 : tensor<4x5xf32>
    %61 = stablehlo.select %59, %60, %58 : tensor<4x5xi1>, tensor<4x5xf32>
    %62 = stablehlo.multiply %16, %16 : tensor<4x5xf32>
    %63 = stablehlo.multiply %cst_27, %62 : tensor<4x5xf32>
    %64 = stablehlo.add %63, %cst_26 : tensor<4x5xf32>
    %65 = stablehlo.multiply %64, %62 : tensor<4x5xf32>
    %66 = stablehlo.add %65, %cst_25 : tensor<4x5xf32>
    %67 = stablehlo.multiply %66, %62 : tensor<4x5xf32>
    %68 = stablehlo.add %67, %cst_24 : tensor<4x5xf32>
    %69 = stablehlo.multiply %68, %62 : tensor<4x5xf32>
    %70 = stablehlo.add %69, %cst_23 : tensor<4x5xf32>
    %71 = stablehlo.multiply %70, %62 : tensor<4x5xf32>
    %72 = stablehlo.add %71, %cst_22 : tensor<4x5xf32>
    %73 = stablehlo.multiply %72, %62 : tensor<4x5xf32>
    %74 = stablehlo.add %73, %cst_21 : tensor<4x5xf32>
    %75 = stablehlo.multiply %16, %74 : tensor<4x5xf32>
    %76 = stablehlo.subtract %cst_48, %75 : tensor<4x5xf32>
    %77 = stablehlo.abs %16 : tensor<4x5xf32>
    %78 = stablehlo.compare LT, %77, %cst_48 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %79 = stablehlo.select %78, %76, %61 : tensor<4x5xi1>, tensor<4x5xf32>
    %80 = stablehlo.multiply %16, %16 : tensor<4x5xf32>
    %81 = stablehlo.negate %80 : tensor<4x5xf32>
    %82 = stablehlo.exponential %81 : tensor<4x5xf32>
    %83 = stablehlo.multiply %13, %79 : tensor<4x5xf32>
    %84 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %85 = stablehlo.add %84, %arg0 : tensor<4x5xf32>
    %86 = stablehlo.cbrt %85 : tensor<4x5xf32>
    %87 = stablehlo.multiply %86, %86 : tensor<4x5xf32>
    %88 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %89 = stablehlo.divide %88, %87 : tensor<4x5xf32>
    %90 = stablehlo.broadcast_in_dim %cst_70, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %91 = stablehlo.multiply %90, %89 : tensor<4x5xf32>
    %92:3 = call @clip(%arg0, %cst_69, %cst_68) : (tensor<4x5xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
    %93 = stablehlo.broadcast_in_dim %cst_67, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %94 = stablehlo.multiply %arg0, %93 : tensor<4x5xf32>
    %95 = call @round(%94) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %96 = stablehlo.add %95, %arg0 : tensor<4x5xf32>
    %97 = stablehlo.sine %arg0 : tensor<4x5xf32>
    %98 = stablehlo.cosine %arg0 : tensor<4x5xf32>
    %99 = stablehlo.cosine %arg0 : tensor<4x5xf32>
    %100 = stablehlo.sine %arg0 : tensor<4x5xf32>
    %101 = stablehlo.multiply %97, %99 : tensor<4x5xf32>
    %102 = stablehlo.tan %arg0 : tensor<4x5xf32>
    %103 = stablehlo.multiply %102, %102 : tensor<4x5xf32>
    %104 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %105 = stablehlo.add %104, %103 : tensor<4x5xf32>
    %106 = stablehlo.add %101, %102 : tensor<4x5xf32>
    %107 = stablehlo.atan2 %arg0, %cst_48 : tensor<4x5xf32>
    %108 = stablehlo.multiply %arg0, %arg0 : tensor<4x5xf32>
    %109 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %110 = stablehlo.add %109, %108 : tensor<4x5xf32>
    %111 = stablehlo.composite "chlo.sinh" %arg0 {decomposition = @chlo.sinh.impl, version = 1 : i32} : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %112 = stablehlo.composite "chlo.cosh" %arg0 {decomposition = @chlo.cosh.impl, version = 1 : i32} : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %113 = stablehlo.add %107, %111 : tensor<4x5xf32>
    %114 = stablehlo.composite "chlo.cosh" %arg0 {decomposition = @chlo.cosh.impl_0, version = 1 : i32} : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %115 = stablehlo.composite "chlo.sinh" %arg0 {decomposition = @chlo.sinh.impl_1, version = 1 : i32} : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %116 = stablehlo.add %113, %114 : tensor<4x5xf32>
    %117 = stablehlo.floor %arg0 : tensor<4x5xf32>
    %118 = stablehlo.sign %arg0 : tensor<4x5xf32>
    %119 = stablehlo.multiply %118, %arg0 : tensor<4x5xf32>
    %120 = stablehlo.add %117, %119 : tensor<4x5xf32>
    %121 = stablehlo.add %arg4, %arg0 : tensor<4x5xf32>
    %122 = stablehlo.multiply %121, %121 : tensor<4x5xf32>
    %123 = stablehlo.multiply %122, %121 : tensor<4x5xf32>
    %124 = stablehlo.multiply %121, %121 : tensor<4x5xf32>
    %125 = stablehlo.broadcast_in_dim %cst_67, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %126 = stablehlo.multiply %125, %124 : tensor<4x5xf32>
    %127 = stablehlo.broadcast_in_dim %cst_66, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %128 = stablehlo.add %127, %arg0 : tensor<4x5xf32>
    %129 = stablehlo.divide %123, %128 : tensor<4x5xf32>
    %130 = stablehlo.multiply %128, %128 : tensor<4x5xf32>
    %131 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %132 = stablehlo.divide %131, %130 : tensor<4x5xf32>
    %133 = stablehlo.reduce(%arg0 init: %cst_65) applies stablehlo.maximum across dimensions = [0] : (tensor<4x5xf32>, tensor<f32>) -> tensor<5xf32>
    %134 = stablehlo.broadcast_in_dim %cst_65, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %135 = stablehlo.maximum %134, %133 : tensor<5xf32>
    %136 = stablehlo.is_finite %135 : (tensor<5xf32>) -> tensor<5xi1>
    %137 = stablehlo.broadcast_in_dim %cst_64, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %138 = stablehlo.select %136, %135, %137 : tensor<5xi1>, tensor<5xf32>
    %139 = stablehlo.broadcast_in_dim %138, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %140 = stablehlo.broadcast_in_dim %139, dims = [0, 1] : (tensor<1x5xf32>) -> tensor<4x5xf32>
    %141 = stablehlo.subtract %arg0, %140 : tensor<4x5xf32>
    %142 = stablehlo.exponential %141 : tensor<4x5xf32>
    %143 = stablehlo.reduce(%142 init: %cst_64) applies stablehlo.add across dimensions = [0] : (tensor<4x5xf32>, tensor<f32>) -> tensor<5xf32>
    %144 = stablehlo.abs %143 : tensor<5xf32>
    %145 = stablehlo.broadcast_in_dim %cst_64, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %146 = stablehlo.compare GE, %143, %145, FLOAT : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi1>
    %147 = stablehlo.log %144 : tensor<5xf32>
    %148 = stablehlo.add %147, %138 : tensor<5xf32>
    %149 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %150 = stablehlo.add %149, %arg0 : tensor<4x5xf32>
    %151 = stablehlo.transpose %150, dims = [1, 0] : (tensor<4x5xf32>) -> tensor<5x4xf32>
    %152 = stablehlo.reshape %151 : (tensor<5x4xf32>) -> tensor<5x4xf32>
    %153 = stablehlo.slice %152 [0:3, 0:4] : (tensor<5x4xf32>) -> tensor<3x4xf32>
    %154 = stablehlo.slice %152 [3:5, 0:4] : (tensor<5x4xf32>) -> tensor<2x4xf32>
    %155 = stablehlo.pad %154, %cst_73, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    %156 = stablehlo.multiply %153, %155 : tensor<3x4xf32>
    %157 = stablehlo.slice %156 [0:2, 0:4] : (tensor<3x4xf32>) -> tensor<2x4xf32>
    %158 = stablehlo.slice %156 [2:3, 0:4] : (tensor<3x4xf32>) -> tensor<1x4xf32>
    %159 = stablehlo.pad %158, %cst_73, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %160 = stablehlo.multiply %157, %159 : tensor<2x4xf32>
    %161 = stablehlo.slice %160 [0:1, 0:4] : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %162 = stablehlo.slice %160 [1:2, 0:4] : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %163 = stablehlo.multiply %161, %162 : tensor<1x4xf32>
    %164 = stablehlo.reshape %163 : (tensor<1x4xf32>) -> tensor<4xf32>
    %165 = stablehlo.reduce(%164 init: %cst_64) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %166 = stablehlo.broadcast_in_dim %165, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %167 = stablehlo.add %148, %166 : tensor<5xf32>
    %168:2 = call @remainder(%arg0, %cst_63) : (tensor<4x5xf32>, tensor<f32>) -> (tensor<4x5xf32>, tensor<4x5xi1>)
    %169 = stablehlo.tanh %arg0 : tensor<4x5xf32>
    %170 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %171 = stablehlo.subtract %170, %169 : tensor<4x5xf32>
    %172 = stablehlo.negate %169 : tensor<4x5xf32>
    %173 = stablehlo.multiply %169, %172 : tensor<4x5xf32>
    %174 = stablehlo.log_plus_one %173 : tensor<4x5xf32>
    %175 = stablehlo.negate %174 : tensor<4x5xf32>
    %176 = stablehlo.compare LT, %175, %cst_20 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %177 = stablehlo.subtract %175, %cst_19 : tensor<4x5xf32>
    %178 = stablehlo.sqrt %175 : tensor<4x5xf32>
    %179 = stablehlo.subtract %178, %cst_18 : tensor<4x5xf32>
    %180 = stablehlo.select %176, %177, %179 : tensor<4x5xi1>, tensor<4x5xf32>
    %181 = stablehlo.select %176, %cst_17, %cst_16 : tensor<4x5xi1>, tensor<4x5xf32>
    %182 = stablehlo.select %176, %cst_15, %cst_14 : tensor<4x5xi1>, tensor<4x5xf32>
    %183 = stablehlo.multiply %181, %180 : tensor<4x5xf32>
    %184 = stablehlo.add %182, %183 : tensor<4x5xf32>
    %185 = stablehlo.select %176, %cst_13, %cst_12 : tensor<4x5xi1>, tensor<4x5xf32>
    %186 = stablehlo.multiply %184, %180 : tensor<4x5xf32>
    %187 = stablehlo.add %185, %186 : tensor<4x5xf32>
    %188 = stablehlo.select %176, %cst_11, %cst_10 : tensor<4x5xi1>, tensor<4x5xf32>
    %189 = stablehlo.multiply %187, %180 : tensor<4x5xf32>
    %190 = stablehlo.add %188, %189 : tensor<4x5xf32>
    %191 = stablehlo.select %176, %cst_9, %cst_8 : tensor<4x5xi1>, tensor<4x5xf32>
    %192 = stablehlo.multiply %190, %180 : tensor<4x5xf32>
    %193 = stablehlo.add %191, %192 : tensor<4x5xf32>
    %194 = stablehlo.select %176, %cst_7, %cst_6 : tensor<4x5xi1>, tensor<4x5xf32>
    %195 = stablehlo.multiply %193, %180 : tensor<4x5xf32>
    %196 = stablehlo.add %194, %195 : tensor<4x5xf32>
    %197 = stablehlo.select %176, %cst_5, %cst_4 : tensor<4x5xi1>, tensor<4x5xf32>
    %198 = stablehlo.multiply %196, %180 : tensor<4x5xf32>
    %199 = stablehlo.add %197, %198 : tensor<4x5xf32>
    %200 = stablehlo.select %176, %cst_3, %cst_2 : tensor<4x5xi1>, tensor<4x5xf32>
    %201 = stablehlo.multiply %199, %180 : tensor<4x5xf32>
    %202 = stablehlo.add %200, %201 : tensor<4x5xf32>
    %203 = stablehlo.select %176, %cst_1, %cst_0 : tensor<4x5xi1>, tensor<4x5xf32>
    %204 = stablehlo.multiply %202, %180 : tensor<4x5xf32>
    %205 = stablehlo.add %203, %204 : tensor<4x5xf32>
    %206 = stablehlo.multiply %205, %169 : tensor<4x5xf32>
    %207 = stablehlo.abs %169 : tensor<4x5xf32>
    %208 = stablehlo.compare EQ, %207, %cst_48 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %209 = stablehlo.multiply %169, %cst : tensor<4x5xf32>
    %210 = stablehlo.select %208, %209, %206 : tensor<4x5xi1>, tensor<4x5xf32>
    %211 = stablehlo.multiply %210, %210 : tensor<4x5xf32>
    %212 = stablehlo.exponential %211 : tensor<4x5xf32>
    %213:2 = call @norm(%arg0) : (tensor<4x5xf32>) -> (tensor<f32>, tensor<f32>)
    %214 = call @cumsum(%arg0) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %215 = stablehlo.slice %214 [0:4, 4:5] : (tensor<4x5xf32>) -> tensor<4x1xf32>
    %216 = stablehlo.broadcast_in_dim %213#0, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %217 = stablehlo.add %216, %215 : tensor<4x1xf32>
    %218:4 = call @elu(%arg0) : (tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xi1>)
    %219:2 = call @leaky_relu(%arg0) : (tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xi1>)
    %220 = stablehlo.add %218#0, %219#0 : tensor<4x5xf32>
    %221:3 = call @hard_silu(%arg0) : (tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xi1>, tensor<4x5xf32>)
    %222 = stablehlo.add %220, %221#0 : tensor<4x5xf32>
    %223:5 = call @median(%arg0) : (tensor<4x5xf32>) -> (tensor<f32>, tensor<20xi1>, tensor<20x1xui32>, tensor<1xi32>, tensor<1xi32>)
    %224:5 = call @_std(%arg0, %c_62) : (tensor<4x5xf32>, tensor<i32>) -> (tensor<f32>, tensor<4x5xf32>, tensor<f32>, tensor<i1>, tensor<f32>)
    %225 = stablehlo.add %223#0, %224#0 : tensor<f32>
    %226 = stablehlo.multiply %1, %1 : tensor<4x5xf32>
    %227 = stablehlo.reduce(%226 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %228 = stablehlo.divide %227, %cst_61 : tensor<f32>
    %229 = stablehlo.add %cst_64, %228 : tensor<f32>
    %230 = stablehlo.multiply %4, %4 : tensor<4x5xf32>
    %231 = stablehlo.reduce(%230 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %232 = stablehlo.divide %231, %cst_61 : tensor<f32>
    %233 = stablehlo.add %229, %232 : tensor<f32>
    %234 = stablehlo.multiply %7#0, %7#0 : tensor<4x5xf32>
    %235 = stablehlo.reduce(%234 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %236 = stablehlo.divide %235, %cst_61 : tensor<f32>
    %237 = stablehlo.add %233, %236 : tensor<f32>
    %238 = stablehlo.multiply %8, %8 : tensor<4x5xf32>
    %239 = stablehlo.reduce(%238 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %240 = stablehlo.divide %239, %cst_61 : tensor<f32>
    %241 = stablehlo.add %237, %240 : tensor<f32>
    %242 = stablehlo.multiply %83, %83 : tensor<4x5xf32>
    %243 = stablehlo.reduce(%242 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %244 = stablehlo.divide %243, %cst_61 : tensor<f32>
    %245 = stablehlo.add %241, %244 : tensor<f32>
    %246 = stablehlo.multiply %86, %86 : tensor<4x5xf32>
    %247 = stablehlo.reduce(%246 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %248 = stablehlo.divide %247, %cst_61 : tensor<f32>
    %249 = stablehlo.add %245, %248 : tensor<f32>
    %250 = stablehlo.multiply %92#0, %92#0 : tensor<4x5xf32>
    %251 = stablehlo.reduce(%250 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %252 = stablehlo.divide %251, %cst_61 : tensor<f32>
    %253 = stablehlo.add %249, %252 : tensor<f32>
    %254 = stablehlo.multiply %96, %96 : tensor<4x5xf32>
    %255 = stablehlo.reduce(%254 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %256 = stablehlo.divide %255, %cst_61 : tensor<f32>
    %257 = stablehlo.add %253, %256 : tensor<f32>
    %258 = stablehlo.multiply %106, %106 : tensor<4x5xf32>
    %259 = stablehlo.reduce(%258 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %260 = stablehlo.divide %259, %cst_61 : tensor<f32>
    %261 = stablehlo.add %257, %260 : tensor<f32>
    %262 = stablehlo.multiply %116, %116 : tensor<4x5xf32>
    %263 = stablehlo.reduce(%262 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %264 = stablehlo.divide %263, %cst_61 : tensor<f32>
    %265 = stablehlo.add %261, %264 : tensor<f32>
    %266 = stablehlo.multiply %120, %120 : tensor<4x5xf32>
    %267 = stablehlo.reduce(%266 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %268 = stablehlo.divide %267, %cst_61 : tensor<f32>
    %269 = stablehlo.add %265, %268 : tensor<f32>
    %270 = stablehlo.multiply %129, %129 : tensor<4x5xf32>
    %271 = stablehlo.reduce(%270 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %272 = stablehlo.divide %271, %cst_61 : tensor<f32>
    %273 = stablehlo.add %269, %272 : tensor<f32>
    %274 = stablehlo.multiply %167, %167 : tensor<5xf32>
    %275 = stablehlo.reduce(%274 init: %cst_64) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
    %276 = stablehlo.divide %275, %cst_60 : tensor<f32>
    %277 = stablehlo.add %273, %276 : tensor<f32>
    %278 = stablehlo.multiply %168#0, %168#0 : tensor<4x5xf32>
    %279 = stablehlo.reduce(%278 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %280 = stablehlo.divide %279, %cst_61 : tensor<f32>
    %281 = stablehlo.add %277, %280 : tensor<f32>
    %282 = stablehlo.multiply %210, %210 : tensor<4x5xf32>
    %283 = stablehlo.reduce(%282 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %284 = stablehlo.divide %283, %cst_61 : tensor<f32>
    %285 = stablehlo.add %281, %284 : tensor<f32>
    %286 = stablehlo.multiply %217, %217 : tensor<4x1xf32>
    %287 = stablehlo.reduce(%286 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x1xf32>, tensor<f32>) -> tensor<f32>
    %288 = stablehlo.divide %287, %cst_59 : tensor<f32>
    %289 = stablehlo.add %285, %288 : tensor<f32>
    %290 = stablehlo.multiply %222, %222 : tensor<4x5xf32>
    %291 = stablehlo.reduce(%290 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %292 = stablehlo.divide %291, %cst_61 : tensor<f32>
    %293 = stablehlo.add %289, %292 : tensor<f32>
    %294 = stablehlo.multiply %225, %225 : tensor<f32>
    %295 = stablehlo.reduce(%294 init: %cst_64) applies stablehlo.add across dimensions = [] : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %296 = stablehlo.divide %295, %cst_73 : tensor<f32>
    %297 = stablehlo.add %293, %296 : tensor<f32>
    %298 = stablehlo.divide %cst_73, %cst_73 : tensor<f32>
    %299 = stablehlo.multiply %225, %298 : tensor<f32>
    %300 = stablehlo.multiply %298, %225 : tensor<f32>
    %301 = stablehlo.add %299, %300 : tensor<f32>
    %302 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %303 = stablehlo.broadcast_in_dim %302, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %304 = stablehlo.multiply %222, %303 : tensor<4x5xf32>
    %305 = stablehlo.multiply %303, %222 : tensor<4x5xf32>
    %306 = stablehlo.add %304, %305 : tensor<4x5xf32>
    %307 = stablehlo.divide %cst_73, %cst_59 : tensor<f32>
    %308 = stablehlo.broadcast_in_dim %307, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %309 = stablehlo.multiply %217, %308 : tensor<4x1xf32>
    %310 = stablehlo.multiply %308, %217 : tensor<4x1xf32>
    %311 = stablehlo.add %309, %310 : tensor<4x1xf32>
    %312 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %313 = stablehlo.broadcast_in_dim %312, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %314 = stablehlo.multiply %210, %313 : tensor<4x5xf32>
    %315 = stablehlo.multiply %313, %210 : tensor<4x5xf32>
    %316 = stablehlo.add %314, %315 : tensor<4x5xf32>
    %317 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %318 = stablehlo.broadcast_in_dim %317, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %319 = stablehlo.multiply %168#0, %318 : tensor<4x5xf32>
    %320 = stablehlo.multiply %318, %168#0 : tensor<4x5xf32>
    %321 = stablehlo.add %319, %320 : tensor<4x5xf32>
    %322 = stablehlo.divide %cst_73, %cst_60 : tensor<f32>
    %323 = stablehlo.broadcast_in_dim %322, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %324 = stablehlo.multiply %167, %323 : tensor<5xf32>
    %325 = stablehlo.multiply %323, %167 : tensor<5xf32>
    %326 = stablehlo.add %324, %325 : tensor<5xf32>
    %327 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %328 = stablehlo.broadcast_in_dim %327, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %329 = stablehlo.multiply %129, %328 : tensor<4x5xf32>
    %330 = stablehlo.multiply %328, %129 : tensor<4x5xf32>
    %331 = stablehlo.add %329, %330 : tensor<4x5xf32>
    %332 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %333 = stablehlo.broadcast_in_dim %332, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %334 = stablehlo.multiply %120, %333 : tensor<4x5xf32>
    %335 = stablehlo.multiply %333, %120 : tensor<4x5xf32>
    %336 = stablehlo.add %334, %335 : tensor<4x5xf32>
    %337 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %338 = stablehlo.broadcast_in_dim %337, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %339 = stablehlo.multiply %116, %338 : tensor<4x5xf32>
    %340 = stablehlo.multiply %338, %116 : tensor<4x5xf32>
    %341 = stablehlo.add %339, %340 : tensor<4x5xf32>
    %342 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %343 = stablehlo.broadcast_in_dim %342, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %344 = stablehlo.multiply %106, %343 : tensor<4x5xf32>
    %345 = stablehlo.multiply %343, %106 : tensor<4x5xf32>
    %346 = stablehlo.add %344, %345 : tensor<4x5xf32>
    %347 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %348 = stablehlo.broadcast_in_dim %347, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %349 = stablehlo.multiply %96, %348 : tensor<4x5xf32>
    %350 = stablehlo.multiply %348, %96 : tensor<4x5xf32>
    %351 = stablehlo.add %349, %350 : tensor<4x5xf32>
    %352 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %353 = stablehlo.broadcast_in_dim %352, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %354 = stablehlo.multiply %92#0, %353 : tensor<4x5xf32>
    %355 = stablehlo.multiply %353, %92#0 : tensor<4x5xf32>
    %356 = stablehlo.add %354, %355 : tensor<4x5xf32>
    %357 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %358 = stablehlo.broadcast_in_dim %357, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %359 = stablehlo.multiply %86, %358 : tensor<4x5xf32>
    %360 = stablehlo.multiply %358, %86 : tensor<4x5xf32>
    %361 = stablehlo.add %359, %360 : tensor<4x5xf32>
    %362 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %363 = stablehlo.broadcast_in_dim %362, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %364 = stablehlo.multiply %83, %363 : tensor<4x5xf32>
    %365 = stablehlo.multiply %363, %83 : tensor<4x5xf32>
    %366 = stablehlo.add %364, %365 : tensor<4x5xf32>
    %367 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %368 = stablehlo.broadcast_in_dim %367, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %369 = stablehlo.multiply %8, %368 : tensor<4x5xf32>
    %370 = stablehlo.multiply %368, %8 : tensor<4x5xf32>
    %371 = stablehlo.add %369, %370 : tensor<4x5xf32>
    %372 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %373 = stablehlo.broadcast_in_dim %372, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %374 = stablehlo.multiply %7#0, %373 : tensor<4x5xf32>
    %375 = stablehlo.multiply %373, %7#0 : tensor<4x5xf32>
    %376 = stablehlo.add %374, %375 : tensor<4x5xf32>
    %377 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %378 = stablehlo.broadcast_in_dim %377, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %379 = stablehlo.multiply %4, %378 : tensor<4x5xf32>
    %380 = stablehlo.multiply %378, %4 : tensor<4x5xf32>
    %381 = stablehlo.add %379, %380 : tensor<4x5xf32>
    %382 = stablehlo.divide %cst_73, %cst_61 : tensor<f32>
    %383 = stablehlo.broadcast_in_dim %382, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %384 = stablehlo.multiply %1, %383 : tensor<4x5xf32>
    %385 = stablehlo.multiply %383, %1 : tensor<4x5xf32>
    %386 = stablehlo.add %384, %385 : tensor<4x5xf32>
    %387 = call @_std_4(%224#1, %224#2, %224#3, %224#4, %301) : (tensor<4x5xf32>, tensor<f32>, tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<4x5xf32>
    %388 = stablehlo.add %351, %387 : tensor<4x5xf32>
    %389 = call @median_7(%223#1, %223#2, %223#3, %223#4, %301) : (tensor<20xi1>, tensor<20x1xui32>, tensor<1xi32>, tensor<1xi32>, tensor<f32>) -> tensor<4x5xf32>
    %390 = stablehlo.add %388, %389 : tensor<4x5xf32>
    %391 = call @hard_silu_10(%221#1, %221#2, %arg0, %306) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %392 = stablehlo.add %390, %391 : tensor<4x5xf32>
    %393 = call @leaky_relu_12(%219#1, %306) : (tensor<4x5xi1>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %394 = stablehlo.add %392, %393 : tensor<4x5xf32>
    %395 = call @elu_14(%218#1, %218#2, %218#3, %306) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xi1>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %396 = stablehlo.add %394, %395 : tensor<4x5xf32>
    %397 = stablehlo.reduce(%311 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x1xf32>, tensor<f32>) -> tensor<f32>
    %398 = stablehlo.pad %311, %cst_64, low = [0, 4], high = [0, 0], interior = [0, 0] : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x5xf32>
    %399 = call @cumsum_16(%398) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %400 = stablehlo.add %396, %399 : tensor<4x5xf32>
    %401 = call @norm_18(%arg0, %213#1, %397) : (tensor<4x5xf32>, tensor<f32>, tensor<f32>) -> tensor<4x5xf32>
    %402 = stablehlo.add %400, %401 : tensor<4x5xf32>
    %403 = stablehlo.broadcast_in_dim %cst_58, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %404 = stablehlo.multiply %403, %316 : tensor<4x5xf32>
    %405 = stablehlo.multiply %404, %212 : tensor<4x5xf32>
    %406 = stablehlo.multiply %405, %171 : tensor<4x5xf32>
    %407 = stablehlo.add %402, %406 : tensor<4x5xf32>
    %408 = stablehlo.multiply %406, %169 : tensor<4x5xf32>
    %409 = stablehlo.add %407, %408 : tensor<4x5xf32>
    %410 = call @remainder_19(%168#1, %321) : (tensor<4x5xi1>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %411 = stablehlo.add %409, %410 : tensor<4x5xf32>
    %412 = stablehlo.reduce(%326 init: %cst_64) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
    %413 = stablehlo.broadcast_in_dim %412, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %414 = stablehlo.broadcast_in_dim %413, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %415 = stablehlo.multiply %161, %414 : tensor<1x4xf32>
    %416 = stablehlo.multiply %414, %162 : tensor<1x4xf32>
    %417 = stablehlo.pad %415, %cst_64, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %418 = stablehlo.pad %416, %cst_64, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %419 = stablehlo.add %417, %418 : tensor<2x4xf32>
    %420 = stablehlo.multiply %157, %419 : tensor<2x4xf32>
    %421 = stablehlo.multiply %419, %159 : tensor<2x4xf32>
    %422 = stablehlo.pad %420, %cst_64, low = [0, 0], high = [-1, 0], interior = [0, 0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<1x4xf32>
    %423 = stablehlo.slice %422 [0:1, 0:4] : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %424 = stablehlo.pad %423, %cst_64, low = [2, 0], high = [0, 0], interior = [0, 0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    %425 = stablehlo.pad %421, %cst_64, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    %426 = stablehlo.add %424, %425 : tensor<3x4xf32>
    %427 = stablehlo.multiply %153, %426 : tensor<3x4xf32>
    %428 = stablehlo.multiply %426, %155 : tensor<3x4xf32>
    %429 = stablehlo.pad %427, %cst_64, low = [0, 0], high = [-1, 0], interior = [0, 0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %430 = stablehlo.slice %429 [0:2, 0:4] : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %431 = stablehlo.pad %430, %cst_64, low = [3, 0], high = [0, 0], interior = [0, 0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<5x4xf32>
    %432 = stablehlo.pad %428, %cst_64, low = [0, 0], high = [2, 0], interior = [0, 0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<5x4xf32>
    %433 = stablehlo.add %431, %432 : tensor<5x4xf32>
    %434 = stablehlo.transpose %433, dims = [1, 0] : (tensor<5x4xf32>) -> tensor<4x5xf32>
    %435 = stablehlo.add %411, %434 : tensor<4x5xf32>
    %436 = stablehlo.divide %326, %144 : tensor<5xf32>
    %437 = stablehlo.broadcast_in_dim %cst_64, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %438 = stablehlo.select %146, %437, %436 : tensor<5xi1>, tensor<5xf32>
    %439 = stablehlo.select %146, %436, %437 : tensor<5xi1>, tensor<5xf32>
    %440 = stablehlo.negate %438 : tensor<5xf32>
    %441 = stablehlo.add %439, %440 : tensor<5xf32>
    %442 = stablehlo.broadcast_in_dim %441, dims = [1] : (tensor<5xf32>) -> tensor<4x5xf32>
    %443 = stablehlo.multiply %442, %142 : tensor<4x5xf32>
    %444 = stablehlo.add %435, %443 : tensor<4x5xf32>
    %445 = stablehlo.multiply %331, %132 : tensor<4x5xf32>
    %446 = stablehlo.multiply %445, %123 : tensor<4x5xf32>
    %447 = stablehlo.negate %446 : tensor<4x5xf32>
    %448 = stablehlo.add %444, %447 : tensor<4x5xf32>
    %449 = stablehlo.divide %331, %128 : tensor<4x5xf32>
    %450 = stablehlo.multiply %449, %126 : tensor<4x5xf32>
    %451 = stablehlo.add %448, %450 : tensor<4x5xf32>
    %452 = stablehlo.multiply %118, %336 : tensor<4x5xf32>
    %453 = stablehlo.add %451, %452 : tensor<4x5xf32>
    %454 = stablehlo.multiply %341, %115 : tensor<4x5xf32>
    %455 = stablehlo.add %453, %454 : tensor<4x5xf32>
    %456 = stablehlo.multiply %341, %112 : tensor<4x5xf32>
    %457 = stablehlo.add %455, %456 : tensor<4x5xf32>
    %458 = stablehlo.divide %341, %110 : tensor<4x5xf32>
    %459 = stablehlo.add %457, %458 : tensor<4x5xf32>
    %460 = stablehlo.multiply %346, %105 : tensor<4x5xf32>
    %461 = stablehlo.add %459, %460 : tensor<4x5xf32>
    %462 = stablehlo.multiply %97, %346 : tensor<4x5xf32>
    %463 = stablehlo.multiply %346, %99 : tensor<4x5xf32>
    %464 = stablehlo.negate %462 : tensor<4x5xf32>
    %465 = stablehlo.multiply %464, %100 : tensor<4x5xf32>
    %466 = stablehlo.add %461, %465 : tensor<4x5xf32>
    %467 = stablehlo.multiply %463, %98 : tensor<4x5xf32>
    %468 = stablehlo.add %466, %467 : tensor<4x5xf32>
    %469 = call @clip_20(%92#1, %92#2, %356) : (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %470 = stablehlo.add %468, %469 : tensor<4x5xf32>
    %471 = stablehlo.multiply %361, %91 : tensor<4x5xf32>
    %472 = stablehlo.add %470, %471 : tensor<4x5xf32>
    %473 = stablehlo.multiply %13, %366 : tensor<4x5xf32>
    %474 = stablehlo.multiply %366, %79 : tensor<4x5xf32>
    %475 = stablehlo.broadcast_in_dim %cst_57, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %476 = stablehlo.multiply %475, %473 : tensor<4x5xf32>
    %477 = stablehlo.multiply %476, %82 : tensor<4x5xf32>
    %478 = stablehlo.broadcast_in_dim %cst_71, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %479 = stablehlo.multiply %477, %478 : tensor<4x5xf32>
    %480 = stablehlo.negate %479 : tensor<4x5xf32>
    %481 = stablehlo.add %472, %480 : tensor<4x5xf32>
    %482 = stablehlo.broadcast_in_dim %cst_72, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %483 = stablehlo.multiply %482, %474 : tensor<4x5xf32>
    %484 = stablehlo.add %481, %483 : tensor<4x5xf32>
    %485 = stablehlo.broadcast_in_dim %cst_56, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %486 = stablehlo.multiply %485, %371 : tensor<4x5xf32>
    %487 = stablehlo.multiply %486, %11 : tensor<4x5xf32>
    %488 = stablehlo.add %484, %487 : tensor<4x5xf32>
    %489 = call @softplus_21(%7#1, %376) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %490 = stablehlo.add %488, %489 : tensor<4x5xf32>
    %491 = stablehlo.multiply %381, %6 : tensor<4x5xf32>
    %492 = stablehlo.add %490, %491 : tensor<4x5xf32>
    %493 = stablehlo.divide %386, %3 : tensor<4x5xf32>
    %494 = stablehlo.multiply %arg0, %493 : tensor<4x5xf32>
    %495 = stablehlo.add %492, %494 : tensor<4x5xf32>
    %496 = stablehlo.multiply %493, %arg0 : tensor<4x5xf32>
    %497 = stablehlo.add %495, %496 : tensor<4x5xf32>
    %498 = stablehlo.broadcast_in_dim %cst_55, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %499 = stablehlo.multiply %498, %497 : tensor<4x5xf32>
    %500 = stablehlo.broadcast_in_dim %cst_54, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %501 = stablehlo.multiply %500, %arg2 : tensor<4x5xf32>
    %502 = stablehlo.add %499, %501 : tensor<4x5xf32>
    %503 = stablehlo.multiply %497, %497 : tensor<4x5xf32>
    %504 = stablehlo.broadcast_in_dim %cst_53, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %505 = stablehlo.multiply %504, %503 : tensor<4x5xf32>
    %506 = stablehlo.broadcast_in_dim %cst_52, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %507 = stablehlo.multiply %506, %arg3 : tensor<4x5xf32>
    %508 = stablehlo.add %505, %507 : tensor<4x5xf32>
    %509 = stablehlo.compare LT, %arg1, %c_51, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %510 = stablehlo.add %arg1, %c : tensor<i32>
    %511 = call @_where_22(%509, %510, %c_51) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %512 = stablehlo.convert %511 : (tensor<i32>) -> tensor<f32>
    %513 = stablehlo.power %cst_54, %512 : tensor<f32>
    %514 = stablehlo.subtract %cst_73, %513 : tensor<f32>
    %515 = stablehlo.broadcast_in_dim %514, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %516 = stablehlo.divide %502, %515 : tensor<4x5xf32>
    %517 = stablehlo.convert %511 : (tensor<i32>) -> tensor<f32>
    %518 = stablehlo.power %cst_52, %517 : tensor<f32>
    %519 = stablehlo.subtract %cst_73, %518 : tensor<f32>
    %520 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %521 = stablehlo.divide %508, %520 : tensor<4x5xf32>
    %522 = stablehlo.broadcast_in_dim %cst_64, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %523 = stablehlo.add %521, %522 : tensor<4x5xf32>
    %524 = stablehlo.sqrt %523 : tensor<4x5xf32>
    %525 = stablehlo.broadcast_in_dim %cst_50, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %526 = stablehlo.add %524, %525 : tensor<4x5xf32>
    %527 = stablehlo.divide %516, %526 : tensor<4x5xf32>
    %528 = call @norm_23(%arg0) : (tensor<4x5xf32>) -> tensor<1x1xf32>
    %529 = stablehlo.broadcast_in_dim %cst_64, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %530 = stablehlo.compare LE, %528, %529, FLOAT : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xi1>
    %531 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %532 = call @_where_24(%530, %531, %arg0) : (tensor<1x1xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %533 = stablehlo.reshape %528 : (tensor<1x1xf32>) -> tensor<f32>
    %534 = call @norm_25(%532) : (tensor<4x5xf32>) -> tensor<f32>
    %535 = stablehlo.compare LE, %533, %cst_64, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %536 = call @_where_26(%535, %cst_64, %534) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %537 = call @norm_23(%527) : (tensor<4x5xf32>) -> tensor<1x1xf32>
    %538 = stablehlo.broadcast_in_dim %cst_64, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %539 = stablehlo.compare LE, %537, %538, FLOAT : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xi1>
    %540 = stablehlo.broadcast_in_dim %cst_73, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %541 = call @_where_24(%539, %540, %527) : (tensor<1x1xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %542 = stablehlo.reshape %537 : (tensor<1x1xf32>) -> tensor<f32>
    %543 = call @norm_25(%541) : (tensor<4x5xf32>) -> tensor<f32>
    %544 = stablehlo.compare LE, %542, %cst_64, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %545 = call @_where_26(%544, %cst_64, %543) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %546 = stablehlo.multiply %cst_73, %536 : tensor<f32>
    %547 = stablehlo.add %545, %cst_64 : tensor<f32>
    %548 = stablehlo.divide %546, %547 : tensor<f32>
    %549 = stablehlo.compare EQ, %536, %cst_64, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %550 = stablehlo.compare EQ, %545, %cst_64, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %551 = stablehlo.or %549, %550 : tensor<i1>
    %552 = call @_where_27(%551, %cst_73, %548) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %553 = stablehlo.broadcast_in_dim %552, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %554 = stablehlo.multiply %527, %553 : tensor<4x5xf32>
    %555 = stablehlo.broadcast_in_dim %cst_49, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %556 = stablehlo.multiply %555, %554 : tensor<4x5xf32>
    %557 = stablehlo.add %arg0, %556 : tensor<4x5xf32>
    return %557, %511, %502, %508, %297 : tensor<4x5xf32>, tensor<i32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<f32>
  }
  func.func private @chlo.sinh.impl_1(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<4x5xf32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<4x5xf32>
    %0 = stablehlo.log %cst_0 : tensor<4x5xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<4x5xf32>
    %2 = stablehlo.exponential %1 : tensor<4x5xf32>
    %3 = stablehlo.subtract %0, %arg0 : tensor<4x5xf32>
    %4 = stablehlo.exponential %3 : tensor<4x5xf32>
    %5 = stablehlo.subtract %2, %4 : tensor<4x5xf32>
    %6 = stablehlo.exponential_minus_one %arg0 : tensor<4x5xf32>
    %7 = stablehlo.add %6, %cst : tensor<4x5xf32>
    %8 = stablehlo.divide %6, %7 : tensor<4x5xf32>
    %9 = stablehlo.add %6, %8 : tensor<4x5xf32>
    %10 = stablehlo.multiply %cst_0, %9 : tensor<4x5xf32>
    %11 = stablehlo.abs %arg0 : tensor<4x5xf32>
    %12 = stablehlo.compare LT, %11, %cst : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %13 = stablehlo.select %12, %10, %5 : tensor<4x5xi1>, tensor<4x5xf32>
    return %13 : tensor<4x5xf32>
  }
  func.func private @chlo.cosh.impl_0(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<4x5xf32>
    %0 = stablehlo.log %cst : tensor<4x5xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<4x5xf32>
    %2 = stablehlo.exponential %1 : tensor<4x5xf32>
    %3 = stablehlo.subtract %0, %arg0 : tensor<4x5xf32>
    %4 = stablehlo.exponential %3 : tensor<4x5xf32>
    %5 = stablehlo.add %2, %4 : tensor<4x5xf32>
    return %5 : tensor<4x5xf32>
  }
  func.func private @chlo.cosh.impl(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<4x5xf32>
    %0 = stablehlo.log %cst : tensor<4x5xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<4x5xf32>
    %2 = stablehlo.exponential %1 : tensor<4x5xf32>
    %3 = stablehlo.subtract %0, %arg0 : tensor<4x5xf32>
    %4 = stablehlo.exponential %3 : tensor<4x5xf32>
    %5 = stablehlo.add %2, %4 : tensor<4x5xf32>
    return %5 : tensor<4x5xf32>
  }
  func.func private @chlo.sinh.impl(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<4x5xf32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<4x5xf32>
    %0 = stablehlo.log %cst_0 : tensor<4x5xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<4x5xf32>
    %2 = stablehlo.exponential %1 : tensor<4x5xf32>
    %3 = stablehlo.subtract %0, %arg0 : tensor<4x5xf32>
    %4 = stablehlo.exponential %3 : tensor<4x5xf32>
    %5 = stablehlo.subtract %2, %4 : tensor<4x5xf32>
    %6 = stablehlo.exponential_minus_one %arg0 : tensor<4x5xf32>
    %7 = stablehlo.add %6, %cst : tensor<4x5xf32>
    %8 = stablehlo.divide %6, %7 : tensor<4x5xf32>
    %9 = stablehlo.add %6, %8 : tensor<4x5xf32>
    %10 = stablehlo.multiply %cst_0, %9 : tensor<4x5xf32>
    %11 = stablehlo.abs %arg0 : tensor<4x5xf32>
    %12 = stablehlo.compare LT, %11, %cst : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %13 = stablehlo.select %12, %10, %5 : tensor<4x5xi1>, tensor<4x5xf32>
    return %13 : tensor<4x5xf32>
  }
  func.func private @chlo.erf.impl(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<4x5xf32>
    %cst_0 = stablehlo.constant dense<-1.000000e+00> : tensor<4x5xf32>
    %cst_1 = stablehlo.constant dense<-0.0142647391> : tensor<4x5xf32>
    %cst_2 = stablehlo.constant dense<-0.00737332925> : tensor<4x5xf32>
    %cst_3 = stablehlo.constant dense<-0.00168282702> : tensor<4x5xf32>
    %cst_4 = stablehlo.constant dense<-2.13374049E-4> : tensor<4x5xf32>
    %cst_5 = stablehlo.constant dense<-1.45660715E-5> : tensor<4x5xf32>
    %cst_6 = stablehlo.constant dense<-0.0160960332> : tensor<4x5xf32>
    %cst_7 = stablehlo.constant dense<-2.954600e-03> : tensor<4x5xf32>
    %cst_8 = stablehlo.constant dense<-7.34990637E-4> : tensor<4x5xf32>
    %cst_9 = stablehlo.constant dense<-5.69250624E-5> : tensor<4x5xf32>
    %cst_10 = stablehlo.constant dense<-2.10102394E-6> : tensor<4x5xf32>
    %cst_11 = stablehlo.constant dense<2.77068146E-8> : tensor<4x5xf32>
    %cst_12 = stablehlo.constant dense<-2.72614237E-10> : tensor<4x5xf32>
    %cst_13 = stablehlo.constant dense<-4.000000e+00> : tensor<4x5xf32>
    %cst_14 = stablehlo.constant dense<4.000000e+00> : tensor<4x5xf32>
    %0 = stablehlo.clamp %cst_13, %arg0, %cst_14 : tensor<4x5xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<4x5xf32>
    %2 = stablehlo.multiply %cst_12, %1 : tensor<4x5xf32>
    %3 = stablehlo.add %2, %cst_11 : tensor<4x5xf32>
    %4 = stablehlo.multiply %3, %1 : tensor<4x5xf32>
    %5 = stablehlo.add %4, %cst_10 : tensor<4x5xf32>
    %6 = stablehlo.multiply %5, %1 : tensor<4x5xf32>
    %7 = stablehlo.add %6, %cst_9 : tensor<4x5xf32>
    %8 = stablehlo.multiply %7, %1 : tensor<4x5xf32>
    %9 = stablehlo.add %8, %cst_8 : tensor<4x5xf32>
    %10 = stablehlo.multiply %9, %1 : tensor<4x5xf32>
    %11 = stablehlo.add %10, %cst_7 : tensor<4x5xf32>
    %12 = stablehlo.multiply %11, %1 : tensor<4x5xf32>
    %13 = stablehlo.add %12, %cst_6 : tensor<4x5xf32>
    %14 = stablehlo.multiply %cst_5, %1 : tensor<4x5xf32>
    %15 = stablehlo.add %14, %cst_4 : tensor<4x5xf32>
    %16 = stablehlo.multiply %15, %1 : tensor<4x5xf32>
    %17 = stablehlo.add %16, %cst_3 : tensor<4x5xf32>
    %18 = stablehlo.multiply %17, %1 : tensor<4x5xf32>
    %19 = stablehlo.add %18, %cst_2 : tensor<4x5xf32>
    %20 = stablehlo.multiply %19, %1 : tensor<4x5xf32>
    %21 = stablehlo.add %20, %cst_1 : tensor<4x5xf32>
    %22 = stablehlo.multiply %0, %13 : tensor<4x5xf32>
    %23 = stablehlo.divide %22, %21 : tensor<4x5xf32>
    %24 = stablehlo.clamp %cst_0, %23, %cst : tensor<4x5xf32>
    return %24 : tensor<4x5xf32>
  }
  func.func private @softplus(%arg0: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x5xf32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %3 = stablehlo.subtract %arg0, %2 : tensor<4x5xf32>
    %4 = stablehlo.compare NE, %3, %3, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %6 = stablehlo.add %arg0, %5 : tensor<4x5xf32>
    %7 = stablehlo.abs %3 : tensor<4x5xf32>
    %8 = stablehlo.negate %7 : tensor<4x5xf32>
    %9 = stablehlo.exponential %8 : tensor<4x5xf32>
    %10 = stablehlo.log_plus_one %9 : tensor<4x5xf32>
    %11 = stablehlo.add %1, %10 : tensor<4x5xf32>
    %12 = stablehlo.select %4, %6, %11 : tensor<4x5xi1>, tensor<4x5xf32>
    %13 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %14 = stablehlo.compare EQ, %arg0, %13, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %15 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %16 = stablehlo.select %14, %15, %arg0 : tensor<4x5xi1>, tensor<4x5xf32>
    %17 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %18 = stablehlo.compare EQ, %12, %17, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %19 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %20 = stablehlo.select %18, %19, %12 : tensor<4x5xi1>, tensor<4x5xf32>
    %21 = stablehlo.subtract %16, %20 : tensor<4x5xf32>
    %22 = stablehlo.exponential %21 : tensor<4x5xf32>
    return %12, %22 : tensor<4x5xf32>, tensor<4x5xf32>
  }
  func.func private @clip(%arg0: tensor<4x5xf32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<4x5xf32>
    %3 = stablehlo.compare EQ, %arg0, %2, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %6 = stablehlo.select %3, %4, %5 : tensor<4x5xi1>, tensor<4x5xf32>
    %7 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %8 = stablehlo.compare EQ, %7, %2, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %11 = stablehlo.select %8, %9, %10 : tensor<4x5xi1>, tensor<4x5xf32>
    %12 = stablehlo.divide %6, %11 : tensor<4x5xf32>
    %13 = stablehlo.convert %arg2 : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %15 = stablehlo.minimum %14, %2 : tensor<4x5xf32>
    %16 = stablehlo.compare EQ, %2, %15, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %17 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %18 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %19 = stablehlo.select %16, %17, %18 : tensor<4x5xi1>, tensor<4x5xf32>
    %20 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %21 = stablehlo.compare EQ, %20, %15, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %22 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %23 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %24 = stablehlo.select %21, %22, %23 : tensor<4x5xi1>, tensor<4x5xf32>
    %25 = stablehlo.divide %19, %24 : tensor<4x5xf32>
    return %15, %12, %25 : tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>
  }
  func.func private @round(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<4x5xf32>
    return %0 : tensor<4x5xf32>
  }
  func.func private @remainder(%arg0: tensor<4x5xf32>, %arg1: tensor<f32>) -> (tensor<4x5xf32>, tensor<4x5xi1>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %2 = stablehlo.remainder %arg0, %1 : tensor<4x5xf32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %4 = stablehlo.compare NE, %2, %3, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %6 = stablehlo.compare LT, %2, %5, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %7 = stablehlo.compare LT, %0, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<i1>) -> tensor<4x5xi1>
    %9 = stablehlo.compare NE, %6, %8, UNSIGNED : (tensor<4x5xi1>, tensor<4x5xi1>) -> tensor<4x5xi1>
    %10 = stablehlo.and %9, %4 : tensor<4x5xi1>
    %11 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %12 = stablehlo.add %2, %11 : tensor<4x5xf32>
    %13 = stablehlo.select %10, %12, %2 : tensor<4x5xi1>, tensor<4x5xf32>
    return %13, %10 : tensor<4x5xf32>, tensor<4x5xi1>
  }
  func.func private @norm(%arg0: tensor<4x5xf32>) -> (tensor<f32>, tensor<f32>) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<4x5xf32>
    %1 = stablehlo.reduce(%0 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.sqrt %1 : tensor<f32>
    %3 = stablehlo.divide %cst, %2 : tensor<f32>
    return %2, %3 : tensor<f32>, tensor<f32>
  }
  func.func private @cumsum(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %0 = call @cumsum_0(%arg0) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    return %0 : tensor<4x5xf32>
  }
  func.func private @cumsum_0(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[0, 0], [4, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 5>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x5xf32>, tensor<f32>) -> tensor<4x5xf32>
    return %1 : tensor<4x5xf32>
  }
  func.func private @elu(%arg0: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xi1>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %1 = stablehlo.compare GT, %arg0, %0, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %3 = stablehlo.compare GT, %arg0, %2, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %4 = call @_where(%3, %cst_0, %arg0) : (tensor<4x5xi1>, tensor<f32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %5 = stablehlo.exponential_minus_one %4 : tensor<4x5xf32>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %7 = stablehlo.add %5, %6 : tensor<4x5xf32>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %9 = stablehlo.multiply %8, %5 : tensor<4x5xf32>
    %10 = call @_where_1(%1, %arg0, %9) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    return %10, %3, %7, %1 : tensor<4x5xf32>, tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xi1>
  }
  func.func private @_where(%arg0: tensor<4x5xi1>, %arg1: tensor<f32>, %arg2: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %2 = stablehlo.select %arg0, %1, %arg2 : tensor<4x5xi1>, tensor<4x5xf32>
    return %2 : tensor<4x5xf32>
  }
  func.func private @_where_1(%arg0: tensor<4x5xi1>, %arg1: tensor<4x5xf32>, %arg2: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4x5xi1>, tensor<4x5xf32>
    return %0 : tensor<4x5xf32>
  }
  func.func private @leaky_relu(%arg0: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xi1>) {
    %cst = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %1 = stablehlo.compare GE, %arg0, %0, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %3 = stablehlo.multiply %2, %arg0 : tensor<4x5xf32>
    %4 = call @_where_1(%1, %arg0, %3) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    return %4, %1 : tensor<4x5xf32>, tensor<4x5xi1>
  }
  func.func private @hard_silu(%arg0: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xi1>, tensor<4x5xf32>) {
    %0:2 = call @hard_sigmoid(%arg0) : (tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xi1>)
    %1 = stablehlo.multiply %arg0, %0#0 : tensor<4x5xf32>
    return %1, %0#1, %0#0 : tensor<4x5xf32>, tensor<4x5xi1>, tensor<4x5xf32>
  }
  func.func private @hard_sigmoid(%arg0: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xi1>) {
    %cst = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<4x5xf32>
    %2 = call @relu6(%1) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %4 = stablehlo.compare GT, %1, %3, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %6 = stablehlo.compare LT, %1, %5, FLOAT : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %7 = stablehlo.and %4, %6 : tensor<4x5xi1>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %9 = stablehlo.divide %2, %8 : tensor<4x5xf32>
    return %9, %7 : tensor<4x5xf32>, tensor<4x5xi1>
  }
  func.func private @relu6(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x5xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %3 = stablehlo.minimum %1, %2 : tensor<4x5xf32>
    return %3 : tensor<4x5xf32>
  }
  func.func private @median(%arg0: tensor<4x5xf32>) -> (tensor<f32>, tensor<20xi1>, tensor<20x1xui32>, tensor<1xi32>, tensor<1xi32>) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0:5 = call @quantile(%arg0, %cst) : (tensor<4x5xf32>, tensor<f32>) -> (tensor<f32>, tensor<20xi1>, tensor<20x1xui32>, tensor<1xi32>, tensor<1xi32>)
    return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<f32>, tensor<20xi1>, tensor<20x1xui32>, tensor<1xi32>, tensor<1xi32>
  }
  func.func private @quantile(%arg0: tensor<4x5xf32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<20xi1>, tensor<20x1xui32>, tensor<1xi32>, tensor<1xi32>) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<2.000000e+01> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<false> : tensor<i1>
    %0 = stablehlo.reshape %arg0 : (tensor<4x5xf32>) -> tensor<20xf32>
    %1 = stablehlo.compare NE, %0, %0, FLOAT : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xi1>
    %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.or across dimensions = [0] : (tensor<20xi1>, tensor<i1>) -> tensor<i1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %4:2 = call @_where_2(%3, %cst_3, %0) : (tensor<1xi1>, tensor<f32>, tensor<20xf32>) -> (tensor<20xf32>, tensor<20xi1>)
    %5 = stablehlo.iota dim = 0 : tensor<20xui32>
    %6:2 = "stablehlo.sort"(%4#0, %5) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<ui32>, %arg5: tensor<ui32>):
      %24 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %25 = stablehlo.select %24, %cst_2, %arg2 : tensor<i1>, tensor<f32>
      %26 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %27 = stablehlo.select %26, %cst_3, %25 : tensor<i1>, tensor<f32>
      %28 = stablehlo.compare EQ, %arg3, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %29 = stablehlo.select %28, %cst_2, %arg3 : tensor<i1>, tensor<f32>
      %30 = stablehlo.compare NE, %arg3, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %31 = stablehlo.select %30, %cst_3, %29 : tensor<i1>, tensor<f32>
      %32 = stablehlo.compare LT, %27, %31, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %32 : tensor<i1>
    }) : (tensor<20xf32>, tensor<20xui32>) -> (tensor<20xf32>, tensor<20xui32>)
    %7 = stablehlo.broadcast_in_dim %6#1, dims = [0] : (tensor<20xui32>) -> tensor<20x1xui32>
    %8 = stablehlo.subtract %cst_1, %cst_0 : tensor<f32>
    %9 = stablehlo.multiply %arg1, %8 : tensor<f32>
    %10 = stablehlo.floor %9 : tensor<f32>
    %11 = stablehlo.ceil %9 : tensor<f32>
    %12 = stablehlo.subtract %cst_1, %cst_0 : tensor<f32>
    %13 = stablehlo.clamp %cst_2, %10, %12 : tensor<f32>
    %14 = stablehlo.subtract %cst_1, %cst_0 : tensor<f32>
    %15 = stablehlo.clamp %cst_2, %11, %14 : tensor<f32>
    %16 = stablehlo.convert %13 : (tensor<f32>) -> tensor<i32>
    %17 = stablehlo.convert %15 : (tensor<f32>) -> tensor<i32>
    %18 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %19 = "stablehlo.gather"(%6#0, %18) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1>}> : (tensor<20xf32>, tensor<1xi32>) -> tensor<f32>
    %20 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %21 = "stablehlo.gather"(%6#0, %20) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1>}> : (tensor<20xf32>, tensor<1xi32>) -> tensor<f32>
    %22 = stablehlo.add %19, %21 : tensor<f32>
    %23 = stablehlo.multiply %22, %cst : tensor<f32>
    return %23, %4#1, %7, %18, %20 : tensor<f32>, tensor<20xi1>, tensor<20x1xui32>, tensor<1xi32>, tensor<1xi32>
  }
  func.func private @_where_2(%arg0: tensor<1xi1>, %arg1: tensor<f32>, %arg2: tensor<20xf32>) -> (tensor<20xf32>, tensor<20xi1>) {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<1xi1>) -> tensor<20xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %3 = stablehlo.select %1, %2, %arg2 : tensor<20xi1>, tensor<20xf32>
    return %3, %1 : tensor<20xf32>, tensor<20xi1>
  }
  func.func private @_std(%arg0: tensor<4x5xf32>, %arg1: tensor<i32>) -> (tensor<f32>, tensor<4x5xf32>, tensor<f32>, tensor<i1>, tensor<f32>) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0:4 = call @_var(%arg0, %arg1) : (tensor<4x5xf32>, tensor<i32>) -> (tensor<f32>, tensor<4x5xf32>, tensor<f32>, tensor<i1>)
    %1 = stablehlo.sqrt %0#0 : tensor<f32>
    %2 = stablehlo.divide %cst, %1 : tensor<f32>
    return %1, %0#1, %0#2, %0#3, %2 : tensor<f32>, tensor<4x5xf32>, tensor<f32>, tensor<i1>, tensor<f32>
  }
  func.func private @_var(%arg0: tensor<4x5xf32>, %arg1: tensor<i32>) -> (tensor<f32>, tensor<4x5xf32>, tensor<f32>, tensor<i1>) {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<2.000000e+01> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_2) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<1x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<4x5xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x5xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<4x5xf32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %8 = stablehlo.multiply %7, %5 : tensor<4x5xf32>
    %9 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %10 = stablehlo.subtract %cst_1, %9 : tensor<f32>
    %11 = stablehlo.reduce(%6 init: %cst_2) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %12 = stablehlo.divide %11, %10 : tensor<f32>
    %13 = stablehlo.compare GT, %10, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %14 = call @_where_3(%13, %12, %cst) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    return %14, %8, %10, %13 : tensor<f32>, tensor<4x5xf32>, tensor<f32>, tensor<i1>
  }
  func.func private @_where_3(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<i1>, tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @_std_4(%arg0: tensor<4x5xf32>, %arg1: tensor<f32>, %arg2: tensor<i1>, %arg3: tensor<f32>, %arg4: tensor<f32>) -> tensor<4x5xf32> {
    %0 = stablehlo.multiply %arg4, %arg3 : tensor<f32>
    %1 = call @_var_5(%arg0, %arg1, %arg2, %0) : (tensor<4x5xf32>, tensor<f32>, tensor<i1>, tensor<f32>) -> tensor<4x5xf32>
    return %1 : tensor<4x5xf32>
  }
  func.func private @_var_5(%arg0: tensor<4x5xf32>, %arg1: tensor<f32>, %arg2: tensor<i1>, %arg3: tensor<f32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<2.000000e+01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = call @_where_6(%arg2, %arg3) : (tensor<i1>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.divide %0, %arg1 : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %3 = stablehlo.multiply %2, %arg0 : tensor<4x5xf32>
    %4 = stablehlo.negate %3 : tensor<4x5xf32>
    %5 = stablehlo.reduce(%4 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %6 = stablehlo.reshape %5 : (tensor<f32>) -> tensor<1x1xf32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %8 = stablehlo.divide %6, %7 : tensor<1x1xf32>
    %9 = stablehlo.reduce(%8 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1xf32>, tensor<f32>) -> tensor<f32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %11 = stablehlo.add %3, %10 : tensor<4x5xf32>
    return %11 : tensor<4x5xf32>
  }
  func.func private @_where_6(%arg0: tensor<i1>, %arg1: tensor<f32>) -> tensor<f32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.select %arg0, %arg1, %cst : tensor<i1>, tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @median_7(%arg0: tensor<20xi1>, %arg1: tensor<20x1xui32>, %arg2: tensor<1xi32>, %arg3: tensor<1xi32>, %arg4: tensor<f32>) -> tensor<4x5xf32> {
    %0 = call @quantile_8(%arg0, %arg1, %arg2, %arg3, %arg4) : (tensor<20xi1>, tensor<20x1xui32>, tensor<1xi32>, tensor<1xi32>, tensor<f32>) -> tensor<4x5xf32>
    return %0 : tensor<4x5xf32>
  }
  func.func private @quantile_8(%arg0: tensor<20xi1>, %arg1: tensor<20x1xui32>, %arg2: tensor<1xi32>, %arg3: tensor<1xi32>, %arg4: tensor<f32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0 = stablehlo.multiply %arg4, %cst_0 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %2 = "stablehlo.scatter"(%1, %arg3, %0) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %10 = stablehlo.add %arg5, %arg6 : tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }) : (tensor<20xf32>, tensor<1xi32>, tensor<f32>) -> tensor<20xf32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %4 = "stablehlo.scatter"(%3, %arg2, %0) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %10 = stablehlo.add %arg5, %arg6 : tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }) : (tensor<20xf32>, tensor<1xi32>, tensor<f32>) -> tensor<20xf32>
    %5 = stablehlo.add %2, %4 : tensor<20xf32>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %7 = "stablehlo.scatter"(%6, %arg1, %5) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %10 = stablehlo.add %arg5, %arg6 : tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }) : (tensor<20xf32>, tensor<20x1xui32>, tensor<20xf32>) -> tensor<20xf32>
    %8 = call @_where_9(%arg0, %7) : (tensor<20xi1>, tensor<20xf32>) -> tensor<20xf32>
    %9 = stablehlo.reshape %8 : (tensor<20xf32>) -> tensor<4x5xf32>
    return %9 : tensor<4x5xf32>
  }
  func.func private @_where_9(%arg0: tensor<20xi1>, %arg1: tensor<20xf32>) -> tensor<20xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %1 = stablehlo.select %arg0, %0, %arg1 : tensor<20xi1>, tensor<20xf32>
    return %1 : tensor<20xf32>
  }
  func.func private @hard_silu_10(%arg0: tensor<4x5xi1>, %arg1: tensor<4x5xf32>, %arg2: tensor<4x5xf32>, %arg3: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.multiply %arg2, %arg3 : tensor<4x5xf32>
    %1 = stablehlo.multiply %arg3, %arg1 : tensor<4x5xf32>
    %2 = call @hard_sigmoid_11(%arg0, %0) : (tensor<4x5xi1>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %3 = stablehlo.add %1, %2 : tensor<4x5xf32>
    return %3 : tensor<4x5xf32>
  }
  func.func private @hard_sigmoid_11(%arg0: tensor<4x5xi1>, %arg1: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %1 = stablehlo.divide %arg1, %0 : tensor<4x5xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %3 = stablehlo.select %arg0, %1, %2 : tensor<4x5xi1>, tensor<4x5xf32>
    return %3 : tensor<4x5xf32>
  }
  func.func private @leaky_relu_12(%arg0: tensor<4x5xi1>, %arg1: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %0:2 = call @_where_13(%arg0, %arg1) : (tensor<4x5xi1>, tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>)
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %2 = stablehlo.multiply %1, %0#1 : tensor<4x5xf32>
    %3 = stablehlo.add %0#0, %2 : tensor<4x5xf32>
    return %3 : tensor<4x5xf32>
  }
  func.func private @_where_13(%arg0: tensor<4x5xi1>, %arg1: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %1 = stablehlo.select %arg0, %0, %arg1 : tensor<4x5xi1>, tensor<4x5xf32>
    %2 = stablehlo.select %arg0, %arg1, %0 : tensor<4x5xi1>, tensor<4x5xf32>
    return %2, %1 : tensor<4x5xf32>, tensor<4x5xf32>
  }
  func.func private @elu_14(%arg0: tensor<4x5xi1>, %arg1: tensor<4x5xf32>, %arg2: tensor<4x5xi1>, %arg3: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0:2 = call @_where_13(%arg2, %arg3) : (tensor<4x5xi1>, tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>)
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %2 = stablehlo.multiply %1, %0#1 : tensor<4x5xf32>
    %3 = stablehlo.multiply %2, %arg1 : tensor<4x5xf32>
    %4 = call @_where_15(%arg0, %3) : (tensor<4x5xi1>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %5 = stablehlo.add %0#0, %4 : tensor<4x5xf32>
    return %5 : tensor<4x5xf32>
  }
  func.func private @_where_15(%arg0: tensor<4x5xi1>, %arg1: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %1 = stablehlo.select %arg0, %0, %arg1 : tensor<4x5xi1>, tensor<4x5xf32>
    return %1 : tensor<4x5xf32>
  }
  func.func private @cumsum_16(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %0 = call @cumsum_17(%arg0) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    return %0 : tensor<4x5xf32>
  }
  func.func private @cumsum_17(%arg0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[0, 0], [0, 4]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 5>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x5xf32>, tensor<f32>) -> tensor<4x5xf32>
    return %1 : tensor<4x5xf32>
  }
  func.func private @norm_18(%arg0: tensor<4x5xf32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<4x5xf32> {
    %0 = stablehlo.multiply %arg2, %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %2 = stablehlo.multiply %arg0, %1 : tensor<4x5xf32>
    %3 = stablehlo.multiply %1, %arg0 : tensor<4x5xf32>
    %4 = stablehlo.add %2, %3 : tensor<4x5xf32>
    return %4 : tensor<4x5xf32>
  }
  func.func private @remainder_19(%arg0: tensor<4x5xi1>, %arg1: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %1 = stablehlo.select %arg0, %0, %arg1 : tensor<4x5xi1>, tensor<4x5xf32>
    %2 = stablehlo.select %arg0, %arg1, %0 : tensor<4x5xi1>, tensor<4x5xf32>
    %3 = stablehlo.add %1, %2 : tensor<4x5xf32>
    return %3 : tensor<4x5xf32>
  }
  func.func private @clip_20(%arg0: tensor<4x5xf32>, %arg1: tensor<4x5xf32>, %arg2: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.multiply %arg2, %arg1 : tensor<4x5xf32>
    %1 = stablehlo.multiply %0, %arg0 : tensor<4x5xf32>
    return %1 : tensor<4x5xf32>
  }
  func.func private @softplus_21(%arg0: tensor<4x5xf32>, %arg1: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.multiply %arg1, %arg0 : tensor<4x5xf32>
    return %0 : tensor<4x5xf32>
  }
  func.func private @_where_22(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @norm_23(%arg0: tensor<4x5xf32>) -> tensor<1x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<4x5xf32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %3 = stablehlo.sqrt %2 : tensor<1x1xf32>
    return %3 : tensor<1x1xf32>
  }
  func.func private @_where_24(%arg0: tensor<1x1xi1>, %arg1: tensor<4x5xf32>, %arg2: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<4x5xi1>
    %1 = stablehlo.select %0, %arg1, %arg2 : tensor<4x5xi1>, tensor<4x5xf32>
    return %1 : tensor<4x5xf32>
  }
  func.func private @norm_25(%arg0: tensor<4x5xf32>) -> tensor<f32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<4x5xf32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.sqrt %1 : tensor<f32>
    return %2 : tensor<f32>
  }
  func.func private @_where_26(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.select %arg0, %0, %arg2 : tensor<i1>, tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @_where_27(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<f32>
    return %0 : tensor<f32>
  }
}
