//! `roundelay watch`: checks sources again whenever one of their files is saved, for authors without a language server.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use clap::Args;
use notify::{Event, EventKind, RecursiveMode, Watcher};
use roundelay_core::diagnostics::Code;

use crate::check::{self, CheckFlags};
use crate::progress;
use crate::report::Failure;
use crate::streams::note;

/// The time in which further changes belong to the same save.
const SETTLED: Duration = Duration::from_millis(60);

#[derive(Args)]
pub(crate) struct WatchFlags {
    #[command(flatten)]
    check: CheckFlags,
}

/// Checks, and checks again at each change, until the process is ended.
pub(crate) fn main(flags: &WatchFlags) -> Result<bool, Failure> {
    let check = &flags.check;
    let sources: Vec<&String> = std::iter::once(&check.source.source).chain(&check.more).collect();
    if let Some(other) = sources.iter().find(|source| !Path::new(source.as_str()).is_file()) {
        let title = format!("{other} is no file, so it never changes");
        return Err(Failure::usage(Code::UnreadableSource, title)
            .with_help("`roundelay check` checks algorithms of the library, and standard input"));
    }
    let (tell, changes) = channel();
    let failed = |why: notify::Error| {
        Failure::usage(Code::UnreadableSource, format!("the files cannot be watched: {why}"))
    };
    let mut watcher = notify::recommended_watcher(tell).map_err(failed)?;
    // An editor that saves writes a new file in place of the old one, so the folder is watched, also for used files.
    let folders: BTreeSet<PathBuf> = sources.iter().map(|source| folder(source)).collect();
    for folder in &folders {
        watcher.watch(folder, RecursiveMode::NonRecursive).map_err(failed)?;
    }
    loop {
        progress::shown(|| check::main(check.clone()));
        note("watching: it is checked again when a file beside it is saved".to_owned());
        if !changed(&changes) {
            return Ok(true);
        }
    }
}

/// Waits until a source is written, and for the end of that save; false where no change can come any more.
fn changed(changes: &Receiver<notify::Result<Event>>) -> bool {
    let is_change = |event: &notify::Result<Event>| {
        let Ok(Event { kind, paths, .. }) = event else { return false };
        let writes =
            matches!(kind, EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_));
        writes && paths.iter().any(|path| path.extension().is_some_and(|end| end == "coll"))
    };
    loop {
        match changes.recv() {
            Err(_) => return false,
            Ok(event) if is_change(&event) => break,
            Ok(_) => {}
        }
    }
    loop {
        match changes.recv_timeout(SETTLED) {
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

/// Returns the folder of a file.
fn folder(source: &str) -> PathBuf {
    match Path::new(source).parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
