//! The amount of memory that a step may use, as the command line states it.

use std::fmt;
use std::str::FromStr;

use lmsc_ir::Bytes;

use crate::{Code, Error};

/// An amount of memory: bytes, or a share of the machine's memory or of the step's peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// A number of bytes: `16GiB`.
    Bytes(Bytes),
    /// A share of the target's memory: `90%`.
    OfMemory(Share),
    /// A multiple of the step's own peak: `0.7x`.
    OfPeak(Share),
}

/// A share in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u64);

/// The whole, in millionths.
const WHOLE: u64 = 1_000_000;

impl Share {
    /// The share of a decimal number with at most nine digits after the point, in units of `unit` millionths.
    fn parse(text: &str, unit: u64) -> Option<Share> {
        let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() && rest.is_empty() || !digits(whole) || !digits(rest) || rest.len() > 9 {
            return None;
        }
        let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
        let (whole, rest, scale) = (number(whole)?, number(rest)?, 10u64.pow(rest.len() as u32));
        let millionths = whole.checked_mul(unit)?.checked_add(rest.checked_mul(unit)? / scale)?;
        Some(Share(millionths))
    }

    fn of(self, bytes: Bytes) -> Bytes {
        let share = u128::from(bytes.0) * u128::from(self.0) / u128::from(WHOLE);
        Bytes(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

impl Budget {
    /// The budget in bytes, for this memory and a step of this peak.
    pub fn bytes(self, memory: Bytes, peak: impl FnOnce() -> Bytes) -> Bytes {
        match self {
            Budget::Bytes(bytes) => bytes,
            Budget::OfMemory(share) => share.of(memory),
            Budget::OfPeak(share) => share.of(peak()),
        }
    }

    /// The budget in bytes, for this memory and an option that has no peak to refer to.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) with the option's name, for a share of the peak.
    pub fn of_memory(self, option: &str, memory: Bytes) -> Result<Bytes, Error> {
        match self {
            Budget::OfPeak(_) => {
                let message = format!("{option} {self}: the step's own peak is no measure of this memory");
                Err(Error::new(Code::Option, message)
                    .with_help("give bytes, such as 64GiB, or a share of it, such as 50%"))
            }
            other => Ok(other.bytes(memory, || Bytes::ZERO)),
        }
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Budget, String> {
        let wrong = |what: String| {
            format!(
                "{what}; write bytes (16GiB), a share of the memory (90%) or of the step's own peak (0.7x)"
            )
        };
        let share = |number: &str, unit: u64| {
            Share::parse(number.trim(), unit).ok_or_else(|| wrong(format!("`{text}` is no share")))
        };
        if let Some(number) = text.strip_suffix('%') {
            return match share(number, WHOLE / 100)? {
                Share(1..=WHOLE) => Ok(Budget::OfMemory(share(number, WHOLE / 100)?)),
                _ => Err(wrong(format!("`{text}` is none of the memory, or more than there is"))),
            };
        }
        if let Some(number) = text.strip_suffix('x') {
            return match share(number, WHOLE)? {
                Share(0) => Err(wrong(format!("`{text}` is nothing"))),
                share => Ok(Budget::OfPeak(share)),
            };
        }
        if text.contains('.') && text.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit()) {
            return Err(wrong(format!("`{text}` has no unit")));
        }
        text.parse().map(Budget::Bytes).map_err(|_| wrong(format!("`{text}` is no budget")))
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = |share: Share, unit: u64| {
            let text = format!("{}.{:06}", share.0 / unit, share.0 % unit * (WHOLE / unit));
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        match *self {
            Budget::Bytes(bytes) => bytes.fmt(f),
            Budget::OfMemory(share) => write!(f, "{}%", decimal(share, WHOLE / 100)),
            Budget::OfPeak(share) => write!(f, "{}x", decimal(share, WHOLE)),
        }
    }
}

/// How much memory a step may use: a budget, or the smallest with which its plan keeps to a bound on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// At most this much memory, as fast as a plan can be.
    Budget(Budget),
    /// The smallest memory for which there is a plan: `smallest`.
    Smallest,
    /// The smallest memory found whose plan takes at most this share longer than the step without a limit: `3% slower`.
    Slower(Share),
}

impl Goal {
    /// The longest makespan that the goal allows, where the step without a limit takes `nanos`.
    pub(crate) fn longest(self, nanos: u64) -> u64 {
        match self {
            Goal::Slower(share) => nanos.saturating_add(share.of(Bytes(nanos)).0),
            Goal::Budget(_) | Goal::Smallest => u64::MAX,
        }
    }
}

/// Budgets that are tried for a goal: each halves the interval, so the result is within 1/256 of it. One more would take one more search.
const TRIES: u32 = 8;

/// The smallest of the tried budgets between `least` and `most` that `keeps` accepts; `most` if it accepts none.
///
/// Times of plans need not fall as budgets grow, so a smaller budget can exist that would be accepted, too.
pub(crate) fn smallest_budget(least: u64, most: u64, mut keeps: impl FnMut(u64) -> bool) -> u64 {
    if least >= most || keeps(least) {
        return least.min(most);
    }
    let (mut below, mut found) = (least, most);
    for _ in 0..TRIES {
        let middle = below + (found - below) / 2;
        if middle == below {
            break;
        }
        if keeps(middle) {
            found = middle;
        } else {
            below = middle;
        }
    }
    found
}

impl From<Budget> for Goal {
    fn from(budget: Budget) -> Goal {
        Goal::Budget(budget)
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Goal, String> {
        if text == "smallest" {
            return Ok(Goal::Smallest);
        }
        let Some(share) = text.strip_suffix("slower") else {
            return text.parse().map(Goal::Budget).map_err(|why: String| {
                format!("{why}, or a goal: `smallest`, or the smallest memory that makes the step at most `3% slower`")
            });
        };
        let number =
            share.trim_end().strip_suffix('%').and_then(|number| Share::parse(number.trim(), WHOLE / 100));
        number.map(Goal::Slower).ok_or_else(|| format!("`{text}` is no share of the time; write `3% slower`"))
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Goal::Budget(budget) => budget.fmt(f),
            Goal::Smallest => f.write_str("smallest"),
            Goal::Slower(share) => write!(f, "{} slower", Budget::OfMemory(share)),
        }
    }
}

/// One budget, or two with `..` between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetRange {
    /// The smallest budget.
    pub first: Budget,
    /// The largest budget.
    pub last: Budget,
}

impl FromStr for BudgetRange {
    type Err = String;

    fn from_str(text: &str) -> Result<BudgetRange, String> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let range = BudgetRange { first: first.parse()?, last: last.parse()? };
        let amounts = match (range.first, range.last) {
            (Budget::Bytes(first), Budget::Bytes(last)) => Some((first.0, last.0)),
            (Budget::OfMemory(first), Budget::OfMemory(last)) => Some((first.0, last.0)),
            (Budget::OfPeak(first), Budget::OfPeak(last)) => Some((first.0, last.0)),
            // Their order depends on the step and the target.
            _ => None,
        };
        match amounts {
            Some((first, last)) if first > last || first == 0 => {
                Err(format!("`{text}` is no range: the first budget is above the last, or zero"))
            }
            _ => Ok(range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Bytes = Bytes(1 << 30);

    fn bytes(text: &str) -> u64 {
        text.parse::<Budget>().unwrap().bytes(MEMORY, || Bytes(1000)).0
    }

    #[test]
    fn bytes_and_shares_are_read() {
        assert_eq!(bytes("16GiB"), 16 << 30);
        assert_eq!(bytes("100%"), 1 << 30);
        assert_eq!(bytes("50%"), 1 << 29);
        assert_eq!(bytes("12.5%"), 1 << 27);
        assert_eq!(bytes("0.7x"), 700);
        assert_eq!(bytes(".25x"), 250);
        assert_eq!(bytes("1.5x"), 1500);
        assert_eq!(bytes("2x"), 2000);
    }

    #[test]
    fn a_share_is_written_as_it_is_read() {
        for text in ["90%", "12.5%", "0.7x", "1x", "1.000001x"] {
            assert_eq!(text.parse::<Budget>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "", "%", "x", "-1%", "0%", "101%", "0x", "1e3x", "1.2.3%", "0x10", "0.00001%", "NaN%", "..",
            "1/2x",
        ] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
        assert_eq!(
            "lots".parse::<Budget>().unwrap_err(),
            "`lots` is no budget; write bytes (16GiB), a share of the memory (90%) or of the step's own peak (0.7x)"
        );
    }

    #[test]
    fn a_goal_is_a_budget_or_a_bound_on_time() {
        let goal = |text: &str| text.parse::<Goal>();
        assert_eq!(goal("0.7x").unwrap().to_string(), "0.7x");
        assert_eq!(goal("smallest"), Ok(Goal::Smallest));
        for text in ["3% slower", "3%slower", " 3 %  slower"] {
            assert_eq!(goal(text).unwrap().to_string(), "3% slower");
        }
        assert_eq!(goal("2.5% slower").unwrap().longest(1000), 1025);
        assert_eq!(goal("0% slower").unwrap().longest(1000), 1000);
        assert_eq!(goal("300% slower").unwrap().longest(1000), 4000);
        for text in ["slower", "3 slower", "-3% slower", "x% slower", "smaller"] {
            assert!(goal(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_smallest_budget_is_found_within_a_256th() {
        for wanted in [10, 11, 500, 999, 1000] {
            let found = smallest_budget(10, 1000, |budget| budget >= wanted);
            assert!(found >= wanted && found <= wanted + 4, "{found} for {wanted}");
        }
        assert_eq!(smallest_budget(10, 1000, |_| false), 1000);
        assert_eq!(smallest_budget(10, 10, |_| false), 10);
    }

    #[test]
    fn ranges_do_not_fall() {
        let range = |text: &str| text.parse::<BudgetRange>();
        assert!(range("50%..90%").is_ok() && range("0.5x").is_ok() && range("1GiB..90%").is_ok());
        assert!(range("90%..50%").unwrap_err().contains("no range"));
        assert!(range("0..1GiB").unwrap_err().contains("no range"));
    }

    #[test]
    fn the_host_has_no_peak() {
        let share: Budget = "0.7x".parse().unwrap();
        let refused = share.of_memory("--host-budget", MEMORY).unwrap_err();
        assert!(refused.to_string().starts_with("--host-budget 0.7x: the step's own peak is no measure"));
        assert_eq!("25%".parse::<Budget>().unwrap().of_memory("--host-budget", MEMORY).unwrap().0, 1 << 28);
    }
}
