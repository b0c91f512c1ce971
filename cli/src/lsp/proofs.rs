//! The thread that proves.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::{Receiver, Sender, unbounded};
use lsp_types::Uri;
use roundelay_core::check::CheckedSource;
use roundelay_core::stages;
use roundelay_core::syntax::Source;

use roundelay_ide::{TextProof, prove};

/// A text without errors, to be proved.
pub(super) struct Job {
    pub(super) uri: Uri,
    pub(super) version: i32,
    pub(super) source: Source,
    pub(super) checked: CheckedSource,
}

/// The proof of a version of a text.
pub(super) struct Proved {
    pub(super) uri: Uri,
    pub(super) version: i32,
    pub(super) proof: TextProof,
}

/// The thread that proves.
pub(super) struct Proofs {
    jobs: Sender<Job>,
    pub(super) done: Receiver<Proved>,
}

impl Proofs {
    pub(super) fn start() -> Self {
        let (jobs, waiting) = unbounded::<Job>();
        let (out, done) = unbounded();
        std::thread::spawn(move || {
            while let Ok(Job { uri, version, source, checked }) = waiting.recv() {
                // A text that was changed again is not worth the rest of its proof.
                let next = waiting.clone();
                let newer = move || !next.is_empty();
                let work = || stages::until(newer, || prove(&checked, &source));
                let proof = catch_unwind(AssertUnwindSafe(work));
                // A panic is a bug of ours that must not end the editor's session.
                let Ok(Some(proof)) = proof else { continue };
                if out.send(Proved { uri, version, proof }).is_err() {
                    return;
                }
            }
        });
        Self { jobs, done }
    }

    pub(super) fn prove(&self, job: Job) {
        // The thread ends with the session alone.
        let _ = self.jobs.send(job);
    }
}
