//! The output of ranks, a line at a time, each with the number of its rank.

use std::io::{BufRead as _, BufReader, Read, Result, Write};
use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::thread;

use super::Event;

/// Held while a line is written: standard output and standard error may be the same file.
static WRITING: Mutex<()> = Mutex::new(());

/// Copies all that comes `from` a rank until its end, and then sends an event.
pub(super) fn relay(
    rank: u32,
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
    events: &Sender<Event>,
) -> Result<()> {
    let events = events.clone();
    let copied = move || {
        // Where the reader has closed the output, the rank gets a closed pipe as the launcher did.
        let _ = copy(rank, from, to);
        let _ = events.send(Event::Closed);
    };
    thread::Builder::new().stack_size(1 << 16).spawn(copied).map(drop)
}

fn copy(rank: u32, from: impl Read, mut to: impl Write) -> Result<()> {
    let mut from = BufReader::new(from);
    let prefix = format!("[{rank}] ").into_bytes();
    let mut line = prefix.clone();
    while from.read_until(b'\n', &mut line)? > 0 {
        // The last one may lack it.
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        let writing = WRITING.lock();
        to.write_all(&line)?;
        to.flush()?;
        drop(writing);
        line.truncate(prefix.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::copy;

    #[test]
    fn every_line_has_its_rank_and_all_its_bytes() {
        let copied = |text: &[u8]| {
            let mut out = Vec::new();
            copy(12, text, &mut out).unwrap();
            out
        };
        assert_eq!(copied(b""), b"");
        assert_eq!(copied(b"one\n\ntwo"), b"[12] one\n[12] \n[12] two\n");
        assert_eq!(copied(b"\0\xff\r\n"), b"[12] \0\xff\r\n");
        let long = vec![b'x'; 100_000];
        assert_eq!(copied(&long).len(), 5 + long.len() + 1);
    }
}
