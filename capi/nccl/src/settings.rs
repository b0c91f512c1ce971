//! The settings from the environment: the operations that are taken of those that can be, and their algorithms.

use std::env;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::LazyLock;

use roundelay::selection::Selection;
use roundelay::tools::{ALGORITHM, OwnAlgorithm};
use roundelay::{Algorithm as _, Call, Promises};
use roundelay_interposer::one_of;

/// The operations that are taken over the real NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Take {
    /// Operations for which an algorithm is selected.
    Selected,
    /// These, and those that contests find faster than NCCL's.
    Faster,
    /// All operations that can be taken.
    All,
}

/// How floating-point numbers are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Average {
    /// The sum is divided before it is rounded.
    Once,
    /// Each contribution is multiplied, as NCCL does it.
    Each,
}

/// All settings.
#[derive(Debug)]
pub(crate) struct Settings {
    take: Take,
    pub(crate) average: Average,
    /// The algorithms that the user names.
    pub(crate) own: Vec<OwnAlgorithm>,
    selection: Option<&'static Selection>,
    promises: Promises,
    /// Why they make no sense, if they do not.
    pub(crate) wrong: Option<String>,
}

/// The reason for which a call over the real NCCL is made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selector {
    /// The user.
    User,
    /// A contest of times.
    Contest,
    Nothing,
}

/// The variable that says which operations are taken.
pub(crate) const TAKE: &str = "ROUNDELAY_NCCL_TAKE";

/// The variable that says how floating-point numbers are averaged.
pub(crate) const AVERAGE: &str = "ROUNDELAY_NCCL_AVERAGE";

/// Returns the settings of this process.
pub(crate) fn settings() -> &'static Settings {
    static READ: LazyLock<Settings> = LazyLock::new(|| {
        let var = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Settings::read(&var).unwrap_or_else(|why| Settings {
            wrong: Some(why),
            take: Take::Selected,
            average: Average::Once,
            own: Vec::new(),
            selection: None,
            promises: Promises::new(),
        })
    });
    &READ
}

impl Settings {
    fn read(var: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let words = ["selected", "faster", "all"];
        let take = [Take::Selected, Take::Faster, Take::All][one_of(TAKE, var(TAKE), &words)?];
        let average = one_of(AVERAGE, var(AVERAGE), &["once", "each"])?;
        let average = [Average::Once, Average::Each][average];
        let own = var(ALGORITHM).map_or(Ok(Vec::new()), |text| OwnAlgorithm::all(&text))?;
        let selection = Selection::of_process().map_err(|error| error.to_string())?;
        let promises = Promises::of_process().map_err(|error| error.to_string())?;
        Ok(Self { take, average, own, selection, promises, wrong: None })
    }

    /// Whether any operation may be taken over the real NCCL. Settings without sense count: the other ranks hear of them.
    pub(crate) fn take_any(&self) -> bool {
        self.wrong.is_some()
            || self.take != Take::Selected
            || !self.own.is_empty()
            || self.promises.any()
            || self.selection.is_some_and(|selection| !selection.entries.is_empty())
    }

    /// Returns what selects an algorithm for a call: the user by an algorithm, by the selection file, or by promises about the
    /// order of a reduction; or a contest.
    pub(crate) fn select(&self, call: &Call, nranks: u32) -> Selector {
        let Call { collective, count, dtype, .. } = *call;
        let bytes = collective.bytes(count, nranks, dtype.size() as u64);
        let in_file = |selection: &Selection| selection.find(collective, nranks, bytes).is_some();
        let by_user = self.take == Take::All
            || collective.reduces() && self.promises.any()
            || OwnAlgorithm::find(&self.own, collective, bytes).is_some()
            || self.selection.is_some_and(in_file);
        match self.take {
            _ if by_user => Selector::User,
            Take::Faster => Selector::Contest,
            Take::Selected | Take::All => Selector::Nothing,
        }
    }

    /// Returns a number that is equal on ranks with equal settings.
    pub(crate) fn digest(&self) -> u64 {
        let Self { take, average, own, selection, promises, wrong } = self;
        let mut hasher = DefaultHasher::new();
        (take, average, own, promises.to_string(), wrong.is_some()).hash(&mut hasher);
        for entry in selection.iter().flat_map(|selection| &selection.entries) {
            let algorithm = &entry.algorithm;
            (entry.collective.name(), entry.nranks, &entry.bytes).hash(&mut hasher);
            (algorithm.name(), algorithm.source()).hash(&mut hasher);
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use roundelay::{Collective, DType, ReduceOp};

    use super::*;

    fn read(take: &str, own: &str) -> Result<Settings, String> {
        Settings::read(&|name| {
            let value = match name {
                TAKE => take,
                ALGORITHM => own,
                _ => "",
            };
            (!value.is_empty()).then(|| value.to_owned())
        })
    }

    #[test]
    fn an_operation_is_selected_by_its_collective_and_size() {
        let call = |collective, count| Call {
            collective,
            root: 0,
            count,
            dtype: DType::F32,
            op: ReduceOp::Sum,
        };
        let (sum, copy) = (call(Collective::AllReduce, 1024), call(Collective::Broadcast, 1024));
        let none = read("", "").expect("no settings");
        let is_taken = |by: &Settings, call: &Call| by.select(call, 4) == Selector::User;
        assert!(!none.take_any() && none.select(&sum, 4) == Selector::Nothing);
        let all = read("all", "").expect("a word");
        assert!(all.take_any() && is_taken(&all, &sum) && is_taken(&all, &copy));
        let own = read("", "ncclAllReduce ..=4K: RingAllReduce").expect("an algorithm");
        assert!(own.take_any() && is_taken(&own, &sum) && !is_taken(&own, &copy));
        assert!(!is_taken(&own, &call(Collective::AllReduce, 1025)));
        let faster = read("faster", "Broadcast: NhrBroadcast").expect("an algorithm");
        assert!(faster.take_any() && is_taken(&faster, &copy));
        assert_eq!(faster.select(&sum, 4), Selector::Contest);
        let other = read("", "AllReduce ..=8K: RingAllReduce").expect("an algorithm");
        let digests = [&none, &all, &own, &other, &faster].map(Settings::digest);
        assert_eq!(digests.iter().collect::<std::collections::BTreeSet<_>>().len(), 5);
        let same = read("selected", "AllReduce ..=4K: RingAllReduce").expect("an algorithm");
        assert_eq!(same.digest(), own.digest());
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for (take, own, words) in
            [("some", "", "one of selected, faster, all"), ("", "AllReduce: Nowhere", "Nowhere")]
        {
            let why = read(take, own).expect_err(words);
            assert!(why.contains(words), "{why}");
        }
    }
}
