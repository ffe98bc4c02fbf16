//! The precision of products and convolutions.

/// Precision to which `f32` factors may be rounded before they are multiplied; sums are always `f32`. Own kernels round nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// No rounding: all 24 bits are kept.
    #[default]
    F32,
    /// TF32: 11 bits, and the exponent range of `f32`.
    Tf32,
    /// bf16 for matrix products: 8 bits, and the exponent range of `f32`. TF32 for convolutions.
    Bf16,
    /// f16: 11 bits; values above 65504 become infinity.
    F16,
}

impl Precision {
    /// The names of the precisions, in their order.
    pub const NAMES: [&str; 4] = ["f32", "tf32", "bf16", "f16"];
}

impl std::str::FromStr for Precision {
    type Err = String;

    fn from_str(name: &str) -> Result<Precision, String> {
        let all = [Precision::F32, Precision::Tf32, Precision::Bf16, Precision::F16];
        let at = Precision::NAMES.iter().position(|known| *known == name);
        at.map(|at| all[at]).ok_or_else(|| format!("expected one of {}", Precision::NAMES.join(", ")))
    }
}
