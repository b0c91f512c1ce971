//! The harness of a kernel that Roundelay makes of a page: each rank is a device, which launches it by itself.

use std::fmt::Write as _;

use roundelay::{DType, Level, ReduceOp};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::optimize::Goal;
use roundelay_core::verify::{Callers, Proved};
use roundelay_export::cuda::{Facts, Kernel, Protocol, Spec, WHOLE_LINES};
use roundelay_kernels::cuda::{Arch, Target, WALKERS};
use roundelay_kernels::grid::{Buffers, GridLayout, TooLarge};

use super::compile::OWN;
use crate::kernel::{FormFlag, VECTOR, has_protocol, kernel_of};
use crate::progress;
use crate::report::Failure;

/// Columns of a line of numbers.
const WIDTH: usize = 110;

/// The choices of a kernel.
pub(crate) struct Choices {
    pub(crate) form: Option<FormFlag>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) kind: (DType, ReduceOp),
    pub(crate) level: Level,
    pub(crate) reassociate: bool,
}

/// Returns the kernel of a proved page, each of whose ranks begins and ends by itself; or why the page has none.
pub(crate) fn own_kernel(
    algorithm: &Configured,
    proved: &Proved,
    choices: &Choices,
) -> Result<Result<Kernel, Vec<Diagnostic>>, Failure> {
    let Choices { form, protocol, kind: (element, op), level, reassociate } = *choices;
    let form = form.unwrap_or(FormFlag::Loops);
    has_protocol(form, protocol)?;
    let protocol = protocol.unwrap_or_else(|| Protocol::for_algorithm(algorithm));
    let callers = Callers::Each;
    let spec = Spec { element, op, protocol, vector: VECTOR, callers };
    let goal = Goal { level, callers, reassociate };
    Ok(progress::shown(|| kernel_of(algorithm, proved, (form, spec), goal)))
}

/// The launches of a kernel.
pub(crate) struct Launches {
    /// The GPU that it is compiled for.
    pub(crate) arch: Arch,
    /// Elements of a unit.
    pub(crate) count: u64,
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Blocks of a stream.
    pub(crate) parts: u32,
    /// Calls one after another.
    pub(crate) calls: u32,
    /// Whether a rank's input and output are in one buffer.
    pub(crate) in_place: bool,
}

impl Launches {
    /// Returns the harness of a kernel for callers each, as TOML.
    pub(crate) fn harness(&self, kernel: &Kernel) -> Result<String, Failure> {
        let Self { arch, count, threads, parts, calls, in_place } = self;
        let Kernel { name, schedule, spec, .. } = kernel;
        let (collective, nranks, dtype) = (schedule.collective, schedule.nranks, spec.element);
        if *in_place {
            Buffers::check_in_place(schedule, &kernel.proof)?;
        }
        let facts = kernel.facts(*count);
        if facts.switches.iter().any(|group| group.len() < nranks as usize) {
            let title = format!("{name} has a switch reach some of the ranks, and a harness all");
            return Err(Failure::usage(Code::NoSuchKernel, title)
                .with_help("take the form table, in which the ranks move the data"));
        }
        // A switch has one address for the buffers of all ranks.
        let (multicast, of_all) = match facts.switches[..] {
            [] => ("", String::new()),
            _ if *in_place => {
                (", multicast = true", r#", of_all = ["both", "both", "scratch"]"#.to_owned())
            }
            _ => (", multicast = true", r#", of_all = ["input", "output", "scratch"]"#.to_owned()),
        };
        let layout = GridLayout::new(&facts, *parts, dtype.size()).map_err(|TooLarge| {
            Failure::usage(Code::TooLarge, "its memory has more bytes than addresses")
        })?;
        let target = Target { threads: *threads, ..Target::new(*arch) };
        // Lines that arrive whole are aligned.
        let (assumed, aligned) = match (spec.protocol, WHOLE_LINES) {
            (Protocol::Ll128, (name, why)) => {
                (format!("assume = {{ {name} = \"{why}\" }}\n"), ", align = 128")
            }
            _ => (String::new(), ""),
        };
        let mut text = format!(
            "title = \"the kernel of {name} for {nranks} ranks, each on a device of its own\"\n{assumed}\n\
             [module.ours]\ntext = {}\nprelude = [\"{OWN}\"]\narch = \"{arch}\"\noptions = [\"--fmad=false\"]\n\
             define = [\"ROUNDELAY_SCOPE_SYS=1\", \"ROUNDELAY_THREADS={threads}\", \"ROUNDELAY_IN_FLIGHT={}\"]\n\n",
            literal(&kernel.text),
            target.in_flight(),
        );
        let buffers: Vec<Buffers> = (0..nranks)
            .map(|rank| Buffers::new(schedule, RankId(rank), *count, dtype.size()))
            .collect();
        let each = |of: fn(&Buffers) -> usize, size: usize| {
            by_rank(buffers.iter().map(|rank| (of(rank) / size) as i64))
        };
        let (input, output) = if *in_place { ("both", "both") } else { ("input", "output") };
        text += "[memory] # one of each for every rank\n";
        let mut data = |name: &str, of: fn(&Buffers) -> usize, fill: &str| {
            let (ty, len) = (dtype.name(), each(of, dtype.size()));
            writeln!(
                text,
                "{name} = {{ type = \"{ty}\", len = {len}, peers = true{multicast}{fill} }}"
            )
            .expect("a string grows");
        };
        let random = ", fill = \"random\"";
        if *in_place {
            data(input, |rank| rank.shared, random);
        } else {
            data(input, |rank| rank.input, random);
            data(output, |rank| rank.output, "");
        }
        let zeros = ", init = \"zero\"";
        let mut words = vec![("scratch", layout.scratch_bytes, aligned)];
        words.extend([("posted", layout.posted_words * 8, zeros)]);
        words.extend([("waited", layout.waited_words * 8, zeros)]);
        words.extend(facts.counts_launches.then_some((
            "launches",
            layout.launches_words * 8,
            zeros,
        )));
        words.extend([(
            "control",
            layout.control_words * 8,
            ", init = \"zero\", after = \"zero\"",
        )]);
        for (name, bytes, more) in words {
            let multicast = if name == "scratch" { multicast } else { "" };
            let _ = writeln!(text, "{name} = {{ bytes = {bytes}, peers = true{multicast}{more} }}");
        }
        let offset = |of: fn(&Buffers) -> usize| each(of, 1);
        let table =
            [(input, offset(|rank| rank.input_at)), (output, offset(|rank| rank.output_at))];
        let table = table.map(|(name, offset)| match in_place {
            true => format!("{{ ptr = \"{name}\", offset = {offset} }}"),
            false => format!("\"{name}\""),
        });
        let _ = write!(
            text,
            "ranks = {{ pointers = [{}, \"scratch\", \"posted\", \"waited\"], by = \"rank\"{of_all} }}\n\
             facts = {{ type = \"i64\", len = {}, init = {{ values = [{}\n] }} }}\n\n",
            table.join(", "),
            facts.words.len(),
            wrapped(&facts.words)
        );
        let launches = if facts.counts_launches { "ptr = \"launches\"" } else { "null = true" };
        let scale = u8::from(facts.scale_outputs);
        let args = format!(
            "args = [{{ struct = [\n    \
             {{ ptr = \"facts\" }}, {{ ptr = \"ranks\" }}, {{ ptr = \"control\", rank = 0 }}, {{ {launches} }},\n    \
             {{ u64 = {count} }}, {{ u64 = {parts} }}, {{ u64 = {} }}, {{ i64 = {} }}, {{ u64 = {scale} }},\n    \
             {{ u64 = 0 }}, {{ u64 = 0 }}, {{ u64 = 0 }}, {{ u64 = 0 }}, # no stage\n] }}]\n",
            by_rank(firsts(&facts, nranks).into_iter()),
            i64::MAX,
        );
        let blocks = groups(&facts, nranks).map(|groups| groups * i64::from(*parts));
        let _ = write!(text, "[[call]] # what a rank does in each call\nwrite = \"{input}\"\n\n");
        let _ = write!(
            text,
            "[[call]]\nkernel = \"ours.{name}\"\ngrid = {}\nblock = {threads}\n{args}\n",
            by_rank(blocks)
        );
        if facts.scale_outputs {
            let threads = threads - WALKERS;
            let _ = write!(
                text,
                "[[call]]\nkernel = \"ours.{name}_scale\"\ngrid = {parts}\nblock = {threads}\n{args}\n"
            );
        }
        let (op, root) = (spec.op.name(), schedule.root);
        let _ = write!(
            text,
            "[[expect]]\ncollective = \"{collective} {op}\"\ninput = \"{input}\"\nbuffer = \"{output}\"\n\
             count = {count}\nroot = {root}\n"
        );
        // The algorithm chooses the order; narrow sums are rounded at each of its steps.
        if collective.reduces() {
            let _ = write!(text, "order = \"any\"\nulp = {}\n", kernel.proof.reduce_depth.max(1));
        }
        let _ = write!(
            text,
            "\n[run]\ncalls = {calls}\nranks = [{nranks}]\nelements = [{count}]\nseeds = 20\n\
             late = [0, \"ranks-1\"]\n"
        );
        Ok(text)
    }
}

/// The streams of each rank.
fn groups(facts: &Facts, nranks: u32) -> impl Iterator<Item = i64> + '_ {
    let of = |rank| facts.groups.iter().filter(|group| group.rank.0 == rank).count() as i64;
    (0..nranks).map(of)
}

/// The streams before those of each rank.
fn firsts(facts: &Facts, nranks: u32) -> Vec<i64> {
    let mut before = 0;
    let first = |groups| {
        before += groups;
        before - groups
    };
    groups(facts, nranks).map(first).collect()
}

/// The values of the ranks as a number or an expression.
fn by_rank(values: impl Iterator<Item = i64>) -> String {
    let values: Vec<i64> = values.collect();
    let first = values.first().copied().unwrap_or(0);
    let step = values.get(1).map_or(0, |second| second - first);
    let is_line = values.iter().zip(0..).all(|(value, rank)| *value == first + step * rank);
    match (is_line, first, step) {
        (true, _, 0) => first.to_string(),
        (true, 0, 1..) => format!("\"{step}*rank\""),
        (true, _, 1..) => format!("\"{first} + {step}*rank\""),
        _ => {
            let one = |(value, rank): (&i64, usize)| format!("(rank == {rank})*{value}");
            let others = values.iter().zip(0..).filter(|(value, _)| **value != 0);
            format!("\"{}\"", others.map(one).collect::<Vec<_>>().join(" + "))
        }
    }
}

/// Numbers in lines.
fn wrapped(words: &[i64]) -> String {
    let (mut text, mut column) = (String::new(), WIDTH);
    for word in words {
        let word = format!(" {word},");
        if column + word.len() > WIDTH {
            text += "\n   ";
            column = 3;
        }
        column += word.len();
        text += &word;
    }
    text
}

/// A text as a value of TOML.
fn literal(text: &str) -> String {
    let is_plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.contains("'''") || !text.chars().all(is_plain) {
        return serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f");
    }
    format!("'''\n{text}'''")
}
