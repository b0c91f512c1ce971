//! The hot calls of the torch backend as functions of Python, which make a call without the interpreter: they look at
//! the tensors and the options, give the interpreter's lock away, and call the library.
//!
//! No header declares these functions: they are for the Python package, which calls them with the interpreter's lock
//! held. A function that is made here takes only the plain calls. It passes all others on to a function of Python, with
//! their arguments as they are, so it needs to refuse nothing and to describe no error.

mod interpreter;
mod tensor;

use std::ffi::{CStr, c_int};
use std::ptr::{null, null_mut};
use std::slice;

use crate::roundelay_call;
use interpreter::{Capsuled, Definition, IN_AN_ARRAY, Object, PyObject, Python};
use tensor::{Elements, Exchange, TYPES};

/// The number of torch's reduce operations that a table has for each element type.
const OPS: usize = 16;
/// An operation that a table does not have.
const NO_OP: u8 = 0xff;
/// The library's code of the bytes that booleans are.
const BYTES: c_int = 1;

/// The method of process groups that makes one collective.
struct Method {
    collective: Collective,
    /// The group of the library of each process group that has one.
    groups: Object,
    /// torch's own method.
    own: Object,
    /// torch's class of tensors.
    tensor: Object,
    exchange: &'static Exchange,
    /// Functions whose answers are true while torch has to see every call.
    watched: [Object; 2],
    ops: [[u8; OPS]; TYPES],
    names: Names,
    /// Python's `None`.
    nothing: Object,
}

impl Capsuled for Method {
    const NAME: &'static CStr = c"roundelay.method";
}

/// The collectives, with their codes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Collective {
    AllReduce = 0,
    ReduceScatter = 1,
    AllGather = 2,
    Broadcast = 3,
}

/// The attributes of options and tensors that are read.
struct Names {
    asynchronous: Object,
    timeout: Object,
    reduction: Object,
    op: Object,
    root: Object,
    gradient: Object,
}

/// The world of a process group.
struct TorchGroup {
    world: u64,
    nranks: u64,
    /// The calls under way. While there are any, Python makes the calls.
    under_way: Object,
    /// The timeouts that are less are none.
    no_time: Object,
    /// Raises the error of a collective's code and a status.
    failed: Object,
    /// The number of calls, in memory of Python.
    calls: *mut u64,
    _counter: Object,
}

impl Capsuled for TorchGroup {
    const NAME: &'static CStr = c"roundelay.group";
}

/// A call of the library.
struct Call {
    /// Keeps the tensor of a list, which other threads may change.
    _tensor: Option<Object>,
    input: *const u8,
    output: *mut u8,
    count: u64,
    dtype: c_int,
    op: c_int,
    root: u32,
}

static DEFINITION: Definition =
    Definition { name: c"collective".as_ptr(), function: made, flags: IN_AN_ARRAY, doc: null() };

/// The function of Python that a method is.
unsafe extern "C" fn made(
    this: *mut PyObject,
    given: *const *mut PyObject,
    number: isize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the interpreter calls its functions with its lock held.
    let Some(python) = (unsafe { Python::held() }) else { return null_mut() };
    // SAFETY: the function was made with its method, and keeps it.
    let Some(method) = (unsafe { python.value::<Method>(this) }) else { return null_mut() };
    let last = match python.borrowed(names) {
        Some(names) => names.size().unwrap_or(0),
        None => 0,
    };
    let given = match usize::try_from(number).unwrap_or(0) + last {
        0 => &[][..],
        // SAFETY: the interpreter gives as many, the named ones last.
        all => unsafe { slice::from_raw_parts(given, all) },
    };
    if last == 0 {
        // SAFETY: they are objects.
        if let Some(answer) = unsafe { method.make(python, given) } {
            return answer;
        }
        python.clear_error();
    }
    // SAFETY: they are objects, and the names are a tuple.
    unsafe { method.own.call_with(given, names) }.map_or(null_mut(), Object::given)
}

impl Method {
    /// Makes the method of a collective, as a function of Python.
    ///
    /// # Safety
    /// The arguments are those of [`roundelay_python_method`].
    unsafe fn function(
        collective: c_int,
        ops: *const u8,
        [groups, own, tensor, table, dispatched, profiled, nothing]: [*mut PyObject; 7],
    ) -> Option<Object> {
        // SAFETY: the caller holds the lock.
        let python = unsafe { Python::held() }?;
        let object = |at| python.borrowed(at);
        let collective = match collective {
            0 => Collective::AllReduce,
            1 => Collective::ReduceScatter,
            2 => Collective::AllGather,
            3 => Collective::Broadcast,
            _ => return None,
        };
        let table = object(table)?.pointer(c"dlpack_exchange_api")?;
        let method = Self {
            collective,
            groups: object(groups)?,
            own: object(own)?,
            tensor: object(tensor)?,
            // SAFETY: capsules of this name have the address of such a table.
            exchange: unsafe { Exchange::new(table) }?,
            watched: [object(dispatched)?, object(profiled)?],
            // SAFETY: the caller's table has this size.
            ops: unsafe { ops.cast::<[[u8; OPS]; TYPES]>().read() },
            names: Names {
                asynchronous: python.name(c"asyncOp")?,
                timeout: python.name(c"timeout")?,
                reduction: python.name(c"reduceOp")?,
                op: python.name(c"op")?,
                root: python.name(c"rootRank")?,
                gradient: python.name(c"requires_grad")?,
            },
            nothing: object(nothing)?,
        };
        python.function(&DEFINITION, &python.capsule(method)?)
    }

    /// Makes a call, if it is a plain one. Returns Python's answer, which is null for an exception.
    ///
    /// # Safety
    /// The arguments are objects: a process group, and those of its method.
    unsafe fn make(&self, python: Python, given: &[*mut PyObject]) -> Option<*mut PyObject> {
        let (process_group, given) = given.split_first()?;
        // SAFETY: an object.
        let kept = unsafe { self.groups.get(*process_group) }?;
        // SAFETY: `kept` keeps it.
        let group = unsafe { python.value::<TorchGroup>(kept.at()) }?;
        let call = self.call(python, group, given)?;
        let Call { input, output, count, dtype, op, root, .. } = call;
        // SAFETY: Python's counter, which is changed with the lock held.
        unsafe { *group.calls += 1 };
        let (world, collective) = (group.world, self.collective as c_int);
        // SAFETY: the tensors have as many elements as the collective says, and `call` and the caller keep them.
        let status = python.apart(|| unsafe {
            roundelay_call(world, collective, input.cast(), output.cast(), count, dtype, op, root)
        });
        let answer = match status {
            0 => python.borrowed(self.nothing.at()),
            status => group.fail(python, collective, status),
        };
        Some(answer.map_or(null_mut(), Object::given))
    }

    /// Reads a plain call: one that is synchronous, of tensors whose elements lie in one piece.
    fn call(&self, python: Python, group: &TorchGroup, given: &[*mut PyObject]) -> Option<Call> {
        let (options, tensors) = given.split_last()?;
        let options = python.borrowed(*options)?;
        if options.attribute(&self.names.asynchronous)?.is_true()?
            || !options.attribute(&self.names.timeout)?.is_less(&group.no_time)?
            || group.under_way.size()? > 0
        {
            return None;
        }
        for watched in &self.watched {
            if watched.call()?.is_true()? {
                return None;
            }
        }
        let (input, output, tensor) = match (self.collective, tensors) {
            (Collective::AllReduce | Collective::Broadcast, [list]) => {
                let list = python.borrowed(*list)?;
                if list.size()? != 1 {
                    return None;
                }
                let tensor = list.item(0)?;
                let elements = self.elements(&tensor)?;
                (elements, elements, Some(tensor))
            }
            (Collective::AllGather | Collective::ReduceScatter, [output, input]) => {
                let [output, input] = [output, input].map(|tensor| python.borrowed(*tensor));
                (self.elements(&input?)?, self.elements(&output?)?, None)
            }
            _ => return None,
        };
        let whole = |whole: &Elements, part: &Elements| {
            part.count.checked_mul(group.nranks) == Some(whole.count)
                && whole.rows.is_multiple_of(group.nranks)
        };
        let (count, fits) = match self.collective {
            Collective::AllReduce | Collective::Broadcast => (input.count, true),
            Collective::AllGather => (input.count, whole(&output, &input)),
            Collective::ReduceScatter => (output.count, whole(&input, &output)),
        };
        if !fits || input.kind != output.kind {
            return None;
        }
        let reduces = matches!(self.collective, Collective::AllReduce | Collective::ReduceScatter);
        let op = if reduces {
            let op =
                options.attribute(&self.names.reduction)?.attribute(&self.names.op)?.number()?;
            *self.ops[input.kind].get(op).filter(|op| **op != NO_OP)?
        } else {
            0
        };
        let root = match self.collective {
            Collective::Broadcast => options.attribute(&self.names.root)?.number()?,
            _ => 0,
        };
        let dtype = if input.kind == TYPES - 1 { BYTES } else { input.kind as c_int };
        let (input, output) = (input.at.cast_const(), output.at);
        Some(Call {
            _tensor: tensor,
            input,
            output,
            count,
            dtype,
            op: op.into(),
            root: u32::try_from(root).ok()?,
        })
    }

    /// Returns the elements of a plain tensor, of which no gradient is wanted.
    fn elements(&self, tensor: &Object) -> Option<Elements> {
        if !tensor.class()?.is(&self.tensor) || tensor.attribute(&self.names.gradient)?.is_true()? {
            return None;
        }
        // SAFETY: the table is of this type.
        unsafe { self.exchange.elements(tensor) }
    }
}

impl TorchGroup {
    /// Raises the error of a call.
    fn fail(&self, python: Python, collective: c_int, status: c_int) -> Option<Object> {
        let given = [python.integer(collective)?, python.integer(status)?];
        // SAFETY: both are objects.
        unsafe { self.failed.call_with(&given.each_ref().map(Object::at), null_mut()) }
    }
}

/// Makes the method of process groups that makes the calls of a collective, as a function of Python that takes the
/// process group before the method's own arguments. `groups` is a dictionary from process groups to groups of
/// [`roundelay_python_group`], `own` torch's method, which makes all other calls, `tensor` torch's class of tensors,
/// and `table` the capsule of its functions of `DLPack`. While `dispatched` or `profiled` returns what is true, torch's
/// method makes every call. `ops` has, for each element type and each number of an operation of torch, the library's
/// code, or 255.
///
/// Returns null, perhaps without an exception, where the interpreter or the table lacks what is needed.
///
/// # Safety
/// The caller holds the interpreter's lock, the arguments are objects, and `ops` has [`TYPES`] times [`OPS`] bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn roundelay_python_method(
    collective: c_int,
    ops: *const u8,
    groups: *mut PyObject,
    own: *mut PyObject,
    tensor: *mut PyObject,
    table: *mut PyObject,
    dispatched: *mut PyObject,
    profiled: *mut PyObject,
    nothing: *mut PyObject,
) -> *mut PyObject {
    let objects = [groups, own, tensor, table, dispatched, profiled, nothing];
    // SAFETY: the caller's promise.
    unsafe { Method::function(collective, ops, objects) }.map_or(null_mut(), Object::given)
}

/// Makes the group of a world, for a method. Python makes its calls while `under_way` has any; timeouts below
/// `no_time` are none; `failed` raises the error of a collective's code and a status;
/// `calls` points to the number of calls, in the memory of `counter`.
///
/// Returns null, perhaps without an exception, where the interpreter lacks what is needed.
///
/// # Safety
/// The caller holds the interpreter's lock, the arguments are objects, and `counter` has a number at `calls`.
#[unsafe(no_mangle)]
unsafe extern "C" fn roundelay_python_group(
    world: u64,
    nranks: u32,
    under_way: *mut PyObject,
    no_time: *mut PyObject,
    failed: *mut PyObject,
    counter: *mut PyObject,
    calls: *mut u64,
) -> *mut PyObject {
    // SAFETY: the caller's promise.
    let Some(python) = (unsafe { Python::held() }) else { return null_mut() };
    let group = || {
        let object = |at| python.borrowed(at);
        python.capsule(TorchGroup {
            world,
            nranks: nranks.into(),
            under_way: object(under_way)?,
            no_time: object(no_time)?,
            failed: object(failed)?,
            calls,
            _counter: object(counter)?,
        })
    };
    group().map_or(null_mut(), Object::given)
}
