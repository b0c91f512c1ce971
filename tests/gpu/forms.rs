//! The forms of instructions that compute on registers: every opcode of the kernels' list with the widths of its
//! registers, each as a kernel that loads operands, executes it once and stores its result.

use std::fmt::Write as _;

use roundelay_ptx::OPCODES;

/// The threads of a block: two warps.
pub(crate) const THREADS: u32 = 64;
/// Bytes of the operands of a thread, and of one operand.
pub(crate) const ROW: usize = 32;
const OPERAND: usize = 8;

/// The kind of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A truth value.
    Truth,
    /// Bits of 16, 32 or 64.
    Bits(u32),
    /// A distance, a position, a number of bits or a lane, in 32 bits.
    Distance,
}

impl Kind {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Truth => 1,
            Self::Bits(bits) => bits,
            Self::Distance => 32,
        }
    }

    /// The name of a register, by its number.
    fn register(self, number: usize) -> String {
        let letter = match self.bits() {
            1 => 'p',
            16 => 'h',
            32 => 'r',
            _ => 'd',
        };
        format!("%{letter}{number}")
    }
}

/// A form of an instruction.
pub(crate) struct Form {
    /// The instruction as the text has it: the result is register 0, and the sources are registers from 1 on.
    pub(crate) text: String,
    pub(crate) sources: Vec<Kind>,
    pub(crate) to: Kind,
}

/// Returns all forms, in the order of the list.
pub(crate) fn all() -> Vec<Form> {
    OPCODES.iter().flat_map(|opcode| of(opcode)).collect()
}

fn bits(ty: &str) -> u32 {
    match ty {
        "pred" => 1,
        _ => ty[1..].parse().unwrap_or_else(|_| panic!("{ty} is no type of a register")),
    }
}

fn kind(bits: u32) -> Kind {
    if bits == 1 { Kind::Truth } else { Kind::Bits(bits) }
}

/// Returns the forms of an opcode; none of one that accesses memory or that only directs threads.
fn of(opcode: &str) -> Vec<Form> {
    use Kind::{Bits, Distance, Truth};
    let words: Vec<&str> = opcode.split('.').collect();
    let last = words[words.len() - 1];
    let own = || kind(bits(last));
    let (to, sources) = match words[0] {
        "ld" | "st" | "red" | "multimem" | "fence" | "cvta" | "bra" | "call" | "ret" | "trap" => {
            return vec![];
        }
        "bar" if !words.contains(&"red") => return vec![],
        "bar" => return vec![written(format!("{opcode} %p0, 0, %p1;"), Truth, &[Truth])],
        "shfl" => {
            let sources = [Bits(32), Distance, Distance];
            let text = format!("{opcode} %r0, %r1, %r2, %r3, -1;");
            let both = format!("{opcode} %r4|%p0, %r1, %r2, %r3, -1;");
            return vec![written(text, Bits(32), &sources), written(both, Truth, &sources)];
        }
        "vote" => {
            let to = own();
            let text = format!("{opcode} {}, %p1, -1;", to.register(0));
            return vec![written(text, to, &[Truth])];
        }
        "lop3" => {
            let text = |table| format!("{opcode} %r0, %r1, %r2, %r3, {table};");
            return (0..256).map(|table| written(text(table), Bits(32), &[Bits(32); 3])).collect();
        }
        "mov" => return moves(opcode, own()),
        "cvt" => return conversions(opcode, &words[1..]),
        "setp" => (Truth, vec![own(); 2]),
        "selp" => (own(), vec![own(), own(), Truth]),
        "mul" if words.contains(&"wide") => (kind(2 * bits(last)), vec![own(); 2]),
        "add" | "sub" | "mul" | "div" | "rem" | "min" | "max" | "and" | "or" | "xor" => {
            (own(), vec![own(); 2])
        }
        "mad" | "prmt" => (own(), vec![own(); 3]),
        "neg" | "abs" | "not" | "brev" => (own(), vec![own()]),
        "clz" | "popc" | "bfind" => (Bits(32), vec![own()]),
        "shl" | "shr" => (own(), vec![own(), Distance]),
        "shf" => (own(), vec![own(), own(), Distance]),
        "bfi" => (own(), vec![own(), own(), Distance, Distance]),
        "bfe" => (own(), vec![own(), Distance, Distance]),
        other => panic!("{other}: the registers of this instruction are not known"),
    };
    vec![plain(opcode, to, &sources)]
}

fn written(text: String, to: Kind, sources: &[Kind]) -> Form {
    Form { text, sources: sources.to_vec(), to }
}

fn plain(opcode: &str, to: Kind, sources: &[Kind]) -> Form {
    let from = sources.iter().enumerate().map(|(at, kind)| kind.register(at + 1));
    let operands: Vec<String> = std::iter::once(to.register(0)).chain(from).collect();
    written(format!("{opcode} {};", operands.join(", ")), to, sources)
}

/// Moves of one register, and of the parts of one.
fn moves(opcode: &str, own: Kind) -> Vec<Form> {
    use Kind::Bits;
    let mut forms = vec![plain(opcode, own, &[own])];
    match opcode {
        "mov.b32" => {
            forms.push(written(format!("{opcode} %r0, {{%h1, %h2}};"), own, &[Bits(16); 2]));
            for parts in ["%h0, %h4", "%h4, %h0"] {
                forms.push(written(format!("{opcode} {{{parts}}}, %r1;"), Bits(16), &[own]));
            }
        }
        "mov.b64" => {
            forms.push(written(format!("{opcode} %d0, {{%r1, %r2}};"), own, &[Bits(32); 2]));
            let quarters = format!("{opcode} %d0, {{%h1, %h2, %h3, %h4}};");
            forms.push(written(quarters, own, &[Bits(16); 4]));
            for parts in ["%r0, %r4", "%r4, %r0"] {
                forms.push(written(format!("{opcode} {{{parts}}}, %d1;"), Bits(32), &[own]));
            }
        }
        _ => {}
    }
    forms
}

/// A conversion, of integers also with registers that are wider than their types.
fn conversions(opcode: &str, words: &[&str]) -> Vec<Form> {
    use Kind::Bits;
    let [.., to, from] = words else { panic!("{opcode} has two types") };
    match *to {
        "bf16x2" | "f16x2" if *from == "f32" => {
            return vec![plain(opcode, Bits(32), &[Bits(32); 2])];
        }
        "e4m3x2" | "e5m2x2" => return vec![plain(opcode, Bits(16), &[Bits(32); 2])],
        "f16x2" => return vec![plain(opcode, Bits(32), &[Bits(16)])],
        _ => {}
    }
    let from_bits = if *from == "bf16" { 16 } else { bits(from) };
    if to.starts_with('f') {
        return vec![plain(opcode, Bits(bits(to)), &[Bits(from_bits)])];
    }
    let wide = |own: u32| [16, 32, 64].into_iter().filter(move |wide| *wide >= own).take(2);
    let pairs = wide(bits(to)).flat_map(|to| wide(from_bits).map(move |from| (to, from)));
    pairs.map(|(to, from)| plain(opcode, Bits(to), &[Bits(from)])).collect()
}

/// The name of the kernel of a form, by its number in a text.
pub(crate) fn kernel(number: usize) -> String {
    format!("form{number}")
}

/// Returns a module with a kernel for each form.
pub(crate) fn module<'a>(forms: impl Iterator<Item = &'a Form>) -> String {
    let mut text = String::from(".version 8.8\n.target sm_90\n.address_size 64\n");
    for (number, form) in forms.enumerate() {
        let _ =
            writeln!(text, ".visible .entry {}(.param .u64 from, .param .u64 to)", kernel(number));
        text += HEAD;
        for (at, kind) in form.sources.iter().enumerate() {
            let (register, place) = (kind.register(at + 1), at * OPERAND);
            let _ = match kind.bits() {
                1 => writeln!(
                    text,
                    "ld.global.u32 %t, [%from+{place}];\nand.b32 %t, %t, 1;\nsetp.ne.u32 {register}, %t, 0;"
                ),
                bits => writeln!(text, "ld.global.u{bits} {register}, [%from+{place}];"),
            };
        }
        text += &form.text;
        let register = form.to.register(0);
        let _ = match form.to.bits() {
            1 => writeln!(text, "\nselp.u32 %t, 1, 0, {register};\nst.global.u32 [%to], %t;"),
            bits => writeln!(text, "\nst.global.u{bits} [%to], {register};"),
        };
        text += "ret;\n}\n";
    }
    text
}

/// The head of a kernel: the places of its thread's operands and result.
const HEAD: &str = "\
{
.reg .pred %p<5>;
.reg .b16 %h<5>;
.reg .b32 %r<5>;
.reg .b64 %d<5>;
.reg .b32 %t, %block, %size;
.reg .b64 %from, %to, %at;
ld.param.u64 %from, [from];
ld.param.u64 %to, [to];
mov.u32 %block, %ctaid.x;
mov.u32 %size, %ntid.x;
mov.u32 %t, %tid.x;
mad.lo.s32 %t, %block, %size, %t;
mul.wide.u32 %at, %t, 32;
add.s64 %from, %from, %at;
mul.wide.u32 %at, %t, 8;
add.s64 %to, %to, %at;
";
