//! The lines in which two texts differ, with the lines around them, as rustfmt shows them.

/// Equal lines that are shown around different ones.
const AROUND: usize = 3;

/// The most lines that are taken away and put in between two texts whose equal lines are looked for; of texts that differ
/// in more, all lines between the first and the last difference are shown.
const MOST: usize = 2000;

/// A line, and the texts that have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DiffLine<'a> {
    Both(&'a str),
    Before(&'a str),
    After(&'a str),
}

/// Returns a report of the differences of a file's text from the text that it should have.
pub(crate) fn lines(name: &str, before: &str, after: &str) -> Vec<String> {
    // The end of the last line is shown where it is a difference.
    let ended = before.strip_suffix('\n').zip(after.strip_suffix('\n'));
    let (before, after) = ended.unwrap_or((before, after));
    let [before, after] = [before, after].map(|text| text.split('\n').collect::<Vec<_>>());
    let all = compared(&before, &after);
    let of_before = |line: &&DiffLine| !matches!(line, DiffLine::After(_));
    let places = all.iter().enumerate();
    let places = places.filter(|(_, line)| !matches!(line, DiffLine::Both(_))).map(|(at, _)| at);
    let mut shown = Vec::new();
    // Differences are shown together where the lines around them meet.
    for near in places.collect::<Vec<_>>().chunk_by(|a, b| b - a <= 2 * AROUND + 1) {
        let (first, last) = (near[0], near[near.len() - 1]);
        let number = 1 + all[..first].iter().filter(of_before).count();
        shown.push(format!("Diff in {name}:{number}:"));
        let around = first.saturating_sub(AROUND)..all.len().min(last + AROUND + 1);
        shown.extend(all[around].iter().map(print));
    }
    shown
}

fn print(line: &DiffLine) -> String {
    let plain = |text: &str| -> String {
        let shown = |c: char| match c {
            '\r' => '\u{240d}',
            c if c.is_control() && c != '\t' => char::REPLACEMENT_CHARACTER,
            c => c,
        };
        text.chars().map(shown).collect()
    };
    match line {
        DiffLine::Both(text) => format!(" {}", plain(text)).trim_end().to_owned(),
        DiffLine::Before(text) => format!("\x1b[31m-{}\x1b[0m", plain(text)),
        DiffLine::After(text) => format!("\x1b[32m+{}\x1b[0m", plain(text)),
    }
}

/// Returns the lines of both texts in order, with as few different ones as there can be.
fn compared<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<DiffLine<'a>> {
    let equal = |(a, b): &(&&str, &&str)| a == b;
    let head = before.iter().zip(after).take_while(equal).count();
    let (old, new) = (&before[head..], &after[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(equal).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut all: Vec<_> = before[..head].iter().map(|line| DiffLine::Both(line)).collect();
    all.extend(least(old, new).unwrap_or_else(|| {
        let old = old.iter().map(|line| DiffLine::Before(line));
        old.chain(new.iter().map(|line| DiffLine::After(line))).collect()
    }));
    all.extend(before[before.len() - tail..].iter().map(|line| DiffLine::Both(line)));
    all
}

/// Finds the least difference by Myers' greedy walk: `far[k]` is how far into the old text the walks with `d` different
/// lines come that are `k` lines further there than in the new text. Returns `None` where it is too large.
fn least<'a>(old: &[&'a str], new: &[&'a str]) -> Option<Vec<DiffLine<'a>>> {
    let most = MOST.min(old.len() + new.len());
    let index = |k: isize| (k + most as isize + 1) as usize;
    let mut far = vec![0_usize; 2 * most + 3];
    // The walks of each number of differences, from the least to the largest `k`.
    let mut walks: Vec<Vec<usize>> = Vec::new();
    let down = |far: &dyn Fn(isize) -> usize, k: isize, d: isize| {
        k == -d || k != d && far(k - 1) < far(k + 1)
    };
    let found = (0..=most as isize).find(|&d| {
        walks.push(far[index(-d - 1)..=index(d + 1)].to_vec());
        (-d..=d).step_by(2).any(|k| {
            let reached = |k| far[index(k)];
            let mut x = if down(&reached, k, d) { reached(k + 1) } else { reached(k - 1) + 1 };
            let mut y = (x as isize - k) as usize;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            far[index(k)] = x;
            x >= old.len() && y >= new.len()
        })
    })?;
    let (mut x, mut y) = (old.len(), new.len());
    let mut reversed = Vec::new();
    for d in (0..=found).rev() {
        let reached = |k: isize| walks[d as usize][(k + d + 1) as usize];
        let k = x as isize - y as isize;
        let is_new = down(&reached, k, d);
        let from = if is_new { k + 1 } else { k - 1 };
        let (from_x, first) = if d == 0 { (0, 0) } else { (reached(from), from) };
        let from_y = (from_x as isize - first) as usize;
        while x > from_x && y > from_y {
            (x, y) = (x - 1, y - 1);
            reversed.push(DiffLine::Both(old[x]));
        }
        if d > 0 {
            if is_new {
                y -= 1;
                reversed.push(DiffLine::After(new[y]));
            } else {
                x -= 1;
                reversed.push(DiffLine::Before(old[x]));
            }
        }
    }
    reversed.reverse();
    Some(reversed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_difference_of_texts() {
        // Every pair of short texts of two letters, against the longest common part by a table.
        let texts: Vec<Vec<&str>> = (0..6_u32)
            .flat_map(|len| (0..1 << len).map(move |bits| (len, bits)))
            .map(|(len, bits)| (0..len).map(|at| ["a", "b"][(bits >> at & 1) as usize]).collect())
            .collect();
        for old in &texts {
            for new in &texts {
                let all = compared(old, new);
                let of = |keep: fn(&DiffLine) -> bool| -> Vec<&str> {
                    let text = |line: &DiffLine<'static>| match *line {
                        DiffLine::Both(text) | DiffLine::Before(text) | DiffLine::After(text) => {
                            text
                        }
                    };
                    all.iter().filter(|line| keep(line)).map(text).collect()
                };
                assert_eq!(of(|line| !matches!(line, DiffLine::After(_))), *old);
                assert_eq!(of(|line| !matches!(line, DiffLine::Before(_))), *new);
                let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
                for (x, a) in old.iter().enumerate() {
                    for (y, b) in new.iter().enumerate() {
                        common[x + 1][y + 1] = if a == b {
                            common[x][y] + 1
                        } else {
                            common[x][y + 1].max(common[x + 1][y])
                        };
                    }
                }
                let both = of(|line| matches!(line, DiffLine::Both(_))).len();
                assert_eq!(both, common[old.len()][new.len()], "{old:?} {new:?}");
            }
        }
    }

    #[test]
    fn near_differences_are_shown_together_with_lines_around_them() {
        let before: Vec<String> = (1..=30).map(|line| line.to_string()).collect();
        let mut after = before.clone();
        after[4] = "five".to_owned();
        after[10] = "eleven\r".to_owned();
        after.remove(24);
        let shown = lines("a.coll", &before.join("\n"), &after.join("\n"));
        let plain = shown.join("\n").replace("\x1b[0m", "").replace("\x1b[31m", "");
        let plain = plain.replace("\x1b[32m", "");
        let (first, second) = plain.split_once("\nDiff in a.coll:25:\n").expect("two parts");
        assert_eq!(
            first,
            "Diff in a.coll:5:\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n 10\n-11\n+eleven\u{240d}\n 12\n 13\n 14"
        );
        assert_eq!(second, " 22\n 23\n 24\n-25\n 26\n 27\n 28");
        assert!(lines("a.coll", "same\n", "same\n").is_empty());
        assert_eq!(lines("a.coll", "x", "x\n")[1..], [" x", "\x1b[32m+\x1b[0m"]);
        // Texts that differ in more lines than are compared are shown as a whole.
        let many = "a\n".repeat(MOST + 1);
        assert_eq!(lines("a.coll", &many, "b\n").len(), 1 + (MOST + 1) + 1);
    }
}
