//! Near clocks: a stream keeps an entry for the streams that it signals with, the streams that touch the memory of a
//! rank whose memory it touches, and the streams of its own rank. Events of other streams may well come before: that is
//! known only if a stream in between keeps an entry for them too.

use std::collections::VecDeque;

use crate::ids::{ChannelId, StreamId};
use crate::schedule::{OpKind, Schedule};

/// Streams keep at most one in `SHARE` of all entries; beyond that, dense clocks are as good.
const SHARE: usize = 4;

/// The most entries that the ends of all channels have in common.
const BOTH: usize = 1 << 24;

pub(super) struct Near {
    /// The first entry of each stream, and the end.
    first: Vec<u32>,
    /// The stream that each entry is about; sorted within a stream.
    about: Vec<StreamId>,
    /// The number of events of that stream that are known.
    known: Vec<u32>,
    joins: Vec<Join>,
    /// The entries that both ends of a channel keep: the entry of the posting stream, and of the waiting stream.
    both: Vec<(u32, u32)>,
    /// The entries that posts carry until their waits take them.
    carried: Vec<VecDeque<u32>>,
}

/// The entries that a wait on a channel learns.
#[derive(Clone, Copy, Default)]
struct Join {
    /// The entry about the posting stream.
    poster: u32,
    /// The stretch of `both` of this channel.
    first: u32,
    len: u32,
}

impl Near {
    /// Creates near clocks; `None` where dense clocks are as good, where near clocks would take more than `limit`
    /// entries, or where streams share the end of a channel.
    pub(super) fn new(schedule: &Schedule, limit: usize) -> Option<Self> {
        let streams = schedule.streams.len();
        let most = limit;
        let limit = limit.min(streams * streams / SHARE);
        let ends = ends(schedule)?;
        let (first, about) = about(schedule, &ends, limit)?;
        let mut near = Self {
            known: vec![0; about.len()],
            joins: vec![Join::default(); ends.len()],
            both: Vec::new(),
            carried: vec![VecDeque::new(); ends.len()],
            first,
            about,
        };
        for (channel, [from, to]) in ends.into_iter().enumerate() {
            let (Some(from), Some(to)) = (from, to) else { continue };
            let first = near.both.len();
            near.meet(from, to);
            near.joins[channel] = Join {
                poster: near.entry(to, from)?,
                first: first as u32,
                len: (near.both.len() - first) as u32,
            };
            if near.both.len() > BOTH.min(most).min(near.joins.len() * streams / SHARE) {
                return None;
            }
        }
        Some(near)
    }

    fn entries(&self, stream: StreamId) -> std::ops::Range<usize> {
        self.first[stream.index()] as usize..self.first[stream.index() + 1] as usize
    }

    /// Returns the entry of `stream` about stream `of`.
    fn entry(&self, stream: StreamId, of: StreamId) -> Option<u32> {
        let range = self.entries(stream);
        let at = self.about[range.clone()].binary_search(&of).ok()?;
        Some((range.start + at) as u32)
    }

    /// Adds the entries that both streams keep to `both`.
    fn meet(&mut self, from: StreamId, to: StreamId) {
        let (mut theirs, mut mine) = (self.entries(from), self.entries(to));
        while let (Some(&their), Some(&my)) =
            (self.about[theirs.clone()].first(), self.about[mine.clone()].first())
        {
            if their == my {
                self.both.push((theirs.start as u32, mine.start as u32));
            }
            theirs.start += usize::from(their <= my);
            mine.start += usize::from(my <= their);
        }
    }

    pub(super) fn known(&self, stream: StreamId, of: StreamId) -> u32 {
        self.entry(stream, of).map_or(0, |entry| self.known[entry as usize])
    }

    /// Records a post; the stream that meets it knows `count` events of the posting stream, with the post.
    pub(super) fn post(&mut self, channel: ChannelId, count: u32) {
        let Join { first, len, .. } = self.joins[channel.index()];
        let carried = &mut self.carried[channel.index()];
        carried.push_back(count);
        let both = &self.both[first as usize..][..len as usize];
        carried.extend(both.iter().map(|(theirs, _)| self.known[*theirs as usize]));
    }

    pub(super) fn wait(&mut self, channel: ChannelId) {
        let Join { poster, first, len } = self.joins[channel.index()];
        let both = &self.both[first as usize..][..len as usize];
        let learn = std::iter::once(poster).chain(both.iter().map(|(_, mine)| *mine));
        let news = self.carried[channel.index()].drain(..=len as usize);
        for (entry, news) in learn.zip(news) {
            let known = &mut self.known[entry as usize];
            *known = news.max(*known);
        }
    }
}

/// Returns the streams at the ends of each channel, the posting stream first; `None` where several streams share an
/// end.
fn ends(schedule: &Schedule) -> Option<Vec<[Option<StreamId>; 2]>> {
    let mut ends = vec![[None; 2]; schedule.channels.len()];
    for (id, stream) in schedule.streams.iter().enumerate() {
        let id = StreamId(id as u32);
        for op in &schedule.ops[stream.first.index()..][..stream.len as usize] {
            if op.kind != OpKind::Move {
                let end = &mut ends[op.arg as usize][usize::from(op.kind == OpKind::Wait)];
                if *end.get_or_insert(id) != id {
                    return None;
                }
            }
        }
    }
    Some(ends)
}

/// Returns the streams that each stream keeps an entry about, and the first entry of each stream; `None` beyond `limit`
/// entries.
fn about(
    schedule: &Schedule,
    ends: &[[Option<StreamId>; 2]],
    limit: usize,
) -> Option<(Vec<u32>, Vec<StreamId>)> {
    let mut keeps: Vec<Vec<StreamId>> = vec![Vec::new(); schedule.streams.len()];
    let touched = touched(schedule);
    // Checked before any list is filled: streams that meet at one rank keep entries of each other.
    let most: usize = touched.iter().map(|here| here.len() * here.len()).sum();
    if most > limit.saturating_mul(SHARE) {
        return None;
    }
    for here in &touched {
        for stream in here {
            keeps[stream.index()].extend(here.iter().filter(|other| *other != stream));
        }
    }
    for &[from, to] in ends {
        if let (Some(from), Some(to)) = (from, to) {
            keeps[from.index()].push(to);
            keeps[to.index()].push(from);
        }
    }
    let mut first = Vec::with_capacity(keeps.len() + 1);
    let mut about = Vec::new();
    for mut keep in keeps {
        first.push(about.len() as u32);
        keep.sort_unstable();
        keep.dedup();
        about.extend(keep);
        if about.len() > limit {
            return None;
        }
    }
    first.push(about.len() as u32);
    Some((first, about))
}

/// Returns for each rank its streams and the streams that touch its memory.
fn touched(schedule: &Schedule) -> Vec<Vec<StreamId>> {
    let mut touched: Vec<Vec<StreamId>> = vec![Vec::new(); schedule.nranks as usize];
    for (id, stream) in schedule.streams.iter().enumerate() {
        let id = StreamId(id as u32);
        touched[stream.rank.index()].push(id);
        for op in &schedule.ops[stream.first.index()..][..stream.len as usize] {
            if op.kind == OpKind::Move {
                for operand in schedule.operands_of(op) {
                    let here = &mut touched[operand.rank.index()];
                    // Streams come in order, so a repeated stream is the last of the list.
                    if here.last() != Some(&id) {
                        here.push(id);
                    }
                }
            }
        }
    }
    touched
}
