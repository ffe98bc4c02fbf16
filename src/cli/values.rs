//! The library's choices as values of options.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::job::{Addresses, Emit, Form};

/// Gives each variant its name on the command line and its line of help.
macro_rules! values {
    ($type:ident: $($variant:ident $name:literal $help:literal),+ $(,)?) => {
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [$type] {
                &[$($type::$variant),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let (name, help) = match self {
                    $($type::$variant => ($name, $help)),+
                };
                Some(PossibleValue::new(name).help(help))
            }
        }
    };
}

values! { Form:
    Function "function" "Model-local functions `ai.lmsc::SwapOut` and `SwapIn` with an identity body: valid everywhere",
    Ort "ort" "Operators that the optimizer of stock ONNX Runtime leaves alone, with placement annotations",
}

values! { Emit:
    Onnx "onnx" "An ONNX model",
    Lms "lms" "The text form",
    Mlir "mlir" "MLIR: generic operations of ONNX and the dialect `lms`, which `lmsc` reads back",
    MlirXla "mlir-xla" "MLIR that XLA compiles: StableHLO, with swaps as annotations of where tensors are",
    MlirIree "mlir-iree" "MLIR that IREE compiles: StableHLO, with swaps as transfers between the devices `dev` and `host`",
}

values! { Addresses:
    Auto "auto" "By addresses in an arena, or by pages where addresses cost much",
    On "on" "By addresses in an arena",
    Off "off" "By counting bytes",
}
