//! The closed forms against the tables of their sources, and the book's table against the code.

use expect_test::expect;
use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_core::rational::Rat;
use roundelay_core::topology::Topology;
use roundelay_simulate::cost::{self, CostForm, FORMS, Term};
use roundelay_topology::bounds::{Bounds, Fraction};

mod fit;
mod schedules;

fn of(family: &str, collective: Collective) -> &'static CostForm {
    cost::form_of(family, collective, 8).unwrap_or_else(|| panic!("{family} has no {collective}"))
}

fn at(term: Term, n: u32) -> Rat {
    term.value(n).expect("small numbers")
}

/// Steps of HD or RHD and NHR, and the volume of AllReduce in S, as the literature tabulates them.
#[test]
fn steps_and_volumes_of_the_logarithmic_families() {
    let ratio = |num, den| Rat::new(num, den).unwrap();
    // n, steps of (R)HD AllReduce, of NHR ReduceScatter and AllReduce, volumes of both.
    let rows = [
        (4, 4, 2, 4, ratio(3, 2), ratio(3, 2)),
        (5, 6, 3, 6, ratio(7, 2), ratio(8, 5)),
        (6, 6, 3, 6, ratio(7, 2), ratio(5, 3)),
        (7, 6, 3, 6, ratio(7, 2), ratio(12, 7)),
        (8, 6, 3, 6, ratio(7, 4), ratio(7, 4)),
        (9, 8, 4, 8, ratio(15, 4), ratio(16, 9)),
        (15, 8, 4, 8, ratio(15, 4), ratio(28, 15)),
    ];
    let (rhd, nhr) = (of("RHD", Collective::AllReduce), of("NHR", Collective::AllReduce));
    let scatter = of("NHR", Collective::ReduceScatter);
    for (n, rhd_steps, scatter_steps, nhr_steps, rhd_volume, nhr_volume) in rows {
        assert_eq!(at(rhd.steps, n), Rat::whole(rhd_steps), "RHD at {n}");
        assert_eq!(at(scatter.steps, n), Rat::whole(scatter_steps), "NHR at {n}");
        assert_eq!(at(nhr.steps, n), Rat::whole(nhr_steps), "NHR at {n}");
        assert_eq!((at(rhd.volume, n), at(nhr.volume, n)), (rhd_volume, nhr_volume), "at {n}");
    }
    for (n, steps) in [(4, 2), (8, 3)] {
        assert_eq!(at(of("HD", Collective::ReduceScatter).steps, n), Rat::whole(steps));
    }
    // On powers of two the folded form is the plain one.
    for n in [2, 4, 8, 64] {
        let hd = of("HD", Collective::AllReduce);
        assert_eq!((at(hd.steps, n), at(hd.volume, n)), (at(rhd.steps, n), at(rhd.volume, n)));
    }
}

#[test]
fn times_are_sums_of_latency_and_volume() {
    // 14 messages of 2 us, and 7/4 of 8 MB at 1 GB/s.
    let ring = of("ring", Collective::AllReduce).seconds(8, 8_000_000, 2e-6, 1e9, true).unwrap();
    assert!((ring - (28e-6 + 14e-3)).abs() < 1e-12);
    let hd = of("HD", Collective::AllReduce);
    assert_eq!(hd.seconds(6, 1, 1.0, 1.0, true), None);
    assert!(hd.seconds(8, 1, 1.0, 1.0, true).is_some());
    // At small sizes the fewest messages win, at large sizes the least volume.
    let time = |family, bytes| {
        of(family, Collective::AllReduce).seconds(8, bytes, 1e-6, 1e10, true).unwrap()
    };
    assert!(time("recursive doubling", 64) < time("HD", 64) && time("HD", 64) < time("ring", 64));
    assert!(time("HD", 1 << 30) < time("recursive doubling", 1 << 30));
    assert!(time("two-way ring", 1 << 30) < time("HD", 1 << 30));
}

#[test]
fn every_form_has_a_value_and_no_twin() {
    for (i, form) in FORMS.iter().enumerate() {
        for n in 1..=1024 {
            let (messages, volume) = (at(form.steps, n), at(form.volume, n));
            assert_eq!(messages.den(), 1, "{form:?}");
            if form.admits.holds(n) && n > 1 {
                assert!(messages >= Rat::ONE && volume > Rat::ZERO, "{form:?} at {n}");
            }
        }
        let twin = FORMS[..i].iter().find(|f| {
            let same = (f.family, f.collective) == (form.family, form.collective);
            same && (2..=9).any(|n| f.admits.holds(n) && form.admits.holds(n))
        });
        assert_eq!(twin, None);
    }
}

#[test]
fn terms_are_written_as_on_paper() {
    let written: Vec<_> = ["ring", "HD", "RHD", "NHR"]
        .into_iter()
        .map(|family| {
            let form = of(family, Collective::AllReduce);
            format!("{family}: {} and {}\n", form.steps, form.volume)
        })
        .collect();
    expect![[r"
        ring: 2(n - 1) and 2(n - 1)/n
        HD: 2 floor(log2 n) and 2(n - 1)/n
        RHD: 2 ceil(log2 n) and 2(2^floor(log2 n) - 1)/2^floor(log2 n) + 2(ceil(log2 n) - floor(log2 n))
        NHR: 2 ceil(log2 n) and 2(n - 1)/n
    "]].assert_eq(&written.concat());
}

/// `UPDATE_EXPECT=1` writes the table anew.
#[test]
fn the_table_of_the_book_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/src/reference/costs.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let (begin, end) = ("<!-- forms -->\n", "<!-- end of forms -->");
    let (head, rest) = page.split_once(begin).expect("where the table begins");
    let (table, tail) = rest.split_once(end).expect("where it ends");
    if table != cost::markdown() {
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            let fresh = [head, begin, &cost::markdown(), end, tail].concat();
            std::fs::write(path, fresh).expect("the page can be written");
            return;
        }
        panic!(
            "the table of costs.md is stale: UPDATE_EXPECT=1 cargo test -p roundelay-core-tests cost::"
        );
    }
}

/// Links as each family uses them are a subset of the full mesh's, so no form may beat its bound.
#[test]
fn no_form_beats_the_lower_bound_of_the_full_mesh() {
    for n in 2..=9 {
        let topology: Topology = format!("full_mesh({n})").parse().expect("a shape");
        let bounds = Bounds::new(&topology, n, RankId(0)).expect("a run that fits");
        for form in FORMS.iter().filter(|form| form.admits.holds(n)) {
            let volume = at(form.volume, n);
            let least = bounds.bound(form.collective).per_byte;
            let volume = Fraction::new(volume.num().into(), volume.den().into());
            assert!(volume >= least, "{form:?} at {n}: {volume} < {least}");
        }
    }
}

#[test]
fn any_number_of_ranks_has_an_answer() {
    for n in [0, 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, u32::MAX] {
        for form in FORMS {
            let time = form.seconds(n, u64::MAX, 1.0, 1.0, true);
            assert_eq!(time.is_some(), n == 1 || form.admits.holds(n), "{form:?} at {n}");
        }
    }
}

#[test]
fn more_ranks_or_bytes_never_take_fewer_messages_or_less_time() {
    for form in FORMS {
        let admitted: Vec<_> = (2..=300).filter(|n| form.admits.holds(*n)).collect();
        for pair in admitted.windows(2) {
            let (fewer, more) = (at(form.steps, pair[0]), at(form.steps, pair[1]));
            if form.family == "RHD" && pair[1].is_power_of_two() {
                continue; // nobody folds any more, which saves a step or two
            }
            assert!(fewer <= more, "{form:?} from {} to {} ranks", pair[0], pair[1]);
        }
        let n = if form.admits.holds(8) { 8 } else { 7 };
        let time = |bytes| form.seconds(n, bytes, 1e-6, 1e9, true).expect("the form holds");
        assert!(time(0) > 0.0 && time(0) < time(1 << 20) && time(1 << 20) < time(1 << 30));
    }
}

#[test]
fn brackets_stand_where_the_meaning_needs_them() {
    const TWO: Term = Term::Int(2);
    const LESS: Term = Term::Sub(&Term::N, &TWO);
    const PART: Term = Term::Div(&TWO, &Term::N);
    let terms = [
        (Term::Sub(&Term::N, &LESS), "n - (n - 2)"),
        (Term::Add(&LESS, &TWO), "n - 2 + 2"),
        (Term::Div(&TWO, &PART), "2/(2/n)"),
        (Term::Div(&PART, &TWO), "2/n/2"),
        (Term::Mul(&LESS, &Term::FloorLog), "(n - 2) floor(log2 n)"),
        (Term::Div(&TWO, &LESS), "2/(n - 2)"),
    ];
    for (term, written) in terms {
        assert_eq!(term.to_string(), written);
    }
    // Out of range, and nothing to divide by.
    assert_eq!(Term::Div(&TWO, &LESS).value(2), None);
    assert_eq!(LESS.value(1), None);
    assert_eq!(Term::Mul(&Term::Int(u64::MAX), &Term::N).value(2), None);
}
