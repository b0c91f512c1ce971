//! The functions of the interpreter that the calls need, found by name at run time: the library does not link Python.
//! All are in Python's stable ABI of version 3.10, so one library serves every later version.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

/// An object of Python; only the interpreter looks into it.
pub(super) type PyObject = c_void;

/// A function of Python with its arguments in an array, of which `names` has the names of the last ones.
pub(super) type Function = unsafe extern "C" fn(
    this: *mut PyObject,
    given: *const *mut PyObject,
    number: isize,
    names: *mut PyObject,
) -> *mut PyObject;

/// `PyMethodDef`, which lives as long as the functions that are made of it.
#[repr(C)]
pub(super) struct Definition {
    pub(super) name: *const c_char,
    pub(super) function: Function,
    pub(super) flags: c_int,
    pub(super) doc: *const c_char,
}

// SAFETY: the texts of a definition are constants.
unsafe impl Sync for Definition {}

/// `METH_FASTCALL | METH_KEYWORDS`.
pub(super) const IN_AN_ARRAY: c_int = 0x80 | 0x02;

/// `Py_LT`.
const LESS: c_int = 0;

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[allow(non_snake_case)]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Finds all functions in the program, or says that one is missing.
            fn find() -> Option<Self> {
                Some(Self {$($name: {
                    let name = concat!(stringify!($name), "\0").as_ptr();
                    // SAFETY: the name ends with a zero, and a null library is the whole program.
                    let found = NonNull::new(unsafe { dlsym(null_mut(), name.cast()) })?;
                    // SAFETY: the stable ABI gives the function of this name these types.
                    unsafe {
                        std::mem::transmute::<
                            NonNull<c_void>,
                            unsafe extern "C" fn($($argument),*) $(-> $result)?,
                        >(found)
                    }
                },)*})
            }
        }
    };
}

functions! {
    PyCFunction_NewEx(*const Definition, *mut PyObject, *mut PyObject) -> *mut PyObject;
    PyCapsule_GetPointer(*mut PyObject, *const c_char) -> *mut c_void;
    PyCapsule_New(*mut c_void, *const c_char, unsafe extern "C" fn(*mut PyObject)) -> *mut PyObject;
    PyDict_GetItemWithError(*mut PyObject, *mut PyObject) -> *mut PyObject;
    PyDict_New() -> *mut PyObject;
    PyDict_SetItem(*mut PyObject, *mut PyObject, *mut PyObject) -> c_int;
    PyErr_Clear();
    PyEval_RestoreThread(*mut c_void);
    PyEval_SaveThread() -> *mut c_void;
    PyLong_AsLong(*mut PyObject) -> c_long;
    PyLong_FromLong(c_long) -> *mut PyObject;
    PyObject_Call(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    PyObject_CallObject(*mut PyObject, *mut PyObject) -> *mut PyObject;
    PyObject_GetAttr(*mut PyObject, *mut PyObject) -> *mut PyObject;
    PyObject_IsTrue(*mut PyObject) -> c_int;
    PyObject_RichCompareBool(*mut PyObject, *mut PyObject, c_int) -> c_int;
    PyObject_Size(*mut PyObject) -> isize;
    PyObject_Type(*mut PyObject) -> *mut PyObject;
    PySequence_GetItem(*mut PyObject, isize) -> *mut PyObject;
    PyTuple_New(isize) -> *mut PyObject;
    PyTuple_SetItem(*mut PyObject, isize, *mut PyObject) -> c_int;
    PyUnicode_InternFromString(*const c_char) -> *mut PyObject;
    Py_DecRef(*mut PyObject);
    Py_IncRef(*mut PyObject);
}

/// The interpreter, whose lock this thread holds. A method that returns nothing has set Python's exception, if the
/// interpreter has one for it.
#[derive(Clone, Copy)]
pub(super) struct Python {
    functions: &'static Functions,
    /// The lock is the thread's.
    thread: PhantomData<*mut ()>,
}

/// A reference to an object. It is made, used and dropped by threads that hold the interpreter's lock.
pub(super) struct Object {
    at: NonNull<PyObject>,
    python: Python,
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the reference is counted, and the lock is held.
        unsafe { (self.python.functions.Py_DecRef)(self.at.as_ptr()) }
    }
}

impl Object {
    pub(super) fn at(&self) -> *mut PyObject {
        self.at.as_ptr()
    }

    /// Gives the reference to a caller in Python.
    pub(super) fn given(self) -> *mut PyObject {
        let at = self.at();
        std::mem::forget(self);
        at
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        self.at == other.at
    }

    /// Calls it without arguments.
    pub(super) fn call(&self) -> Option<Self> {
        // SAFETY: an object, and no arguments.
        self.python
            .owned(unsafe { (self.python.functions.PyObject_CallObject)(self.at(), null_mut()) })
    }

    /// Calls it with arguments, of which `names`, a tuple or null, has the names of the last ones.
    ///
    /// # Safety
    /// The arguments are objects.
    pub(super) unsafe fn call_with(
        &self,
        given: &[*mut PyObject],
        names: *mut PyObject,
    ) -> Option<Self> {
        let python = self.python;
        let f = python.functions;
        let last = if names.is_null() { 0 } else { python.size(names)? };
        let (plain, last) = given.split_at(given.len().checked_sub(last)?);
        // SAFETY: a tuple takes each of its references once; a dictionary counts those that it holds.
        unsafe {
            let tuple = python.owned((f.PyTuple_New)(plain.len() as isize))?;
            for (at, object) in plain.iter().enumerate() {
                (f.Py_IncRef)(*object);
                (f.PyTuple_SetItem)(tuple.at(), at as isize, *object);
            }
            if last.is_empty() {
                return python.owned((f.PyObject_Call)(self.at(), tuple.at(), null_mut()));
            }
            let dictionary = python.owned((f.PyDict_New)())?;
            for (at, object) in last.iter().enumerate() {
                let name = python.item(names, at)?;
                if (f.PyDict_SetItem)(dictionary.at(), name.at(), *object) != 0 {
                    return None;
                }
            }
            python.owned((f.PyObject_Call)(self.at(), tuple.at(), dictionary.at()))
        }
    }

    pub(super) fn attribute(&self, name: &Self) -> Option<Self> {
        // SAFETY: both are objects.
        self.python.owned(unsafe { (self.python.functions.PyObject_GetAttr)(self.at(), name.at()) })
    }

    pub(super) fn is_true(&self) -> Option<bool> {
        // SAFETY: an object.
        match unsafe { (self.python.functions.PyObject_IsTrue)(self.at()) } {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(super) fn is_less(&self, than: &Self) -> Option<bool> {
        let compare = self.python.functions.PyObject_RichCompareBool;
        // SAFETY: both are objects.
        match unsafe { compare(self.at(), than.at(), LESS) } {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Its value as a number that is not negative.
    pub(super) fn number(&self) -> Option<usize> {
        // SAFETY: an object; -1 is an error, too.
        usize::try_from(unsafe { (self.python.functions.PyLong_AsLong)(self.at()) }).ok()
    }

    /// Its number of items.
    pub(super) fn size(&self) -> Option<usize> {
        self.python.size(self.at())
    }

    pub(super) fn item(&self, at: usize) -> Option<Self> {
        self.python.item(self.at(), at)
    }

    /// The object of a key of this dictionary.
    ///
    /// # Safety
    /// The key is an object.
    pub(super) unsafe fn get(&self, key: *mut PyObject) -> Option<Self> {
        // SAFETY: both are objects, as the caller promises.
        let found = unsafe { (self.python.functions.PyDict_GetItemWithError)(self.at(), key) };
        self.python.borrowed(found)
    }

    pub(super) fn class(&self) -> Option<Self> {
        // SAFETY: an object.
        self.python.owned(unsafe { (self.python.functions.PyObject_Type)(self.at()) })
    }

    /// The address in this capsule.
    pub(super) fn pointer(&self, name: &'static CStr) -> Option<NonNull<c_void>> {
        let get = self.python.functions.PyCapsule_GetPointer;
        // SAFETY: an object, and a text that ends with a zero.
        NonNull::new(unsafe { get(self.at(), name.as_ptr()) })
    }
}

impl Python {
    /// Returns the interpreter of this program, if it has all the functions.
    ///
    /// # Safety
    /// This thread holds the interpreter's lock for as long as the result is used, except inside of [`Self::apart`].
    pub(super) unsafe fn held() -> Option<Self> {
        static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
        let functions = FOUND.get_or_init(Functions::find).as_ref()?;
        Some(Self { functions, thread: PhantomData })
    }

    /// Takes a reference that the interpreter returned to its caller.
    fn owned(self, at: *mut PyObject) -> Option<Object> {
        NonNull::new(at).map(|at| Object { at, python: self })
    }

    /// Makes a reference to an object that another reference keeps for now.
    pub(super) fn borrowed(self, at: *mut PyObject) -> Option<Object> {
        let object = NonNull::new(at)?;
        // SAFETY: an object.
        unsafe { (self.functions.Py_IncRef)(at) };
        Some(Object { at: object, python: self })
    }

    fn size(self, of: *mut PyObject) -> Option<usize> {
        // SAFETY: an object; -1 is an error.
        usize::try_from(unsafe { (self.functions.PyObject_Size)(of) }).ok()
    }

    fn item(self, of: *mut PyObject, at: usize) -> Option<Object> {
        // SAFETY: an object.
        self.owned(unsafe { (self.functions.PySequence_GetItem)(of, at as isize) })
    }

    pub(super) fn name(self, text: &'static CStr) -> Option<Object> {
        // SAFETY: the text ends with a zero.
        self.owned(unsafe { (self.functions.PyUnicode_InternFromString)(text.as_ptr()) })
    }

    pub(super) fn integer(self, number: c_int) -> Option<Object> {
        // SAFETY: a number.
        self.owned(unsafe { (self.functions.PyLong_FromLong)(c_long::from(number)) })
    }

    /// Makes a function of Python.
    pub(super) fn function(self, definition: &'static Definition, this: &Object) -> Option<Object> {
        // SAFETY: the definition lives for ever, and the function has no module.
        self.owned(unsafe { (self.functions.PyCFunction_NewEx)(definition, this.at(), null_mut()) })
    }

    /// Makes a capsule that owns a value.
    pub(super) fn capsule<T: Capsuled>(self, value: T) -> Option<Object> {
        let at = Box::into_raw(Box::new(value));
        let new = self.functions.PyCapsule_New;
        // SAFETY: the name ends with a zero, and the destructor takes the value out of a capsule of this name.
        let made = self.owned(unsafe { new(at.cast(), T::NAME.as_ptr(), dropped::<T>) });
        if made.is_none() {
            // SAFETY: it was made above, and no capsule has it.
            drop(unsafe { Box::from_raw(at) });
        }
        made
    }

    /// Returns the value of a capsule of this kind.
    ///
    /// # Safety
    /// `at` is an object, which lives as long as the result is used.
    pub(super) unsafe fn value<'c, T: Capsuled>(self, at: *mut PyObject) -> Option<&'c T> {
        // SAFETY: an object, and a text that ends with a zero.
        let value = unsafe { (self.functions.PyCapsule_GetPointer)(at, T::NAME.as_ptr()) };
        // SAFETY: capsules of this name own such a value, and only lend it.
        unsafe { value.cast::<T>().as_ref() }
    }

    pub(super) fn clear_error(self) {
        // SAFETY: the lock is held.
        unsafe { (self.functions.PyErr_Clear)() }
    }

    /// Runs a function without the lock, so that other threads run meanwhile.
    pub(super) fn apart<R>(self, run: impl FnOnce() -> R) -> R {
        // SAFETY: the lock is held, and is taken again by the same thread.
        let thread = unsafe { (self.functions.PyEval_SaveThread)() };
        let returned = run();
        // SAFETY: `thread` is the state that this thread gave back with the lock.
        unsafe { (self.functions.PyEval_RestoreThread)(thread) };
        returned
    }
}

/// A value that a capsule owns.
pub(super) trait Capsuled {
    /// The name of the capsules, and of no others.
    const NAME: &'static CStr;
}

/// The destructor of capsules.
unsafe extern "C" fn dropped<T: Capsuled>(capsule: *mut PyObject) {
    // SAFETY: the interpreter holds its lock when it calls a destructor.
    let Some(python) = (unsafe { Python::held() }) else { return };
    // SAFETY: the destructor of a capsule of this name, which owns such a value.
    unsafe {
        let value = (python.functions.PyCapsule_GetPointer)(capsule, T::NAME.as_ptr());
        drop(Box::from_raw(value.cast::<T>()));
    }
}
