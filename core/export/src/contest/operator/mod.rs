//! Operators of one's own for HCOMM, the documented interface for custom communication operators: one function that
//! acquires threads and channels, and enqueues the work of a rank. The statements are those of the
//! [class](super::contest), over calls with indices of notifies. All of it follows the documentation's pages; the things
//! that they do not say are [assumptions](Assumption), which a text declares in its head.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::class_parts::{NUMBERS, SizeClassParts};
use super::flags::MOST_FLAGS;
use super::interface::Interface;
use super::part::SizeClassPart;
use super::{Export, SizeClass};
use crate::loops::cpp_names::identifier;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::SpanId;

/// The most threads of a communicator, and the most notifies of its threads.
const MOST_THREADS: u32 = 40;
const MOST_NOTIFIES: u32 = 64;

/// A range of products, with the engine that runs an operator's tasks there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Atlas A2: the host enqueues all tasks (`CPU_TS`).
    #[default]
    A2,
    /// Atlas A3: a kernel on the device's CPU enqueues them (`AICPU_TS`), while it holds the communicator's lock.
    A3,
    /// Atlas 350: as on A3, without a lock; a push and the signal behind it are one task.
    A350,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 3] = [Self::A2, Self::A3, Self::A350];

    const fn on_device(self) -> bool {
        !matches!(self, Self::A2)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A2 => "a2",
            Self::A3 => "a3",
            Self::A350 => "350",
        })
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|profile| profile.to_string() == text);
        known.ok_or_else(|| format!("`{text}` is no profile: they are a2, a3 and 350"))
    }
}

/// A property that an operator relies on and that the interface's documentation does not state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// The data of pushes, of which this is the number, have arrived when the peer hears a later signal of the thread.
    PushesArrive(usize),
    /// A thread's pulls and local moves see data whose signal the thread has waited for.
    SignalsPublish,
    /// All notifies are clear at the first call.
    ClearNotifies,
    /// On Atlas 350, the address of a peer's HCCL buffer is told by `HcclChannelGetHcclBuffer`.
    PeersAddress,
    /// On Atlas 350, a channel's endpoints may be left zero.
    ZeroEndpoints,
    /// On Atlas 350, the caller's stream waits until the operator's threads have ended.
    StreamWaits,
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PushesArrive(many) => {
                let pushes = if *many == 1 { "1 push".to_owned() } else { format!("{many} pushes") };
                write!(f, "data of a push arrive before a later signal of its thread ({pushes})")
            }
            Self::SignalsPublish => f.write_str("a wait for a signal makes the sender's earlier data visible"),
            Self::ClearNotifies => f.write_str("all notifies are clear before the first call"),
            Self::PeersAddress => {
                f.write_str("HcclChannelGetHcclBuffer tells the address of a peer's buffer, which its page denies for 350")
            }
            Self::ZeroEndpoints => f.write_str("a channel's descriptor on 350 may leave its endpoints zero"),
            Self::StreamWaits => {
                f.write_str("the caller's stream waits for the operator's threads on 350, which has no runtime notifies")
            }
        }
    }
}

/// The texts of an operator, and the resources that it takes of a communicator.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The name of the function: that of the export, with an underscore where it is a word of C++.
    pub name: String,
    /// The C++14 text, which includes `hcomm.h`.
    pub source: String,
    /// The declaration of its function.
    pub header: String,
    /// The steps of a build, and the text's assumptions.
    pub readme: String,
    /// The description of the kernel library, where the device enqueues the tasks.
    pub description: Option<String>,
    /// The resources.
    pub needs: OperatorNeeds,
}

/// The resources that an operator takes of a rank, and its assumptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorNeeds {
    /// The threads, of which the first is the main one.
    pub threads: u32,
    /// The notifies of all threads together.
    pub thread_notifies: u32,
    /// The notifies of each end of a channel.
    pub channel_notifies: u32,
    /// For each size class, the notifies that the signals of a lane take in turn.
    pub in_turn: Vec<u32>,
    /// The things that the documentation does not say.
    pub assumptions: Vec<Assumption>,
    /// The notifies of the main thread, and of each other thread.
    notifies: [u32; 2],
}

/// Returns an export as an operator.
///
/// # Errors
/// Findings that prevent the export, each with the index of its class: E0314 where no number of notifies in turn keeps
/// every signal, E0315 beyond the threads or notifies of a communicator, and those of [`super::contest`].
pub fn operator(export: &Export<'_>, profile: Profile) -> Result<Operator, Vec<(usize, Finding)>> {
    // A word of C++ is no name of a function.
    let name = match export.name {
        "main" => "main_".to_owned(),
        name => identifier(name),
    };
    let export = &Export { name: &name, ..export.clone() };
    let parts = SizeClassParts::new(export, Interface::Operator)?;
    let needs = OperatorNeeds::new(&parts, profile).map_err(|finding| vec![(0, *finding)])?;
    Ok(Text { export, parts, profile, needs }.operator())
}

impl OperatorNeeds {
    fn new(parts: &SizeClassParts<'_>, profile: Profile) -> Result<Self, Box<Finding>> {
        let most = |of: &dyn Fn(&SizeClassPart) -> u32| parts.all.iter().map(of).max().unwrap_or(0);
        let slaves = parts.slaves();
        let main = most(&|part| part.children[0]).max(1);
        let slave = 1 + most(&|part| part.children[1]);
        let pushes =
            parts.all.iter().map(|part| part.pushes[usize::from(profile == Profile::A350)]);
        let pushes = pushes.sum();
        let mut assumptions = vec![Assumption::SignalsPublish, Assumption::ClearNotifies];
        if pushes > 0 {
            assumptions.insert(0, Assumption::PushesArrive(pushes));
        }
        if profile == Profile::A350 {
            use Assumption::{PeersAddress, StreamWaits, ZeroEndpoints};
            assumptions.extend([PeersAddress, ZeroEndpoints, StreamWaits]);
        }
        let needs = Self {
            threads: 1 + slaves,
            thread_notifies: main + slaves * slave,
            channel_notifies: parts.all.iter().map(|part| part.flags.many()).sum(),
            in_turn: parts.all.iter().map(|part| part.flags.rounds).collect(),
            assumptions,
            notifies: [main, slave],
        };
        for (many, most, of) in [
            (needs.threads, MOST_THREADS, "threads"),
            (needs.thread_notifies, MOST_NOTIFIES, "notifies of threads"),
            (needs.channel_notifies, MOST_FLAGS, "notifies at an end of a channel"),
        ] {
            if many > most {
                let title = format!("the operator needs {many} {of}, and there are {most}");
                let help = "use fewer size classes, or algorithms with fewer lanes";
                let finding = Finding::new(Code::OverBudget, SpanId(0), title);
                return Err(Box::new(finding.note("of a communicator of HCOMM").help(help)));
            }
        }
        Ok(needs)
    }
}

/// An operator that is printed.
struct Text<'t> {
    export: &'t Export<'t>,
    parts: SizeClassParts<'t>,
    profile: Profile,
    needs: OperatorNeeds,
}

impl Text<'_> {
    fn operator(self) -> Operator {
        let Self { export, profile, .. } = self;
        let name = export.name;
        let description = profile.on_device().then(|| {
            format!(
                "{{\n  \"{name}Kernel\": {{\n    \"opInfo\": {{\n      \"opKernelLib\": \"AICPUKernel\",\n      \
                 \"kernelSo\": \"{name}.so\",\n      \"functionName\": \"{name}Kernel\"\n    }}\n  }}\n}}\n"
            )
        });
        let header = format!(
            "// Written by `roundelay emit hcomm`.\n#pragma once\n#include \"hcomm.h\"\n\n{}\nextern \"C\" HcclResult \
             {name}({});\n",
            self.comment(),
            self.parameters()
        );
        let (source, readme) = (self.source(), self.readme());
        Operator { name: name.to_owned(), source, header, readme, description, needs: self.needs }
    }

    fn reduces(&self) -> bool {
        self.export.classes[0].schedule.collective.reduces()
    }

    fn parameters(&self) -> String {
        let op = if self.reduces() { "HcclReduceOp op, " } else { "" };
        format!(
            "const void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, {op}HcclComm comm, aclrtStream stream"
        )
    }

    fn comment(&self) -> String {
        let SizeClass { schedule, .. } = self.export.classes[0];
        let op = if self.reduces() { " and, for six types, the ops sum, max and min" } else { "" };
        format!(
            "// {} of {} ranks: `count` elements a unit{op}. All ranks call it with the same arguments.",
            schedule.collective, schedule.nranks
        )
    }

    fn source(&self) -> String {
        let Self { parts, profile, needs, .. } = self;
        let mut text = format!("// Written by `roundelay emit hcomm` for profile {profile}.\n");
        text += &parts.docs();
        text += "//\n// Proved by Roundelay, with one-shot notifies. Checked by a stub made from documentation, never on an NPU.\n";
        text += "// Taken for granted, for the documentation does not say it:\n";
        for assumption in &needs.assumptions {
            let _ = writeln!(text, "// * {assumption}");
        }
        text += "#include \"hcomm.h\"\n\n#include <algorithm>\n#include <map>\n#include <mutex>\n#include <vector>\n\n";
        text += include_str!("run.h");
        text += &parts.sections();
        text.push('\n');
        text += include_str!("entry.h");
        self.fill(&text)
    }

    /// Fills the places of the text.
    fn fill(&self, text: &str) -> String {
        let Self { parts, profile, needs, export } = self;
        let SizeClass { schedule, .. } = export.classes[0];
        let (nranks, collective) = (schedule.nranks, schedule.collective);
        let device = profile.on_device();
        let older = *profile != Profile::A350;
        let given = |is: bool, text: &str| if is { text.to_owned() } else { String::new() };
        let enqueue = parts.lines(|at, part| {
            let base: u32 = parts.all[..at].iter().map(|part| part.flags.many()).sum();
            format!(
                "    case {at}:\n        run.pieces = class_{at}::PIECES;\n        run.flagsAt = {base};\n        run.rounds = {};\n        \
                 run.flags = class_{at}::FLAGS;\n        run.within = class_{at}::WITHIN;\n        return class_{at}::Enqueue(run);\n",
                part.flags.rounds
            )
        });
        let reduces = self.reduces();
        let supported = "    const bool six = dataType == HCCL_DATA_TYPE_INT8 || dataType == HCCL_DATA_TYPE_INT16 ||\n                     \
             dataType == HCCL_DATA_TYPE_INT32 || dataType == HCCL_DATA_TYPE_FP16 ||\n                     \
             dataType == HCCL_DATA_TYPE_FP32 || dataType == HCCL_DATA_TYPE_BFP16;\n    \
             if (!six || (op != HCCL_REDUCE_SUM && op != HCCL_REDUCE_MAX && op != HCCL_REDUCE_MIN)) {\n        \
             return HCCL_E_NOT_SUPPORT;\n    }\n";
        let submit = if device { "Launch(call, stream)" } else { "Submit(call)" };
        let launch = if older {
            include_str!("launch.h").replace("@SUBMIT@", submit)
        } else {
            format!("    return {submit};\n")
        };
        let wait = "    CHK_RET(Done(HcommAclrtNotifyWaitOnThread(resources.threads[0], resources.notifies[0], FOREVER)));\n";
        let record = "    CHK_RET(Done(HcommAclrtNotifyRecordOnThread(resources.threads[0], resources.notifies[1])));\n";
        let lock = "    if (HcommAcquireComm(call.communicator) != 0) {\n        return HCCL_E_UNAVAIL;\n    }\n";
        let unlock = "    if (HcommReleaseComm(call.communicator) != 0 && result == HCCL_SUCCESS) {\n        return HCCL_E_INTERNAL;\n    }\n";
        let between = parts.all.iter().any(|part| part.between_peers);
        parts
            .fill(
                &text
                    .replace("@KERNEL@", &given(device, include_str!("kernel.h")))
                    .replace("@NUMBERS@", NUMBERS),
            )
            .replace("@ENGINE@", if device { "COMM_ENGINE_AICPU_TS" } else { "COMM_ENGINE_CPU_TS" })
            .replace("@FOREVER@", if older { "0" } else { "1080000" })
            .replace("@FUSES@", if older { "false" } else { "true" })
            .replace("@FUSED@", &given(!older, include_str!("fused.h")))
            .replace("@THREADS@", &needs.threads.to_string())
            .replace("@MAIN@", &needs.notifies[0].to_string())
            .replace("@SLAVE@", &needs.notifies[1].to_string())
            .replace("@CHANNEL@", &needs.channel_notifies.to_string())
            .replace("@MOST_INPUTS@", &collective.max_input_units(nranks).to_string())
            .replace("@MOST_OUTPUTS@", &collective.max_output_units(nranks).to_string())
            .replace("@TILES@", &if between { needs.threads } else { 0 }.to_string())
            .replace("@ENQUEUE@", &enqueue)
            .replace("@BEGIN@", &given(older, wait))
            .replace("@END@", &given(older, record))
            .replace("@LOCK@", &given(*profile == Profile::A3, lock))
            .replace("@UNLOCK@", &given(*profile == Profile::A3, unlock))
            .replace("@NOTIFIES@", &given(older, include_str!("notifies.h")))
            .replace("@CREATE@", &given(older, include_str!("create.h")))
            .replace(
                "@INIT@",
                &given(older, "        CHK_RET(HcclChannelDescInit(wanted.data(), many));\n"),
            )
            .replace("@PARAMETERS@", &self.parameters())
            .replace(
                "@ARGUMENTS@",
                &format!(
                    "sendBuf, recvBuf, count, dataType, {}comm, stream",
                    given(reduces, "op, ")
                ),
            )
            .replace("@SUPPORTED@", &given(reduces, supported))
            .replace("@OP@", &given(reduces, "    call.op = static_cast<HcommReduceOp>(op);\n"))
            .replace("@LAUNCH@", &launch)
    }

    fn readme(&self) -> String {
        let Self { parts, profile, needs, export } = self;
        let name = export.name;
        let SizeClass { schedule, .. } = export.classes[0];
        let assumed: Vec<_> = needs.assumptions.iter().map(|one| format!("* {one};")).collect();
        let resources = format!(
            "{} threads with {} notifies together, and {} notifies at each end of a channel. A communicator has {MOST_THREADS} \
             threads and {MOST_NOTIFIES} notifies of threads, and an end of a channel {MOST_FLAGS}.",
            needs.threads, needs.thread_notifies, needs.channel_notifies
        );
        let build = if profile.on_device() {
            format!(
                "3. Compile the same file for the device's CPU into `{name}.so`, beside `{name}.json`.\n\
                 4. Pack both as the documentation's build script for custom operators does (vendor, operator, project), and \
                 install the package. Compile the host part with `-DROUNDELAY_KERNELS=\\\"FOLDER\\\"`, the absolute folder of \
                 `{name}.json`."
            )
        } else {
            "3. Link with the toolkit's communication and runtime libraries.".to_owned()
        };
        parts
            .fill(include_str!("readme.md"))
            .replace("@ABOUT@", &format!("{} of {} ranks.", schedule.collective, schedule.nranks))
            .replace("@PROFILE@", &profile.to_string())
            .replace("@ASSUMED@", &assumed.join("\n"))
            .replace("@RESOURCES@", &resources)
            .replace("@BUILD@", &build)
    }
}
