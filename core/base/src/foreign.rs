//! Files of other programs, recognized by their form: an error about a file of the wrong form says what the file is.

/// The kind of another program's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The name of the kind, in a sentence about the file.
    pub what: &'static str,
    /// The command that takes it, where there is one.
    pub taker: Option<&'static str>,
}

const fn foreign(what: &'static str) -> Foreign {
    Foreign { what, taker: None }
}

/// Files of XML by the name of their root.
const ROOTS: [(&str, Foreign); 8] = [
    ("system", Foreign { what: "a topology of NCCL's", taker: Some("roundelay topo") }),
    ("algo", Foreign { what: "a program for MSCCL", taker: Some("roundelay check") }),
    (
        "graph",
        foreign("an NCCL graph: channels that were found, not the topology they were found on"),
    ),
    (
        "graphs",
        foreign("an NCCL graph: channels that were found, not the topology they were found on"),
    ),
    ("Algo", foreign("trees that ForestColl computed for a topology")),
    ("sccl_algos", foreign("a list of programs for MSCCL: each <load> names one by its path")),
    ("topology", foreign("a machine as hwloc writes it")),
    ("nvidia_smi_log", foreign("a report of `nvidia-smi -q -x`")),
];

/// Files of JSON by keys that their text has, the more telling ones first.
const KEYS: [(&[&str], Foreign); 3] = [
    (&["\"logical-dims\""], foreign("the logical dimensions of a network for ASTRA-sim")),
    (&["\"scheduling-policy\""], foreign("the configuration of a system for ASTRA-sim")),
    (
        &["\"gpus\"", "\"collective\""],
        Foreign { what: "an execution plan for MSCCL++", taker: Some("roundelay check") },
    ),
];

/// The collectives of a table for NCCL's tuner.
const TUNED: [&str; 5] = ["allgather", "allreduce", "broadcast", "reduce", "reducescatter"];
/// The least columns of such a table.
const COLUMNS: usize = 6;

/// Returns what a file of XML is whose root has this name.
pub fn of_root(name: &str) -> Option<Foreign> {
    ROOTS.into_iter().find(|(root, _)| *root == name).map(|(_, found)| found)
}

/// Returns what a text is that has the form of another program's file: by its first line that is no comment, and by
/// keys.
pub fn recognize(text: &str) -> Option<Foreign> {
    let is_comment =
        |line: &&str| line.is_empty() || line.starts_with('#') || line.starts_with("//");
    let mut lines = text.lines().map(str::trim).skip_while(is_comment);
    let first = lines.next()?;
    if first.starts_with(['{', '[']) {
        let has = |keys: &[&str]| keys.iter().all(|key| text.contains(key));
        let known = KEYS.into_iter().find(|(keys, _)| has(keys)).map(|(_, found)| found);
        return Some(known.unwrap_or(foreign("JSON")));
    }
    let mut columns = first.split(',').map(str::trim);
    if columns.next().is_some_and(|word| TUNED.contains(&&*word.to_ascii_lowercase()))
        && columns.count() + 1 >= COLUMNS
    {
        return Some(foreign("a table of choices for NCCL's tuner plugin"));
    }
    if first.starts_with("num_ranks ") {
        return Some(foreign("a schedule in GOAL, for LogGOPSim"));
    }
    let key = |line: &str, key: &str| {
        line.strip_prefix(key).is_some_and(|l| l.trim_start().starts_with(':'))
    };
    let yaml = |wanted: &str| text.lines().any(|line| key(line, wanted));
    let dimensions = yaml("npus_count") && (yaml("topology") || yaml("bandwidth"));
    dimensions.then_some(foreign("the dimensions of a network for ASTRA-sim's analytical model"))
}
