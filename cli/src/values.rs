//! The values of flags: read from text, or refused with advice.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use roundelay::tools::{self, amount};
use roundelay::{Collective, DType, Level, NotPromises, Promises, ReduceOp};
use roundelay_core::diagnostics::Code;
use roundelay_core::values::resource::Resource;
use roundelay_core::verify::Signals;
use roundelay_export::contest::operator::Profile;
use roundelay_simulate::cost::{read_rate, read_time};

/// Why a value is refused. The flag and the value stand before it when it is printed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RefusedValue {
    pub(crate) code: Code,
    why: String,
    pub(crate) help: Option<String>,
}

impl RefusedValue {
    /// Makes a refusal with a line that goes on after the flag and its value, such as `is not a dtype`.
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { code: Code::BadFlag, why: why.into(), help: None }
    }

    /// Adds advice.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn code(self, code: Code) -> Self {
        Self { code, ..self }
    }
}

impl fmt::Display for RefusedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for RefusedValue {}

/// Rank counts as written, and whether one was named (then a refusal is an error).
#[derive(Clone, Debug)]
pub(crate) struct RankCounts {
    pub(crate) counts: Vec<u32>,
    pub(crate) named: bool,
}

impl RankCounts {
    /// Returns the given counts; `default` where none was given.
    pub(crate) fn or(given: Option<&Self>, default: u32) -> Self {
        given.cloned().unwrap_or_else(|| Self::one(default))
    }

    /// Makes one count, as if named.
    pub(crate) fn one(nranks: u32) -> Self {
        Self { counts: vec![nranks], named: true }
    }

    /// Makes a range, in which counts may be refused.
    pub(crate) fn range(counts: RangeInclusive<u32>) -> Self {
        Self { counts: counts.collect(), named: false }
    }
}

const MOST_RANKS: u32 = 1 << 16;

pub(crate) fn rank_counts(text: &str) -> Result<RankCounts, RefusedValue> {
    let help = "rank counts are such as 8, 2..=33, 2..9 or 2,4,8";
    let outside = |why: &str| {
        let help = format!("a rank count is in 1..={MOST_RANKS}");
        Err(RefusedValue::new(why).code(Code::NoRanks).help(help))
    };
    let count = |text: &str| {
        let parsed = text.trim().parse::<u32>();
        parsed.map_err(|_| RefusedValue::new("is not a number of ranks, nor several").help(help))
    };
    let (counts, named) = match text.split_once("..") {
        Some((lo, hi)) => {
            let range: RangeInclusive<u32> = match hi.strip_prefix('=') {
                Some(hi) => count(lo)?..=count(hi)?,
                None => count(lo)?..=count(hi)?.saturating_sub(1),
            };
            if range.end().saturating_sub(*range.start()) > MOST_RANKS {
                return outside("are too many rank counts");
            }
            (range.collect::<Vec<_>>(), false)
        }
        None => (text.split(',').map(count).collect::<Result<Vec<_>, _>>()?, true),
    };
    if counts.is_empty() {
        return Err(RefusedValue::new("is a range without any rank count").help(help));
    }
    if counts.contains(&0) {
        return outside("asks for a run without ranks");
    }
    if counts.iter().any(|n| *n > MOST_RANKS) {
        return outside("is beyond the largest rank count");
    }
    Ok(RankCounts { counts, named })
}

pub(crate) fn rank_count(text: &str) -> Result<u32, RefusedValue> {
    match rank_counts(text)?.counts[..] {
        [nranks] => Ok(nranks),
        _ => Err(RefusedValue::new("are several rank counts").help("give one, such as 8")),
    }
}

/// Reads the number of processes of a job.
pub(crate) fn process_count(text: &str) -> Result<u32, RefusedValue> {
    const MOST: u32 = 1024;
    match rank_count(text)? {
        count if count > MOST => {
            let help = format!("processes are in 1..={MOST}");
            Err(RefusedValue::new("are too many processes").code(Code::NoRanks).help(help))
        }
        count => Ok(count),
    }
}

/// Reads a size as nccl-tests reads it: K, M and G are powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<u64, RefusedValue> {
    tools::bytes(text).ok_or_else(|| {
        RefusedValue::new("is not a whole number of bytes")
            .help("a size is a number of bytes such as 4096, 64K, 1MiB or 1.5GB")
    })
}

/// Reads a number of elements: K, M and G are those of sizes.
pub(crate) fn count(text: &str) -> Result<u64, RefusedValue> {
    let unit = |letters: &str| match letters {
        "" => Some(1),
        "K" | "k" | "Ki" => Some(1 << 10),
        "M" | "m" | "Mi" => Some(1 << 20),
        "G" | "g" | "Gi" => Some(1 << 30),
        power => 10_u64.checked_pow(power.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    amount(text, unit).ok_or_else(|| {
        RefusedValue::new("is not a number of elements below 2^64").help(
            "a count is such as 1000, 64K, 1M (1024 times 1024) or 1e6 (a million), without B for bytes",
        )
    })
}

/// Makes a parser of a whole number that is in `range`.
pub(crate) fn whole<T: Number>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, RefusedValue> + Clone + Send + Sync + 'static {
    move |text| number(text, range.start(), Some(range.end()))
}

/// Makes a parser of a whole number of `least` or more.
pub(crate) fn at_least<T: Number>(
    least: T,
) -> impl Fn(&str) -> Result<T, RefusedValue> + Clone + Send + Sync + 'static {
    move |text| number(text, &least, None)
}

/// The number types of flags.
pub(crate) trait Number:
    FromStr + PartialOrd + fmt::Display + Clone + Send + Sync + 'static
{
}

impl<T: FromStr + PartialOrd + fmt::Display + Clone + Send + Sync + 'static> Number for T {}

fn number<T: Number>(text: &str, least: &T, most: Option<&T>) -> Result<T, RefusedValue> {
    let range = most.map_or_else(|| format!("{least}.."), |most| format!("{least}..={most}"));
    let within = |number: &T| number >= least && most.is_none_or(|most| number <= most);
    match text.parse::<T>() {
        Ok(number) if within(&number) => Ok(number),
        Err(_) if most.is_none() && is_number(text) && !text.starts_with('-') => {
            Err(RefusedValue::new("is too large").help("give a smaller number"))
        }
        // A number that does not fit its type is a number all the same.
        parsed if parsed.is_ok() || is_number(text) => {
            let why = format!("is not in {range}");
            Err(RefusedValue::new(why).help(format!("give a whole number in {range}")))
        }
        _ => Err(RefusedValue::new("is not a whole number").help(format!("give one in {range}"))),
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

pub(crate) fn level(text: &str) -> Result<Level, RefusedValue> {
    text.parse().map_err(|_| RefusedValue::new("is not a level").help("the levels are 0, 1 and 2"))
}

pub(crate) fn signals(text: &str) -> Result<Signals, RefusedValue> {
    text.parse().map_err(|why: String| RefusedValue::new("is not how signals may behave").help(why))
}

pub(crate) fn profile(text: &str) -> Result<Profile, RefusedValue> {
    text.parse().map_err(|why: String| RefusedValue::new("is no profile").help(why))
}

pub(crate) fn budget(text: &str) -> Result<(Resource, u64), RefusedValue> {
    let budget = text.split_once('=').and_then(|(name, most)| {
        Some((Resource::from_name(name.trim())?, most.trim().parse().ok()?))
    });
    budget.ok_or_else(|| {
        let names = Resource::ALL.map(Resource::name).join(", ");
        RefusedValue::new("is not a budget")
            .help(format!("a budget is RESOURCE=MOST, and the resources are {names}"))
    })
}

pub(crate) fn promises(text: &str) -> Result<Promises, RefusedValue> {
    text.parse().map_err(|why: NotPromises| {
        RefusedValue::new("is no list of promises")
            .help(format!("{why}; such as all_counts,roundings=1"))
    })
}

pub(crate) fn setting(text: &str) -> Result<(String, String), RefusedValue> {
    tools::setting(text).ok_or_else(|| {
        RefusedValue::new("is not a setting").help("a setting is NAME=VALUE, such as ring=1,2,3,0")
    })
}

pub(crate) fn dtype(text: &str) -> Result<DType, RefusedValue> {
    DType::from_name(text).ok_or_else(|| {
        let names: Vec<_> = DType::ALL.iter().map(|d| d.name()).collect();
        RefusedValue::new("is not a dtype").help(format!("the dtypes are {}", names.join(" ")))
    })
}

pub(crate) fn reduce_op(text: &str) -> Result<ReduceOp, RefusedValue> {
    ReduceOp::from_name(text).ok_or_else(|| {
        let names: Vec<_> = ReduceOp::ALL.iter().map(|op| op.name()).collect();
        RefusedValue::new("is not a reduce op")
            .help(format!("the reduce ops are {}", names.join(" ")))
    })
}

/// Returns the collective of that name, in any case of letters.
pub(crate) fn collective_named(name: &str) -> Option<Collective> {
    Collective::ALL.into_iter().find(|collective| collective.name().eq_ignore_ascii_case(name))
}

pub(crate) fn collective(name: &str) -> Result<Collective, RefusedValue> {
    collective_named(name).ok_or_else(|| {
        RefusedValue::new("is not a collective")
            .help(format!("the collectives are {}", collectives()))
    })
}

/// Returns the names of the collectives.
pub(crate) fn collectives() -> String {
    Collective::ALL.map(Collective::name).join(", ")
}

/// Reads a bandwidth.
pub(crate) fn rate(text: &str) -> Result<f64, RefusedValue> {
    read_rate(text).ok_or_else(|| {
        RefusedValue::new("is not a bandwidth").help("a bandwidth is such as 25GB/s")
    })
}

/// Reads a time.
pub(crate) fn time(text: &str) -> Result<f64, RefusedValue> {
    read_time(text).ok_or_else(|| RefusedValue::new("is not a time").help("a time is such as 2us"))
}

/// Reads a duration.
pub(crate) fn duration(text: &str) -> Result<Duration, RefusedValue> {
    let seconds = if text.trim() == "0" { Some(0.0) } else { read_time(text) };
    let read = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    read.ok_or_else(|| RefusedValue::new("is not a time").help("a time is such as 90s, 500ms or 0"))
}

/// Returns nccl-tests' count for a size: the count that is passed to the call. Where it is a rank's share of the size,
/// it is rounded down to a multiple of 16 bytes, if it has as many.
pub(crate) fn count_of_size(
    collective: Collective,
    nranks: u32,
    size: u64,
    dtype_size: u64,
) -> u64 {
    let unit = collective.bytes(1, nranks, dtype_size);
    let count = size / unit;
    let whole = 16 / dtype_size.min(16);
    if unit == dtype_size || count < whole { count } else { count / whole * whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_elements() {
        let read = |text| count(text).ok();
        assert_eq!(read("1000"), Some(1000));
        assert_eq!(read("64K"), Some(65_536));
        assert_eq!(read("1M"), Some(1 << 20));
        assert_eq!(read("1.5M"), Some(3 << 19));
        assert_eq!(read("2G"), Some(2 << 30));
        assert_eq!(read("1e6"), Some(1_000_000));
        assert_eq!(read("2.5e3"), Some(2500));
        assert_eq!(read("0"), Some(0));
        for wrong in ["", "M", "1MB", "64KiB", "-1", "1e", "1e-3", "0.3", "1e20", "abc", "1 000"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn whole_numbers() {
        let workers = whole(1..=1024_u32);
        assert_eq!(workers("1024"), Ok(1024));
        for (text, why) in [
            ("5000", "is not in 1..=1024"),
            ("0", "is not in 1..=1024"),
            ("-3", "is not in 1..=1024"),
            ("99999999999999999999", "is not in 1..=1024"),
            ("abc", "is not a whole number"),
            ("1.5", "is not a whole number"),
            ("", "is not a whole number"),
        ] {
            assert_eq!(workers(text).unwrap_err().to_string(), why, "{text}");
        }
        let iterations = at_least(1_u32);
        assert_eq!(iterations("7"), Ok(7));
        assert_eq!(iterations("0").unwrap_err().to_string(), "is not in 1..");
        assert_eq!(iterations("-1").unwrap_err().to_string(), "is not in 1..");
        assert_eq!(iterations("4294967296").unwrap_err().to_string(), "is too large");
    }
}
