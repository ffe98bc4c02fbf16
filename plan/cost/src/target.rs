//! The machine that runs a step: memory, and the speeds of the link and the processor.
//!
//! A target is a TOML file. The ones of `targets` are built in; every number there names its source.

use std::fmt;
use std::sync::LazyLock;

use lmsc_ir::words::instead;
use lmsc_ir::{Bytes, ElementType};
use lmsc_schedule::problem::{Duplex, Link};
use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

/// A device, its host and the link between them.
///
/// ```
/// use lmsc_cost::target::Target;
/// let target = Target::built_in("v100-pcie").unwrap();
/// assert_eq!(target.device_bytes.to_string(), "15.75 GiB");
/// assert_eq!(target.link.out_bytes_per_second, 12_200_000_000);
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name on the command line.
    #[serde(deserialize_with = "some_text")]
    pub name: String,
    /// One line for people.
    #[serde(deserialize_with = "some_text")]
    pub description: String,
    /// The device whose kernels run the step.
    #[serde(default)]
    pub kernels: Kernels,
    /// The card whose engines convolve, by its name in the tables of `lmsc-cuda`; or `cuda:0`, for a GPU of this machine. Without
    /// one, own kernels are planned for.
    #[serde(default)]
    pub card: Option<String>,
    /// The device's memory.
    #[serde(deserialize_with = "bytes")]
    pub device_bytes: Bytes,
    /// The host's memory.
    #[serde(deserialize_with = "bytes")]
    pub host_bytes: Bytes,
    /// Alignment of addresses in device memory; a power of two.
    #[serde(deserialize_with = "power_of_two")]
    pub alignment_bytes: Bytes,
    /// The smallest piece of device memory that can be mapped by itself; a power of two.
    #[serde(deserialize_with = "power_of_two")]
    pub page_bytes: Bytes,
    /// The way between the two memories.
    pub link: TargetLink,
    /// The device's processor.
    pub compute: Compute,
}

/// The device whose kernels run a step, which decides how much memory operators need besides their tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernels {
    /// The processor on which lmsc itself runs.
    Host,
    /// A GPU, by the kernels and libraries of CUDA. The default: every target but `host` is one.
    #[default]
    Cuda,
    /// None of this program: workspaces are those of the target's model.
    None,
}

impl fmt::Display for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kernels::Host => "host",
            Kernels::Cuda => "cuda",
            Kernels::None => "none",
        })
    }
}

/// The link between device and host. "Out" leaves the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TargetLink {
    /// Whether both directions can be busy at once.
    pub duplex: Duplex,
    /// Bytes per second from the device to the host, the other direction idle.
    #[serde(deserialize_with = "rate")]
    pub out_bytes_per_second: u64,
    /// Bytes per second from the host to the device, the other direction idle.
    #[serde(deserialize_with = "rate")]
    pub in_bytes_per_second: u64,
    /// Bytes per second out while the other direction is busy; only where the link is full duplex.
    #[serde(default, deserialize_with = "optional_rate", skip_serializing_if = "Option::is_none")]
    pub out_beside_in_bytes_per_second: Option<u64>,
    /// Bytes per second in while the other direction is busy; only where the link is full duplex.
    #[serde(default, deserialize_with = "optional_rate", skip_serializing_if = "Option::is_none")]
    pub in_beside_out_bytes_per_second: Option<u64>,
    /// Fixed time of every copy.
    #[serde(deserialize_with = "nanos")]
    pub latency_nanos: u64,
}

/// The device's processor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compute {
    /// How many parts work on a kernel, each on its own piece of the result.
    #[serde(deserialize_with = "parts")]
    pub multiprocessors: u64,
    /// Peak bytes per second between the processor and device memory.
    #[serde(deserialize_with = "rate")]
    pub memory_bytes_per_second: u64,
    /// Fixed time of every kernel.
    #[serde(deserialize_with = "nanos")]
    pub launch_nanos: u64,
    /// Peak operations per second.
    pub flops_per_second: FlopsPerSecond,
}

/// Peak floating-point operations per second, by the precision of the elements; a multiply-add is two. For 16 bits
/// that is the rate of matrix products, in tensor cores where there are any.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlopsPerSecond {
    /// In double precision.
    #[serde(deserialize_with = "rate")]
    pub float64: u64,
    /// In single precision.
    #[serde(deserialize_with = "rate")]
    pub float32: u64,
    /// In half precision.
    #[serde(deserialize_with = "rate")]
    pub float16: u64,
    /// In bfloat16.
    #[serde(deserialize_with = "rate")]
    pub bfloat16: u64,
}

impl FlopsPerSecond {
    /// The peak for matrix products of such elements. Shorter floats count as float16, everything else as float32.
    pub fn of(&self, element: ElementType) -> u64 {
        match element {
            ElementType::Double | ElementType::Complex128 => self.float64,
            ElementType::Bfloat16 => self.bfloat16,
            element if element.is_float() && element.bits() <= 16 => self.float16,
            _ => self.float32,
        }
    }
}

/// A GPU of CUDA as its driver describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CudaFacts {
    /// The vendor's name for it.
    pub name: String,
    /// Its compute capability, such as 9 and 0.
    pub capability: (u32, u32),
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// Their highest clock, in kHz.
    pub clock_khz: u32,
    /// The highest clock of its memory, in kHz; two bits a line cross in each cycle.
    pub memory_clock_khz: u32,
    /// The lines to its memory.
    pub bus_bits: u32,
}

/// Multiply-adds of one multiprocessor in a cycle, in float64, in float32 and, of matrix products, in 16 bits.
///
/// # Source
/// CUDA C++ Programming Guide, "Arithmetic Instructions", by compute capability; products of 16 bits: the white papers of the
/// architectures, without sparsity. GeForce devices add up such products in float32 at half of that.
fn multiply_adds(capability: (u32, u32), is_geforce: bool) -> [u64; 3] {
    let halved = |products: u64| if is_geforce { products / 2 } else { products };
    match capability {
        (..=5, _) => [4, 128, 128],
        (6, 0) => [32, 64, 128],
        (6, _) => [4, 128, 128],
        (7, 0) => [32, 64, 512],
        (7, _) => [2, 64, halved(512)],
        (8, 0) => [32, 64, 1024],
        (9, _) => [64, 128, 2048],
        (10 | 11, _) => [64, 128, 4096],
        (8 | 12.., _) => [2, 128, halved(512)],
    }
}

impl CudaFacts {
    /// The processor of this GPU: the peaks that follow from its clocks.
    pub fn compute(&self) -> Compute {
        let rate = |of_each: u64| {
            let cycles = u128::from(self.multiprocessors) * u128::from(self.clock_khz) * 1000;
            u64::try_from(2 * cycles * u128::from(of_each)).unwrap_or(MOST).clamp(1, MOST)
        };
        let [float64, float32, products] = multiply_adds(self.capability, self.name.contains("GeForce"));
        let bytes = u128::from(self.memory_clock_khz) * 2000 * u128::from(self.bus_bits) / 8;
        Compute {
            multiprocessors: u64::from(self.multiprocessors).clamp(1, 1 << 16),
            memory_bytes_per_second: u64::try_from(bytes).unwrap_or(MOST).clamp(1, MOST),
            launch_nanos: LAUNCH_NANOS,
            flops_per_second: FlopsPerSecond {
                float64: rate(float64),
                float32: rate(float32),
                float16: rate(products),
                // Before the compute capability 8 there is no bfloat16 in tensor cores.
                bfloat16: rate(if self.capability.0 < 8 { float32 } else { products }),
            },
        }
    }
}

/// From the end of one kernel of CUDA to the start of the next: assumed, as in the built-in targets.
const LAUNCH_NANOS: u64 = 5_000;

impl TargetLink {
    /// How long a copy out takes, the other direction idle.
    ///
    /// # Units
    /// Nanoseconds: the latency, and `bytes / out_bytes_per_second` rounded up. The largest number where that does not
    /// fit.
    pub fn out_nanos(&self, bytes: Bytes) -> u64 {
        self.copy_nanos(bytes, self.out_bytes_per_second)
    }

    /// How long a copy in takes, the other direction idle; as [`TargetLink::out_nanos`].
    pub fn in_nanos(&self, bytes: Bytes) -> u64 {
        self.copy_nanos(bytes, self.in_bytes_per_second)
    }

    /// The link as planners see it: rates that hold under any load of the other direction.
    pub fn for_planning(&self) -> Link {
        Link {
            out_bytes_per_second: self.out_beside_in_bytes_per_second.unwrap_or(self.out_bytes_per_second),
            in_bytes_per_second: self.in_beside_out_bytes_per_second.unwrap_or(self.in_bytes_per_second),
            latency_nanos: self.latency_nanos,
            duplex: self.duplex,
        }
    }

    fn copy_nanos(&self, bytes: Bytes, bytes_per_second: u64) -> u64 {
        let nanos = (u128::from(bytes.0) * 1_000_000_000).div_ceil(u128::from(bytes_per_second.max(1)));
        u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(self.latency_nanos)
    }

    /// The contradiction between two keys, if there is one.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let directions = [
            ("out_beside_in", self.out_beside_in_bytes_per_second, "out", self.out_bytes_per_second),
            ("in_beside_out", self.in_beside_out_bytes_per_second, "in", self.in_bytes_per_second),
        ];
        directions.into_iter().find_map(|(name, beside, alone_name, alone)| match (self.duplex, beside) {
            (Duplex::Full, None) => Some(format!(
                "`link.{name}_bytes_per_second` is missing; with `duplex = \"full\"` expected the rate while the \
                 other direction is busy"
            )),
            (Duplex::Half, Some(_)) => Some(format!(
                "`link.{name}_bytes_per_second` is given; with `duplex = \"half\"` the other direction is never \
                 busy, expected none"
            )),
            (Duplex::Full, Some(beside)) if beside > alone => Some(format!(
                "`link.{name}_bytes_per_second` is {beside}; expected at most \
                 `link.{alone_name}_bytes_per_second`, {alone}: company makes no copy faster"
            )),
            _ => None,
        })
    }
}

/// Why a text is no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// There is no built-in target of this name.
    #[error("there is no target `{0}`; {instead}", instead = instead_of(.0))]
    Unknown(String),
    /// The text is not TOML, or a key of it is missing, unknown or nonsense.
    #[error("{origin}:{line}: `{source_line}`: {message}")]
    Key {
        /// Where the text is from.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The text of the line.
        source_line: String,
        /// The fault, and the expected form.
        message: String,
    },
    /// Two keys contradict each other.
    #[error("{origin}: {message}")]
    Contradiction {
        /// Where the text is from.
        origin: String,
        /// The keys, and the expected relation.
        message: String,
    },
}

macro_rules! built_in {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../targets/", $name, ".toml")))),*] };
}

/// Every built-in target: its name and its TOML. The only place to add one.
pub static BUILT_IN: &[(&str, &str)] = built_in! {
    "p100-nvlink" "v100-nvlink2" "v100-pcie" "gtx1080ti" "t4" "a100-pcie4" "a100-sxm-80" "rtx3090" "a6000" "a10"
    "h100-pcie5" "h100-sxm" "rtx4090" "l4" "l40s" "gh200" "h200-pcie5" "h200-sxm" "b200" "gb200" "rtx5090" "host"
};

static PARSED: LazyLock<Vec<Target>> = LazyLock::new(|| {
    let parse = |(name, text): &(&str, &str)| Target::parse(text, name).expect("built-in targets are tested");
    BUILT_IN.iter().map(parse).collect()
});

/// The letters and digits of a card's name, without the words of its product line.
fn model_of(name: &str) -> String {
    let mut model: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    for line in ["nvidia", "geforce", "tesla", "rtx", "gtx"] {
        if let Some(rest) = model.strip_prefix(line) {
            model = rest.to_owned();
        }
    }
    model
}

fn instead_of(name: &str) -> String {
    instead(name, BUILT_IN.iter().map(|(name, _)| *name), "targets")
}

impl Target {
    /// The target that the text describes.
    ///
    /// # Errors
    /// [`TargetError`], which begins with `origin` and the line; unknown keys are refused, as are rates that are
    /// zero, negative or no numbers.
    pub fn parse(text: &str, origin: &str) -> Result<Target, TargetError> {
        let target: Target = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start).min(text.len());
            let line = text.as_bytes()[..start].iter().filter(|&&b| b == b'\n').count();
            TargetError::Key {
                origin: origin.to_owned(),
                line: line + 1,
                source_line: text.lines().nth(line).unwrap_or_default().trim().to_owned(),
                message: error.message().to_owned(),
            }
        })?;
        match target.link.contradiction() {
            Some(message) => Err(TargetError::Contradiction { origin: origin.to_owned(), message }),
            None => Ok(target),
        }
    }

    /// The text that [`Target::parse`] reads.
    pub fn to_toml(&self) -> String {
        // JSON's escapes are among those of TOML.
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let Target { link, compute, .. } = self;
        let flops = &compute.flops_per_second;
        let beside = |name: &str, rate: Option<u64>| {
            rate.map(|rate| format!("{name}_bytes_per_second = {rate}\n")).unwrap_or_default()
        };
        let duplex = if link.duplex == Duplex::Full { "full" } else { "half" };
        [
            format!("name = {}\ndescription = {}\n", text(&self.name), text(&self.description)),
            format!("kernels = \"{}\"\n", self.kernels),
            self.card.as_deref().map(|card| format!("card = {}\n", text(card))).unwrap_or_default(),
            "\n".to_owned(),
            format!("device_bytes = {}\nhost_bytes = {}\n", self.device_bytes.0, self.host_bytes.0),
            format!("alignment_bytes = {}\npage_bytes = {}\n", self.alignment_bytes.0, self.page_bytes.0),
            format!("\n[link]\nduplex = \"{duplex}\"\n"),
            format!("out_bytes_per_second = {}\n", link.out_bytes_per_second),
            format!("in_bytes_per_second = {}\n", link.in_bytes_per_second),
            beside("out_beside_in", link.out_beside_in_bytes_per_second),
            beside("in_beside_out", link.in_beside_out_bytes_per_second),
            format!("latency_nanos = {}\n", link.latency_nanos),
            format!("\n[compute]\nmultiprocessors = {}\n", compute.multiprocessors),
            format!("memory_bytes_per_second = {}\n", compute.memory_bytes_per_second),
            format!("launch_nanos = {}\n\n[compute.flops_per_second]\n", compute.launch_nanos),
            format!("float64 = {}\nfloat32 = {}\n", flops.float64, flops.float32),
            format!("float16 = {}\nbfloat16 = {}\n", flops.float16, flops.bfloat16),
        ]
        .concat()
    }

    /// The built-in target of this name. The case of letters, blanks and hyphens, and the words of a product line before the
    /// model, such as `GeForce RTX`, make no difference.
    ///
    /// ```
    /// use lmsc_cost::target::Target;
    /// assert_eq!(Target::built_in("RTX 4090").unwrap().name, "rtx4090");
    /// assert_eq!(Target::built_in("1080ti").unwrap().name, "gtx1080ti");
    /// assert!(Target::built_in("h100").unwrap_err().to_string().ends_with("did you mean `h100-pcie5` or `h100-sxm`?"));
    /// ```
    ///
    /// # Errors
    /// [`TargetError::Unknown`], with the names that were probably meant.
    pub fn built_in(name: &str) -> Result<&'static Target, TargetError> {
        let model = model_of(name);
        let all = Target::all_built_in();
        let found = all.iter().find(|target| target.name == name);
        let found = found.or_else(|| all.iter().find(|target| model_of(&target.name) == model));
        found.ok_or_else(|| TargetError::Unknown(name.to_owned()))
    }

    /// Every built-in target, oldest machine first.
    pub fn all_built_in() -> &'static [Target] {
        &PARSED
    }
}

fn some_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() {
        Err(de::Error::invalid_value(Unexpected::Str(&text), &"some text"))
    } else {
        Ok(text)
    }
}

/// A whole number between two bounds, written as an integer or as a float such as `12.2e9`; with `bytes`, also as
/// text with a unit.
struct Number {
    bytes: bool,
    least: u64,
    most: u64,
    expected: &'static str,
}

impl Number {
    fn check<E: de::Error>(&self, value: u64, found: Unexpected<'_>) -> Result<u64, E> {
        if (self.least..=self.most).contains(&value) { Ok(value) } else { Err(E::invalid_value(found, self)) }
    }
}

impl Visitor<'_> for Number {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<u64, E> {
        self.check(value, Unexpected::Unsigned(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<u64, E> {
        let found = Unexpected::Signed(value);
        self.check(u64::try_from(value).map_err(|_| E::invalid_value(found, &self))?, found)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<u64, E> {
        let found = Unexpected::Float(value);
        // The bounds of a float that is a whole number which 64 bits hold exactly as written.
        if !(0.0..=1e18).contains(&value) || value.fract() != 0.0 {
            return Err(E::invalid_value(found, &self));
        }
        self.check(value as u64, found)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<u64, E> {
        let found = Unexpected::Str(value);
        match value.parse::<Bytes>() {
            Ok(Bytes(bytes)) if self.bytes => self.check(bytes, found),
            _ => Err(E::invalid_value(found, &self)),
        }
    }
}

/// More than any machine does or holds; products of two such numbers fit 128 bits.
const MOST: u64 = 1 << 60;

fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let expected = "a positive whole number per second, such as 12.2e9";
    deserializer.deserialize_any(Number { bytes: false, least: 1, most: MOST, expected })
}

fn optional_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    rate(deserializer).map(Some)
}

fn nanos<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let expected = "a whole number of nanoseconds, at most ten seconds";
    deserializer.deserialize_any(Number { bytes: false, least: 0, most: 10_000_000_000, expected })
}

fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let expected = "a whole number from 1 to 65536";
    deserializer.deserialize_any(Number { bytes: false, least: 1, most: 1 << 16, expected })
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let expected = "a positive number of bytes, such as \"16GiB\"";
    deserializer.deserialize_any(Number { bytes: true, least: 1, most: MOST, expected }).map(Bytes)
}

fn power_of_two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let number = bytes(deserializer)?;
    if number.0.is_power_of_two() {
        Ok(number)
    } else {
        Err(de::Error::invalid_value(Unexpected::Unsigned(number.0), &"a power of two, such as \"2MiB\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("../targets/v100-pcie.toml");

    /// The error for the text with one line replaced.
    fn refusal(from: &str, to: &str) -> String {
        assert!(TEXT.contains(from), "{from}");
        Target::parse(&TEXT.replacen(from, to, 1), "mine.toml").unwrap_err().to_string()
    }

    #[test]
    fn built_in_targets_are_what_their_names_say() {
        assert_eq!(Target::all_built_in().len(), BUILT_IN.len());
        for (name, _) in BUILT_IN {
            assert_eq!(&Target::built_in(name).unwrap().name, name);
        }
    }

    #[test]
    fn every_number_of_a_built_in_target_has_a_source() {
        for (name, text) in BUILT_IN {
            let mut commented = false;
            for line in text.lines() {
                let number = line.split_once(" = ").is_some_and(|(_, value)| {
                    value.trim_matches('"').starts_with(|c: char| c.is_ascii_digit())
                });
                // A comment stands for all lines up to the next empty one.
                commented = !line.is_empty() && (commented || line.starts_with('#'));
                assert!(commented || !number, "{name}: `{line}` has no comment above it");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_names() {
        assert_eq!(
            Target::built_in("v101").unwrap_err().to_string(),
            "there is no target `v101`; the targets are p100-nvlink, v100-nvlink2, v100-pcie, gtx1080ti, t4, a100-pcie4, \
             a100-sxm-80, rtx3090, a6000, a10 and 12 more"
        );
    }

    #[test]
    fn numbers_are_integers_floats_or_bytes_with_a_unit() {
        let parsed = |from: &str, to| Target::parse(&TEXT.replacen(from, to, 1), "").unwrap();
        assert_eq!(parsed("\"15.75GiB\"", "1048576").device_bytes, Bytes(1 << 20));
        assert_eq!(parsed("= 12.2e9", "= 12_200_000_000"), *Target::built_in("v100-pcie").unwrap());
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        for (value, found) in [
            ("0", "integer `0`"),
            ("-1e9", "floating point `-1000000000.0`"),
            ("nan", "floating point `NaN`"),
            ("inf", "floating point `inf`"),
            ("0.5", "floating point `0.5`"),
            ("\"12GB\"", "string \"12GB\""),
        ] {
            let line = format!("out_bytes_per_second = {value}");
            assert_eq!(
                refusal("out_bytes_per_second = 12.2e9", &line),
                format!(
                    "mine.toml:20: `{line}`: invalid value: {found}, expected a positive whole number per second, \
                     such as 12.2e9"
                )
            );
        }
        assert_eq!(
            refusal("duplex = \"full\"", "duplex = \"both\""),
            "mine.toml:18: `duplex = \"both\"`: unknown variant `both`, expected `half` or `full`"
        );
        assert_eq!(
            refusal("\"15.75GiB\"", "\"lots\""),
            "mine.toml:8: `device_bytes = \"lots\"`: invalid value: string \"lots\", expected a positive number of \
             bytes, such as \"16GiB\""
        );
        assert_eq!(
            refusal("alignment_bytes = 256", "alignment_bytes = 100"),
            "mine.toml:12: `alignment_bytes = 100`: invalid value: integer `100`, expected a power of two, such as \
             \"2MiB\""
        );
        assert!(refusal("name = \"v100-pcie\"", "name = \" \"").contains("expected some text"));
        assert!(refusal("multiprocessors = 80", "multiprocessors = 1e9").contains("from 1 to 65536"));
        assert!(refusal("latency_nanos = 10_000", "latency_nanos = 1e12").contains("at most ten seconds"));
    }

    #[test]
    fn unknown_and_missing_keys_are_named() {
        assert_eq!(
            refusal("multiprocessors = 80", "multiprocessors = 80\ncores = 5120"),
            "mine.toml:32: `cores = 5120`: unknown field `cores`, expected one of `multiprocessors`, \
             `memory_bytes_per_second`, `launch_nanos`, `flops_per_second`"
        );
        assert_eq!(
            refusal("float32 = 14e12\n", ""),
            "mine.toml:37: `[compute.flops_per_second]`: missing field `float32`"
        );
        assert!(Target::parse("", "mine.toml").unwrap_err().to_string().contains("missing field `name`"));
        assert!(Target::parse("name = [", "mine.toml").unwrap_err().to_string().starts_with("mine.toml:1: "));
    }

    #[test]
    fn a_link_does_not_contradict_itself() {
        assert_eq!(
            refusal("duplex = \"full\"", "duplex = \"half\""),
            "mine.toml: `link.out_beside_in_bytes_per_second` is given; with `duplex = \"half\"` the other \
             direction is never busy, expected none"
        );
        assert!(refusal("in_beside_out_bytes_per_second = 12.2e9", "").contains("is missing; with `duplex"));
        assert_eq!(
            refusal("out_beside_in_bytes_per_second = 12.2e9", "out_beside_in_bytes_per_second = 13e9"),
            "mine.toml: `link.out_beside_in_bytes_per_second` is 13000000000; expected at most \
             `link.out_bytes_per_second`, 12200000000: company makes no copy faster"
        );
    }

    #[test]
    fn a_copy_takes_its_latency_and_its_bytes() {
        let link = Target::built_in("v100-pcie").unwrap().link;
        // 10 µs and 12.2 MB at 12.2 GB/s; one byte more takes part of a nanosecond, which counts whole.
        assert_eq!(link.out_nanos(Bytes(12_200_000)), 1_010_000);
        assert_eq!(link.in_nanos(Bytes(12_200_001)), 1_010_001);
        assert_eq!(link.out_nanos(Bytes::ZERO), 10_000);
        let slow = TargetLink { out_bytes_per_second: 1, ..link };
        assert_eq!(slow.out_nanos(Bytes(u64::MAX)), u64::MAX);
    }

    #[test]
    fn a_target_is_written_as_it_is_read() {
        for target in Target::all_built_in() {
            assert_eq!(Target::parse(&target.to_toml(), "").as_ref(), Ok(target));
        }
    }

    #[test]
    fn only_the_host_computes_with_its_kernels() {
        for target in Target::all_built_in() {
            let expected = if target.name == "host" { Kernels::Host } else { Kernels::Cuda };
            assert_eq!(target.kernels, expected, "{}", target.name);
        }
        let silent = TEXT.replacen("kernels = \"cuda\"\n", "", 1);
        assert_eq!(Target::parse(&silent, "").unwrap().kernels, Kernels::Cuda);
        assert_eq!(
            refusal("kernels = \"cuda\"", "kernels = \"rocm\""),
            "mine.toml:5: `kernels = \"rocm\"`: unknown variant `rocm`, expected one of `host`, `cuda`, `none`"
        );
    }

    /// The clocks that drivers report, against the peaks of the data sheets; those of an H100 in 16 bits are of a lower clock.
    #[test]
    fn clocks_give_the_peaks_of_the_data_sheets() {
        let facts =
            |name: &str, capability, multiprocessors, clock_khz, memory_clock_khz, bus_bits| CudaFacts {
                name: name.to_owned(),
                capability,
                multiprocessors,
                clock_khz,
                memory_clock_khz,
                bus_bits,
            };
        for (target, facts) in [
            ("h100-sxm", facts("NVIDIA H100 80GB HBM3", (9, 0), 132, 1_980_000, 2_619_000, 5120)),
            ("a100-sxm-80", facts("NVIDIA A100-SXM4-80GB", (8, 0), 108, 1_410_000, 1_593_000, 5120)),
            ("t4", facts("Tesla T4", (7, 5), 40, 1_590_000, 5_001_000, 256)),
            ("rtx4090", facts("NVIDIA GeForce RTX 4090", (8, 9), 128, 2_520_000, 10_501_000, 384)),
            ("rtx5090", facts("NVIDIA GeForce RTX 5090", (12, 0), 170, 2_407_000, 14_001_000, 512)),
            ("a10", facts("NVIDIA A10", (8, 6), 72, 1_695_000, 6_251_000, 384)),
        ] {
            let (of_sheet, of_clocks) = (&Target::built_in(target).unwrap().compute, facts.compute());
            assert_eq!(of_clocks.multiprocessors, of_sheet.multiprocessors, "{target}");
            let rates = |compute: &Compute| {
                let flops = &compute.flops_per_second;
                [compute.memory_bytes_per_second, flops.float64, flops.float32, flops.float16, flops.bfloat16]
            };
            for (ours, theirs) in rates(&of_clocks).into_iter().zip(rates(of_sheet)) {
                let ratio = ours as f64 / theirs as f64;
                assert!((0.97..1.1).contains(&ratio), "{target}: {ours} for {theirs}");
            }
        }
        assert_eq!(CudaFacts::default().compute().memory_bytes_per_second, 1, "no rate is zero");
    }

    #[test]
    fn precision_decides_the_peak() {
        let flops = &Target::built_in("v100-pcie").unwrap().compute.flops_per_second;
        assert_eq!(flops.of(ElementType::Float), 14_000_000_000_000);
        assert_eq!(flops.of(ElementType::Float16), 112_000_000_000_000);
        assert_eq!(flops.of(ElementType::Bfloat16), flops.of(ElementType::Int64));
        assert_eq!(flops.of(ElementType::Double), 7_000_000_000_000);
    }
}
