//! The generations of GPUs that kernels are compiled for.

use std::fmt;
use std::str::FromStr;

use super::Error;

/// The oldest generation that kernels are written for: the first with bf16.
const OLDEST: u32 = 80;

/// A generation of GPUs, such as `sm_90`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch {
    number: u32,
    /// `a`: with features of only this generation; `f`: with features of its family.
    variant: Option<char>,
}

impl Arch {
    /// The generation of a device with that compute capability, such as 9 and 0.
    ///
    /// # Errors
    /// E0416 for a generation that no kernel can be compiled for.
    pub fn of_capability(major: u32, minor: u32) -> Result<Self, Error> {
        format!("sm_{major}{minor}").parse()
    }

    /// The number of the generation, ten times the compute capability: 90 for `sm_90`.
    pub fn number(self) -> u32 {
        self.number
    }
}

impl FromStr for Arch {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad =
            |why: &str| Error::BadArchitecture { given: text.to_owned(), why: why.to_owned() };
        let form =
            "it is sm_ and a compute capability without its dot, such as sm_80, sm_90 or sm_100";
        let name = text.strip_prefix("sm_").ok_or_else(|| bad(form))?;
        let (digits, variant) = match name.strip_suffix(['a', 'f']) {
            Some(digits) => (digits, name.chars().last()),
            None => (name, None),
        };
        // `parse` would accept a sign, and leading zeros.
        if !(2..=3).contains(&digits.len()) || digits.starts_with(['+', '0']) {
            return Err(bad(form));
        }
        let number = digits.parse().map_err(|_| bad(form))?;
        if number < OLDEST {
            return Err(bad(&format!(
                "kernels need sm_{OLDEST} or newer, such as sm_90 or sm_100"
            )));
        }
        Ok(Self { number, variant })
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number)?;
        self.variant.map_or(Ok(()), |variant| write!(f, "{variant}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_printed() {
        for name in ["sm_80", "sm_90", "sm_90a", "sm_100f", "sm_120"] {
            assert_eq!(name.parse::<Arch>().unwrap().to_string(), name);
        }
        assert_eq!(Arch::of_capability(10, 3).unwrap().number(), 103);
    }

    #[test]
    fn other_names_are_refused_with_what_fits() {
        for name in [
            "",
            "sm_",
            "90",
            "sm90",
            "compute_90",
            "sm_9",
            "sm_+90",
            "sm_090",
            "sm_90b",
            "sm_9000",
            "SM_90",
            "sm_aa",
            "sm_9a",
        ] {
            let error = name.parse::<Arch>().unwrap_err();
            assert_eq!(error.code().as_str(), "E0416", "{name}");
            assert!(error.to_string().contains("such as sm_80"), "{error}");
        }
        let old = "sm_75".parse::<Arch>().unwrap_err().to_string();
        assert!(old.contains("sm_80 or newer"), "{old}");
    }
}
