//! The table of `nvidia-smi topo -m`: how each two GPUs of a machine are joined.
//!
//! The table names neither the GPUs nor any bandwidth, so their model is assumed, and links have the speeds of NCCL's
//! rules. `NVLinks` between two GPUs hide how PCI joins them: there the NUMA affinity tells the CPU. The machine is made
//! as the tree of a topology file (`devices`).

use super::assume::Assumption;
use super::devices::{self, Joint, Places, Row};
use crate::file_words::{Line, Word};
use roundelay_base::diagnostics::Code;
use roundelay_base::units::rate_text;
use roundelay_topology::Problem;
use roundelay_topology::file::{File, show};
use roundelay_topology::nccl::graph::{self, Completed};
use roundelay_topology::nccl::{System, speeds};

/// The most `NVLinks` that a GPU has to other GPUs; a GPU with more has them to a switch.
const MOST: u32 = 18;
/// The most columns of the table.
const COLUMNS: usize = 2048;

/// Whether a line can be the first one of such a table: names of GPUs.
pub(crate) fn begins(first: &Line) -> bool {
    first.words.len() > 1 && first.words[0].text == "GPU0" && !first.words[1].text.contains('=')
}

fn is_gpu(word: &Word) -> bool {
    let number = word.text.strip_prefix("GPU");
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads a cell.
fn joint(text: &str) -> Option<Joint> {
    Some(match text {
        "X" => Joint::Itself,
        "PIX" => Joint::Pix,
        "PXB" => Joint::Pxb,
        "PHB" => Joint::Phb,
        "NODE" => Joint::Node,
        // SOC is the word of the first drivers.
        "SYS" | "SOC" => Joint::Sys,
        _ => {
            let digits = text.strip_prefix("NV")?;
            let count = digits.parse().ok().filter(|_| !digits.starts_with('+'));
            Joint::NvLinks(count.filter(|count| (1..=1024).contains(count))?)
        }
    })
}

/// Reads a table whose first line is `head`, and `lines` behind it. Only the model of the GPUs can be assumed.
pub(crate) fn read<'a>(
    file: File<'a>,
    head: &Line<'a>,
    lines: impl Iterator<Item = Line<'a>>,
    assume: Option<Assumption>,
) -> Result<System, Problem> {
    let named = |word: &&Word| word.text != "CPU" && word.text != "NUMA";
    let columns: Vec<Word> = head.words.iter().take_while(named).copied().collect();
    if columns.len() > COLUMNS {
        let title = format!("more than {COLUMNS} columns");
        return Err(wrong(file, columns[COLUMNS].at, title));
    }
    let rows = rows(file, head, &columns, lines)?;
    let gpus: Vec<Word> = columns.iter().filter(|column| is_gpu(column)).copied().collect();
    agree(file, &gpus, &rows)?;
    let switch = switched(file, &rows)?;
    let lanes = |row: &Row| row.joints.iter().map(|(joint, _)| joint.lanes()).sum();
    let most: u32 = switch.or_else(|| rows.iter().map(lanes).max()).unwrap_or(0);
    let (mut completed, sm) =
        (Completed::default(), assume.map(Assumption::capability).transpose()?);
    let usual = match most {
        1..=6 => 70,
        0 | 7..=12 => 80,
        _ => 90,
    };
    let mut say = |sentence: String| completed.assumptions.push(sentence);
    match sm {
        Some(sm) => say(format!("The GPUs are of sm {sm}.")),
        None => say(format!(
            "The GPUs are of sm {usual}, which the table does not say: `--assume sm=90` names others."
        )),
    }
    let sm = sm.unwrap_or(usual);
    let each = rate_text(speeds::nvlink(i64::from(sm)));
    match switch {
        Some(count) => say(format!(
            "Each GPU has {count} NVLinks of {each} to one NVSwitch: as links between each two GPUs they would be more \
            than the {MOST} of a GPU."
        )),
        None if most > 0 => {
            say(format!("NV# are # NVLinks of {each} from one GPU to the other."));
        }
        None => {}
    }
    let cards = columns.len() - gpus.len();
    if cards > 0 {
        let note = "the table has no bandwidths of network cards, which are left out";
        completed.notes.push(format!("{note} ({cards})"));
    }
    let places = Places::new(&rows);
    places.hold(file, &gpus, &rows)?;
    let tree = devices::tree(&rows, &places, sm, switch);
    graph::system(file.name, file, tree, completed)
}

fn wrong(file: File, at: usize, title: impl Into<String>) -> Problem {
    file.problem(Code::BadTopology, at, title)
}

/// Reads the rows of the GPUs, in the order of the columns.
fn rows<'a>(
    file: File<'a>,
    head: &Line<'a>,
    columns: &[Word<'a>],
    lines: impl Iterator<Item = Line<'a>>,
) -> Result<Vec<Row<'a>>, Problem> {
    let numa = head.words[columns.len()..].iter().any(|word| word.text == "NUMA");
    let gpus: Vec<usize> = (0..columns.len()).filter(|at| is_gpu(&columns[*at])).collect();
    let mut rows: Vec<Option<Row>> = gpus.iter().map(|_| None).collect();
    for line in lines {
        let [name, ref cells @ ..] = line.words[..] else { continue };
        let Some(column) = columns.iter().position(|column| column.text == name.text) else {
            // The legend.
            break;
        };
        let Some(rank) = gpus.iter().position(|gpu| *gpu == column) else { continue };
        if rows[rank].is_some() {
            return Err(wrong(file, name.at, format!("a second row of {}", show(name.text))));
        }
        let joint = |column: &usize| {
            let cell = cells.get(*column).ok_or_else(|| {
                let title = format!("the row of {} has {} cells", show(name.text), cells.len());
                let columns = format!("there are {} columns", columns.len());
                wrong(file, line.end, title).note(columns).help("is it cut off?")
            })?;
            let joint = self::joint(cell.text).ok_or_else(|| {
                let title = format!("`{}` does not say how two GPUs are joined", show(cell.text));
                let help = "the words are X, NV# with a number, PIX, PXB, PHB, NODE and SYS";
                wrong(file, cell.at, title).help(help)
            })?;
            Ok((joint, cell.at))
        };
        let joints = gpus.iter().map(joint).collect::<Result<_, Problem>>()?;
        // Behind the cells are the CPU affinity, the NUMA affinity and others.
        let affinity = cells.get(columns.len() + 1).map(|word| word.text);
        let numa = affinity.filter(|numa_of| numa && *numa_of != "N/A");
        rows[rank] = Some(Row { joints, numa });
    }
    let lacking = rows.iter().position(Option::is_none);
    if let Some(rank) = lacking {
        let title = format!("the table has no row of {}", show(columns[gpus[rank]].text));
        return Err(wrong(file, file.text.len(), title).help("is it cut off?"));
    }
    Ok(rows.into_iter().flatten().collect())
}

/// Checks that both rows of two GPUs say the same.
fn agree(file: File, gpus: &[Word], rows: &[Row]) -> Result<(), Problem> {
    for (a, row) in rows.iter().enumerate() {
        for (b, (joint, at)) in row.joints.iter().enumerate().take(a + 1) {
            let (one, other) = (gpus[a].text, gpus[b].text);
            if (a == b) != (*joint == Joint::Itself) {
                let title =
                    format!("X stands between a GPU and itself, not between {one} and {other}");
                return Err(wrong(file, *at, title));
            }
            if *joint != rows[b].joints[a].0 {
                let title = format!("{one} to {other} is not as {other} to {one}");
                return Err(wrong(file, *at, title));
            }
        }
    }
    Ok(())
}

/// Returns the number of `NVLinks` of each GPU to a switch; `None` where they join GPUs.
fn switched(file: File, rows: &[Row]) -> Result<Option<u32>, Problem> {
    let lanes = |row: &Row| row.joints.iter().map(|(joint, _)| joint.lanes()).sum::<u32>();
    let Some(over) = rows.iter().position(|row| lanes(row) > MOST) else { return Ok(None) };
    let mut all = rows.iter().flat_map(|row| &row.joints).map(|(joint, _)| *joint);
    let first = all.find(|joint| *joint != Joint::Itself).unwrap_or(Joint::Itself);
    if all.all(|joint| joint == Joint::Itself || joint == first) {
        return Ok(Some(first.lanes()));
    }
    let mut sum = 0;
    let cell = rows[over].joints.iter().find(|(joint, _)| {
        sum += joint.lanes();
        sum > MOST
    });
    let title =
        format!("a GPU with {} NVLinks to others, and it has at most {MOST}", lanes(&rows[over]));
    Err(wrong(file, cell.map_or(0, |(_, at)| *at), title)
        .note("with an NVSwitch, all GPUs are joined by the same number of NVLinks"))
}
