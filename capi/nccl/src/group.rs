//! The groups of a thread. Operations that are taken wait for the last end of their group. A group with one operation
//! that is not taken goes on whole and in order: the order on a stream would be another one otherwise.

use std::cell::RefCell;
use std::ffi::c_int;
use std::mem::take;
use std::ptr::{null, null_mut};

use crate::last_error;
use crate::mode::is_alone;
use crate::name::Name;
use crate::new_comms;
use crate::operation::{Left, Operation, Taken};
use crate::own_call::OwnCall;
use crate::pass::{is_inside, pass};
use crate::process::process;
use crate::types::{Code, Comm, In, Out, Stream};
use crate::why::Why;

thread_local! {
    static GROUP: RefCell<ThreadGroup<OwnCall>> = const { RefCell::new(ThreadGroup::new()) };
}

/// The group of a thread, if it is in one.
struct ThreadGroup<T> {
    /// The starts without their ends.
    depth: u32,
    /// The operations that are taken, if all of the group are.
    queue: Vec<(Operation, T)>,
    /// Whether the real library has an operation of the group.
    goes_on: bool,
    /// The communicators and streams of those that it has.
    passed: Vec<(Comm, Stream)>,
    /// The first error of a call that the real library does not know of.
    wrong: Code,
}

/// Makes an operation, or keeps it for the end of its group.
pub(crate) fn operation(operation: &Operation) -> Code {
    of_thread(|group| group.operation(operation)).unwrap_or_else(|| operation.pass())
}

/// Lets the real library know of the operations before a call that goes to it, where there is one.
pub(crate) fn hand_over() {
    if is_alone() {
        return;
    }
    _ = of_thread(|group| group.hand_over(&Why::Group));
}

/// Has the group of this thread fail at its end, if there is one.
pub(crate) fn fail(code: Code) {
    _ = of_thread(|group| group.fail(code));
}

/// Whether this thread is in a group.
pub(crate) fn is_open() -> bool {
    of_thread(|group| group.depth > 0).unwrap_or(false)
}

/// Begins a group by the real library's function.
pub(crate) fn start(pass: impl Fn() -> Code) -> Code {
    of_thread(|group| group.start(&pass)).unwrap_or_else(pass)
}

/// Ends a group by the real library's function. A group whose time is asked for is not run.
pub(crate) fn end(is_simulated: bool, pass: impl Fn() -> Code) -> Code {
    let ended = of_thread(|group| {
        let code = group.end(is_simulated, &pass, &refused_operation);
        (code, group.depth == 0)
    });
    match ended {
        // SAFETY: the program keeps the places of handles until its group has ended.
        Some((code, true)) => unsafe { new_comms::end_group(code, is_simulated) },
        Some((code, false)) => code,
        None => pass(),
    }
}

/// Gives the group of this thread to `then`: `None` inside the real library, which keeps its own groups, and in a thread
/// that ends.
fn of_thread<R>(then: impl FnOnce(&mut ThreadGroup<OwnCall>) -> R) -> Option<R> {
    if is_inside() {
        return None;
    }
    GROUP.try_with(|group| group.try_borrow_mut().ok().map(|mut group| then(&mut group))).ok()?
}

/// Has the real library refuse an operation, so that it starts nothing of its group.
fn refused_operation() {
    if is_alone() {
        return;
    }
    type AllReduce = unsafe extern "C" fn(In, Out, usize, c_int, c_int, Comm, Stream) -> Code;
    // SAFETY: the type is that of the function, which refuses a communicator that is null.
    let call = |all_reduce: AllReduce| unsafe {
        all_reduce(null(), null_mut(), 0, 0, 0, null_mut(), null_mut())
    };
    // SAFETY: the type is that of the function.
    unsafe { pass(Name::AllReduce, call) };
}

impl<T> ThreadGroup<T> {
    const fn new() -> Self {
        Self {
            depth: 0,
            queue: Vec::new(),
            goes_on: false,
            passed: Vec::new(),
            wrong: Code::SUCCESS,
        }
    }
}

impl<T: Taken> ThreadGroup<T> {
    fn start(&mut self, pass: &dyn Fn() -> Code) -> Code {
        let code = pass();
        if !code.is_wrong() {
            self.depth += 1;
        }
        code
    }

    fn operation(&mut self, operation: &Operation) -> Code {
        let left = match T::take(operation, self.depth > 0) {
            Ok(taken) if self.depth == 0 => {
                let mut one = vec![taken];
                match T::prepare(&mut one) {
                    Ok(()) => return T::run(one),
                    Err(left) => left,
                }
            }
            Ok(taken) if !self.goes_on => {
                self.queue.push((*operation, taken));
                return Code::SUCCESS;
            }
            Ok(_) => Left::Passed(Why::Group),
            Err(left) => left,
        };
        match left {
            Left::Passed(why) => {
                self.hand_over(&Why::Group);
                self.pass(operation, why)
            }
            Left::Refused(code) => {
                process().refused(operation.name);
                self.fail(code);
                code
            }
        }
    }

    /// Has the real library make an operation, which starts now or at the end of the group.
    fn pass(&mut self, operation: &Operation, why: Why) -> Code {
        process().passed(operation.name, why);
        let on = (operation.comm, operation.stream);
        if self.depth == 0 {
            return T::pass(&[on], || operation.pass());
        }
        if !self.passed.contains(&on) {
            self.passed.push(on);
        }
        operation.pass()
    }

    /// Gives the real library the operations of the group so far.
    fn hand_over(&mut self, why: &Why) {
        self.goes_on = self.depth > 0;
        for (operation, _) in take(&mut self.queue) {
            // The real library keeps an error of it for the end of the group.
            self.pass(&operation, why.clone());
        }
    }

    fn fail(&mut self, code: Code) {
        if self.depth > 0 && !self.wrong.is_wrong() {
            self.wrong = code;
        }
    }

    fn end(&mut self, is_simulated: bool, pass: &dyn Fn() -> Code, refuse: &dyn Fn()) -> Code {
        if self.depth == 0 && is_alone() {
            last_error::tell("ncclGroupEnd without an ncclGroupStart");
            return Code::INVALID_USAGE;
        }
        if self.depth != 1 {
            self.depth = self.depth.saturating_sub(1);
            return pass();
        }
        if is_simulated {
            self.hand_over(&Why::Group);
        }
        if !self.wrong.is_wrong() && !self.queue.is_empty() {
            let (operations, mut taken): (Vec<_>, Vec<_>) =
                take(&mut self.queue).into_iter().unzip();
            match T::prepare(&mut taken) {
                Ok(()) => {
                    *self = Self::new();
                    let ours = T::run(taken);
                    let theirs = pass();
                    return if ours.is_wrong() { ours } else { theirs };
                }
                Err(Left::Passed(why)) => {
                    self.queue = operations.into_iter().zip(taken).collect();
                    self.hand_over(&why);
                }
                Err(Left::Refused(code)) => {
                    for operation in &operations {
                        process().refused(operation.name);
                    }
                    self.wrong = code;
                }
            }
        }
        let Self { passed, wrong, .. } = std::mem::replace(self, Self::new());
        if wrong.is_wrong() {
            // The error that is told is that of the call.
            last_error::keep(|| {
                refuse();
                pass();
            });
            return wrong;
        }
        T::pass(&passed, pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        /// The calls that were run here and passed on, in order.
        static DONE: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    fn done(what: String) {
        DONE.with_borrow_mut(|all| all.push(what));
    }

    /// Operations with an even count are taken.
    struct Even(usize);

    impl Taken for Even {
        fn take(operation: &Operation, _: bool) -> Result<Self, Left> {
            let count = operation.count;
            if count.is_multiple_of(2) { Ok(Self(count)) } else { Err(Left::Passed(Why::NoWorld)) }
        }

        /// No plan is made of 10, and none can be made of 12.
        fn prepare(group: &mut [Self]) -> Result<(), Left> {
            match group.iter().find(|even| even.0 >= 10) {
                Some(Self(10)) => Err(Left::Passed(Why::Captured)),
                Some(_) => Err(Left::Refused(Code(6))),
                None => Ok(()),
            }
        }

        fn pass(on: &[(Comm, Stream)], call: impl FnOnce() -> Code) -> Code {
            // All operations have one stream.
            assert!(on.len() <= 1);
            call()
        }

        fn run(group: Vec<Self>) -> Code {
            let counts: Vec<_> = group.iter().map(|even| even.0.to_string()).collect();
            done(format!("ours {}", counts.join(" ")));
            if counts == ["8"] { Code(6) } else { Code::SUCCESS }
        }
    }

    fn counted(count: usize) -> Operation {
        /// The real library refuses this count.
        unsafe fn pass(operation: &Operation) -> Code {
            done(format!("theirs {}", operation.count));
            if operation.count == 13 { Code(4) } else { Code::SUCCESS }
        }
        Operation { count, ..Operation::new(Name::AllReduce, pass) }
    }

    /// Runs calls of one thread: `(` and `)` are a start and an end, `?` an end for the time alone, `!` another call,
    /// `x` a call that is refused, and a number an operation. Returns what was done, with the codes that are not 0.
    fn ran(calls: &str) -> String {
        let mut group = ThreadGroup::<Even>::new();
        for call in calls.split(' ') {
            let theirs = |what: &'static str| {
                move || {
                    done(what.to_owned());
                    Code::SUCCESS
                }
            };
            let refuse = || done("refuse".to_owned());
            let code = match call {
                "(" => group.start(&theirs("start")),
                ")" => group.end(false, &theirs("end"), &refuse),
                "?" => group.end(true, &theirs("simulate"), &refuse),
                "!" => {
                    group.hand_over(&Why::Group);
                    theirs("call")()
                }
                "x" => {
                    group.fail(Code::INVALID_USAGE);
                    Code::INVALID_USAGE
                }
                count => group.operation(&counted(count.parse().expect("a count"))),
            };
            if code != Code::SUCCESS {
                done(format!("= {}", code.0));
            }
        }
        assert!(group.depth == 0 && group.queue.is_empty() && !group.goes_on);
        DONE.take().join(", ")
    }

    #[test]
    fn a_group_runs_at_its_last_end() {
        assert_eq!(ran("( 2 4 )"), "start, ours 2 4, end");
        assert_eq!(ran("( ( 2 ) 4 )"), "start, start, end, ours 2 4, end");
        assert_eq!(ran("( )"), "start, end");
        assert_eq!(ran("2 4"), "ours 2, ours 4");
        assert_eq!(ran(")"), "end");
    }

    #[test]
    fn a_group_with_one_operation_that_is_not_ours_goes_on_whole_and_in_order() {
        let all = "start, theirs 2, theirs 4, theirs 3, theirs 6, end";
        assert_eq!(ran("( 2 4 3 6 )"), all);
        assert_eq!(ran("( 3 2 )"), "start, theirs 3, theirs 2, end");
        // The next group is a new one.
        assert_eq!(ran("( 3 ) ( 2 )"), "start, theirs 3, end, start, ours 2, end");
        assert_eq!(
            ran("( ( 2 ) ( 3 ) 4 )"),
            "start, start, end, start, theirs 2, theirs 3, end, theirs 4, end"
        );
        // Another call may destroy what an operation before it needs.
        assert_eq!(ran("( 2 ! 4 )"), "start, theirs 2, call, theirs 4, end");
        assert_eq!(ran("2 ! 4"), "ours 2, call, ours 4");
        // The time that is asked for is the real library's.
        assert_eq!(ran("( 2 ?"), "start, theirs 2, simulate");
    }

    #[test]
    fn what_cannot_be_prepared_goes_on_whole_or_fails_whole() {
        assert_eq!(ran("( 2 10 4 )"), "start, theirs 2, theirs 10, theirs 4, end");
        assert_eq!(ran("10 ( 2 )"), "theirs 10, start, ours 2, end");
        assert_eq!(ran("( 2 12 )"), "start, refuse, end, = 6");
        assert_eq!(ran("12 2"), "= 6, ours 2");
    }

    #[test]
    fn an_error_is_returned_at_the_call_and_at_the_end() {
        assert_eq!(ran("( 2 x 4 )"), "start, = 5, refuse, end, = 5");
        assert_eq!(ran("( x 3 )"), "start, = 5, theirs 3, refuse, end, = 5");
        assert_eq!(ran("( ( x ) )"), "start, start, = 5, end, refuse, end, = 5");
        assert_eq!(ran("x 2 ( 4 )"), "= 5, ours 2, start, ours 4, end");
        // The real library keeps its own errors.
        assert_eq!(ran("( 13 )"), "start, theirs 13, = 4, end");
        // Ours is the group's.
        assert_eq!(ran("( 8 )"), "start, ours 8, end, = 6");
    }
}
