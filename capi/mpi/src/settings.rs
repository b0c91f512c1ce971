//! The settings from the environment.

use std::env;

use roundelay::selection::Selection;
use roundelay::tools::{ALGORITHM, OwnAlgorithm};
use roundelay::{Collective, Promises};
use roundelay_interposer::{REPORT, one_of};

/// How a program's calls are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeoverMode {
    /// All calls are MPI's.
    Off,
    /// Calls that we make faster are taken.
    On,
    /// Taken calls are made twice, and the results compared.
    Verify,
}

/// Which calls are taken of the calls that can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// The calls that we make faster, by the table of choices at first, and then by contests.
    Faster,
    /// The calls that we make faster by the table of choices.
    Table,
    /// All calls that can be taken.
    All,
}

/// All settings. A setting that makes no sense leaves all calls to MPI, and is reported once.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) mode: TakeoverMode,
    pub(crate) take: Take,
    pub(crate) own: Vec<OwnAlgorithm>,
    pub(crate) report: bool,
    /// The promises about the order of reductions: where there are some, all reductions are taken.
    pub(crate) promises: Promises,
}

const MODE: &str = "ROUNDELAY_MPI";
const TAKE: &str = "ROUNDELAY_MPI_TAKE";

impl Settings {
    /// Reads the settings of this process from its environment.
    ///
    /// # Errors
    /// The variable that makes no sense.
    pub(crate) fn of_process() -> Result<Self, String> {
        let var = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let settings = Self::of(&var)?;
        if settings.mode != TakeoverMode::Off {
            Selection::of_process().map_err(|error| error.to_string())?;
        }
        let promises = Promises::of_process().map_err(|error| error.to_string())?;
        Ok(Self { promises, ..settings })
    }

    fn of(var: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let one_of = |name: &str, words: &[&str]| one_of(name, var(name), words);
        let mode = [TakeoverMode::On, TakeoverMode::Off, TakeoverMode::Verify]
            [one_of(MODE, &["on", "off", "verify"])?];
        let take =
            [Take::Faster, Take::Table, Take::All][one_of(TAKE, &["faster", "table", "all"])?];
        let report = one_of(REPORT, &["0", "1"])? == 1;
        let own = match var(ALGORITHM) {
            Some(text) if mode != TakeoverMode::Off => OwnAlgorithm::all(&text)?,
            _ => Vec::new(),
        };
        Ok(Self { mode, take, own, report, promises: Promises::new() })
    }

    /// Whether all calls of a collective are taken, at every size. A barrier is an AllReduce of nothing.
    pub(crate) fn takes(&self, collective: Collective, barrier: bool) -> bool {
        self.take == Take::All || collective.reduces() && !barrier && self.promises.any()
    }

    /// Returns the algorithm that the user wants for a call of this collective and size.
    pub(crate) fn own(&self, collective: Collective, bytes: u64) -> Option<&OwnAlgorithm> {
        OwnAlgorithm::find(&self.own, collective, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Collective, Settings, Take, TakeoverMode};

    fn of(vars: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::of(&|name| {
            let found = vars.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_asked_for() {
        let settings = of(&[]).expect("nothing");
        let Settings { mode, take, own, report, .. } = settings;
        assert_eq!((mode, take, own.len(), report), (TakeoverMode::On, Take::Faster, 0, false));
        let settings =
            of(&[("ROUNDELAY_MPI", "verify"), ("ROUNDELAY_MPI_TAKE", "all")]).expect("words");
        assert_eq!((settings.mode, settings.take), (TakeoverMode::Verify, Take::All));
    }

    #[test]
    fn algorithms_are_by_collective_and_size() {
        let text = "allreduce: RingAllReduce; MPI_Bcast 64K..1M: NhrBroadcast;AllReduce ..=4K:NhrAllReduce;";
        let settings = of(&[("ROUNDELAY_ALGORITHM", text)]).expect("algorithms of the library");
        let name = |collective, bytes| {
            use roundelay::Algorithm as _;
            settings.own(collective, bytes).map(|own| own.algorithm.name().to_owned())
        };
        assert_eq!(name(Collective::AllReduce, 4096).as_deref(), Some("NhrAllReduce"));
        assert_eq!(name(Collective::AllReduce, 4097).as_deref(), Some("RingAllReduce"));
        assert_eq!(name(Collective::Broadcast, 1 << 16).as_deref(), Some("NhrBroadcast"));
        assert_eq!(
            (name(Collective::Broadcast, 1 << 20), name(Collective::Reduce, 8)),
            (None, None)
        );
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let told = [
            ("ROUNDELAY_MPI", "yes", "one of on, off, verify"),
            ("ROUNDELAY_MPI_TAKE", "some", "one of faster, table, all"),
            ("ROUNDELAY_REPORT", "2", "one of 0, 1"),
            ("ROUNDELAY_ALGORITHM", "AllReduce", "no colon"),
            ("ROUNDELAY_ALGORITHM", "Sum: RingAllReduce", "no collective"),
            ("ROUNDELAY_ALGORITHM", "AllReduce 1..x: RingAllReduce", "`1..x`"),
            ("ROUNDELAY_ALGORITHM", "AllReduce: RingAllGather", "no algorithm for AllReduce"),
            ("ROUNDELAY_ALGORITHM", "AllReduce: nowhere.coll", "nowhere.coll"),
            ("ROUNDELAY_ALGORITHM", "AllReduce 1K.. 2K: RingAllReduce", "one word"),
        ];
        for (name, value, words) in told {
            let why = of(&[(name, value)]).expect_err(value);
            assert!(why.contains(words) && why.contains(name), "{why}");
        }
    }
}
