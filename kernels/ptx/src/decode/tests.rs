//! A text with every construct, and texts that are refused.

use crate::program::{
    Address, Base, MemoryAccess, Module, Operand, Operation, Parameter, ReduceOp, Scope, Semantics,
    Space, Symbol, Type,
};

const SMALL: &str = include_str!("../../tests/kernels/small.ptx");

fn small() -> Module {
    Module::parse_whole(SMALL).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_modules_variables_have_their_bytes() {
    let module = small();
    assert_eq!((module.version, module.target.as_str()), ((9, 0), "sm_90"));
    let variables: Vec<_> = module
        .variables
        .iter()
        .map(|v| (v.name.as_str(), v.space, v.align, v.bytes, &v.initial[..]))
        .collect();
    assert_eq!(
        variables,
        [
            ("LIMIT", Space::Global, 8, 8, &1_000_000u64.to_le_bytes()[..]),
            ("HALF", Space::Global, 4, 4, &0.5f32.to_le_bytes()[..]),
            ("TABLE", Space::Global, 2, 8, &[1, 0, 2, 0, 3, 0, 0, 0]),
            ("SCALE", Space::Const, 4, 4, &[7, 0, 0, 0]),
            ("room", Space::Shared, 16, 64, &[]),
            ("more", Space::Shared, 16, 0, &[]),
        ]
    );
}

#[test]
fn parameters_are_placed_as_the_driver_expects_them() {
    let module = small();
    let kernel = &module.functions[module.function("Small").expect("the kernel")];
    let parameter = |name: &str, offset, bytes| Parameter { name: name.into(), offset, bytes };
    assert_eq!(
        kernel.parameters,
        [parameter("Small_param_0", 0, 24), parameter("Small_param_1", 24, 4)]
    );
    assert_eq!((kernel.most_threads, kernel.local_bytes), (Some([64, 1, 1]), 32));
    // Behind the parameters are the argument and the result of the call.
    assert_eq!(kernel.parameter_bytes, 48);
    let twice = &module.functions[1];
    assert!(!twice.is_kernel && kernel.is_kernel);
    assert_eq!(twice.parameters, [parameter("twice_param_0", 0, 8)]);
    assert_eq!(twice.returns, [parameter("func_retval0", 8, 8)]);
}

/// Returns the operation of the kernel in the line that begins so, or with a brace before.
fn at(module: &Module, begin: &str) -> Operation {
    let line =
        SMALL.lines().position(|line| line.trim_start_matches(['\t', '{']).starts_with(begin));
    let line = line.unwrap_or_else(|| panic!("no line {begin}")) as u32 + 1;
    let mut all = module.functions.iter().flat_map(|function| &function.instructions);
    all.find(|instruction| instruction.line == line).expect("an instruction").operation.clone()
}

#[test]
fn instructions_are_decoded() {
    let module = small();
    let kernel = &module.functions[0];
    let local = Operation::AddressOf { to: 1, symbol: Symbol::Local(0) };
    assert_eq!(kernel.instructions[0].operation, local);
    assert_eq!(
        at(&module, "cvta.local"),
        Operation::ToGeneric { to: 0, from: Operand::Slot(1), space: Space::Local }
    );
    let Operation::Load { access, to } = at(&module, "ld.param.u64 \t%rd1, [Small") else {
        panic!()
    };
    assert_eq!(access.address, Address { base: Base::Symbol(Symbol::Param(16)), offset: 0 });
    assert_eq!(to[0].map(|(_, bits)| bits), Some(64));
    let Operation::Branch { target, uniform: false } = at(&module, "@%p1 bra") else { panic!() };
    assert_eq!(kernel.instructions[target as usize].operation, at(&module, "red.release"));
    let Operation::Load { access, to } = at(&module, "ld.shared.v4") else { panic!() };
    assert_eq!((access.elements, access.used_bytes, to[2]), (4, 0xff, None));
    assert_eq!(access.address.base, Base::Symbol(Symbol::Variable(4, 32)));
    let Operation::Call(call) = at(&module, "call.uni") else { panic!() };
    assert_eq!((call.function, &*call.arguments, &*call.returns), (1, &[32][..], &[40][..]));
    let Operation::Shuffle(shuffle) = at(&module, "shfl.sync") else { panic!() };
    assert!(shuffle.valid.is_some());
    assert_eq!(shuffle.mask, Operand::Value(0xffff_ffff));
    let Operation::Unpack { to, bits: 32, .. } = at(&module, "mov.b64 \t{") else { panic!() };
    assert_eq!(to.len(), 2);
    let Operation::Join { from, bits: 32, .. } = at(&module, "mov.b64 \t%rd3") else { panic!() };
    assert_eq!(from.len(), 2);
    let Operation::Reduce { access, op, from, returns: false, .. } = at(&module, "red.release")
    else {
        panic!()
    };
    assert_eq!((op, from[0]), (ReduceOp::Add, Operand::Value(1)));
    let MemoryAccess { space, ty, semantics, scope, .. } = access;
    let expected = (Space::Global, Type::Unsigned(64), Semantics::Release, Some(Scope::Gpu));
    assert_eq!((space, ty, semantics, scope), expected);
    let moved = at(&module, "mov.f32");
    let Operation::Move { from: Operand::Value(0x3f80_0000), .. } = moved else {
        panic!("{moved:?}")
    };
    // The two operations of a line in braces, with a register of the block.
    let line = kernel.instructions.iter().filter(|i| matches!(i.operation, Operation::Barrier(_)));
    let line = line.map(|instruction| instruction.line).next().expect("a barrier");
    assert_eq!(kernel.instructions.iter().filter(|i| i.line == line).count(), 2);
}

#[test]
fn places_lead_from_the_header_to_the_page() {
    let module = small();
    let kernel = &module.functions[0];
    let load = kernel.instructions.iter().find(|i| matches!(i.operation, Operation::Load { .. }));
    let load = load.expect("a load");
    let lines: Vec<_> = module.places(load).map(|place| (place.file, place.line)).collect();
    assert_eq!(lines, [(3, 7), (2, 20), (1, 11)]);
    assert_eq!(module.source_line(load), Some(("small.coll", 11)));
    assert_eq!(module.source_line(&kernel.instructions[0]), Some(("small.coll", 10)));
}

#[test]
fn a_text_that_is_not_in_the_subset_is_refused_with_its_line() {
    let refused = |from: &str, to: &str| {
        let text = SMALL.replacen(from, to, 1);
        assert_ne!(text, SMALL, "{from}");
        let line = text.lines().zip(SMALL.lines()).position(|(new, old)| new != old);
        let error = Module::parse_whole(&text).expect_err(to);
        assert_eq!(Some(error.line), line.map(|line| line as u32 + 1), "{to}: {error}");
        error.what
    };
    for (from, to, what) in [
        ("add.s64 ", "add.sat.s64 ", "`add.sat.s64`: `.sat` is not in the subset"),
        ("add.s64 ", "tex.s64 ", "`tex.s64`: the instruction is not in the subset"),
        ("add.s64 ", "sqrt.f32 ", "`sqrt.f32`: the instruction is not in the subset"),
        ("add.s64 ", "shl.s64.x ", "`.x` is not in the subset"),
        ("%rd1, %rd1;", "%rd1, %rd9;", "`%rd9` is not a register"),
        ("%rd1, %rd1;", "%rd1;", "it takes 2 sources"),
        ("bra \t$L__BB0_2;", "bra \t$L__BB0_3;", "`$L__BB0_3` is not a label"),
        ("@%p1 bra", "@%r1 bra", "`%r1` is not a truth value"),
        (".v4.u32", ".v2.u32", "the number of elements does not fit"),
        ("red.release.gpu", "red.acquire.gpu", "the order is not one of this access"),
        ("ld.shared.v4", "ld.acquire.shared.v4", "the order does not fit the scope"),
        (".pragma \"nounroll\"", ".pragma \"other\"", "the pragma \"other\" is not in the subset"),
        ("1000000;", "1000000z;", "`1000000z` is not a number"),
        ("0f3F000000", "0f3F00", "`0f3F00` is not a number"),
        (".address_size 64", ".address_size 32", "addresses of 64 bits"),
        ("$L__BB0_2:", "$L__BB0_1: ", "is a label twice"),
    ] {
        let found = refused(from, to);
        assert!(found.contains(what), "{to}: {found}");
    }
    let cut = &SMALL[..SMALL.find("ret;").expect("the end")];
    let error = Module::parse_whole(cut).expect_err("half a text");
    assert!(error.what.contains("the end of the text"), "{error}");
}

/// A kernel that NVRTC made, whole.
#[test]
fn a_compiled_kernel_is_read() {
    let text = include_str!("../../tests/kernels/pairwise_all_to_all.ptx");
    let module = Module::parse_whole(text).unwrap_or_else(|error| panic!("{error}"));
    let kernel = &module.functions[module.function("PairwiseAllToAll").expect("the kernel")];
    assert!(kernel.is_kernel && kernel.parameters[0].bytes == 80);
    assert_eq!(module.functions.len(), 10);
    // Every instruction of the text is there.
    let is_opcode = |line: &&str| line.trim_end().ends_with(';') && !line.contains(".param .b64 ");
    let lines = text.lines().filter(is_opcode).count();
    let read: usize = module.functions.iter().map(|f| f.instructions.len()).sum();
    assert!(read > 1000 && read <= lines, "{read} of {lines}");
}
