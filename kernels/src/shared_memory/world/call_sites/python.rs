//! The line of Python from which a thread calls. The functions of the interpreter are found by name at run time, as the
//! library does not link Python; all are in its stable ABI of version 3.10.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// The packages whose lines are passed over, as programs do not know them.
const PASSED: [&str; 3] = ["roundelay", "torch", "mpi4py"];

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[allow(non_snake_case)]
        struct PythonApi {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl PythonApi {
            /// Finds all functions in this process; `None` where one is missing.
            fn find() -> Option<Self> {
                Some(Self {$($name: {
                    let name = concat!(stringify!($name), "\0").as_ptr();
                    // SAFETY: the name ends with a zero.
                    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.cast()) };
                    if found.is_null() {
                        return None;
                    }
                    // SAFETY: the stable ABI gives the function of this name these types.
                    unsafe {
                        std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($argument),*) $(-> $result)?,
                        >(found)
                    }
                },)*})
            }
        }
    };
}

functions! {
    PyErr_Clear();
    PyEval_GetFrame() -> *mut c_void;
    PyFrame_GetCode(*mut c_void) -> *mut c_void;
    PyFrame_GetLineNumber(*mut c_void) -> c_int;
    PyGILState_Ensure() -> c_int;
    PyGILState_GetThisThreadState() -> *mut c_void;
    PyGILState_Release(c_int);
    PyMapping_GetItemString(*mut c_void, *const c_char) -> *mut c_void;
    PyObject_GetAttrString(*mut c_void, *const c_char) -> *mut c_void;
    PyUnicode_AsUTF8AndSize(*mut c_void, *mut isize) -> *const c_char;
    Py_DecRef(*mut c_void);
    Py_IncRef(*mut c_void);
    Py_IsInitialized() -> c_int;
}

/// The interpreter, whose lock this thread holds until this goes.
struct Interpreter {
    functions: &'static PythonApi,
    state: c_int,
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        // SAFETY: the lock was taken by this thread, which gives it back as it was.
        unsafe { (self.functions.PyGILState_Release)(self.state) };
    }
}

/// A counted reference to an object.
struct Object<'p> {
    at: *mut c_void,
    python: &'p Interpreter,
}

impl Drop for Object<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference is counted, and the lock is held.
        unsafe { (self.python.functions.Py_DecRef)(self.at) }
    }
}

impl Interpreter {
    /// Takes the lock; `None` in a thread that Python does not know.
    fn of_thread() -> Option<Self> {
        static FOUND: OnceLock<PythonApi> = OnceLock::new();
        let functions = match FOUND.get() {
            Some(functions) => functions,
            // A program may load Python later than this library, so what is missing is looked for again.
            None => {
                let found = PythonApi::find()?;
                FOUND.get_or_init(|| found)
            }
        };
        // SAFETY: both can be called at any time.
        let known = unsafe {
            (functions.Py_IsInitialized)() != 0
                && !(functions.PyGILState_GetThisThreadState)().is_null()
        };
        // SAFETY: the interpreter is there, and knows the thread.
        known.then(|| Self { functions, state: unsafe { (functions.PyGILState_Ensure)() } })
    }

    /// Takes over a counted reference; `None` for an exception, which is dropped.
    fn owned(&self, at: *mut c_void) -> Option<Object<'_>> {
        if at.is_null() {
            // SAFETY: the lock is held.
            unsafe { (self.functions.PyErr_Clear)() };
            return None;
        }
        Some(Object { at, python: self })
    }

    /// Returns the frame of the function of Python that this thread is in.
    fn frame(&self) -> Option<Object<'_>> {
        // SAFETY: the lock is held.
        let frame = unsafe { (self.functions.PyEval_GetFrame)() };
        if frame.is_null() {
            return None;
        }
        // SAFETY: a frame that the thread runs.
        unsafe { (self.functions.Py_IncRef)(frame) };
        self.owned(frame)
    }
}

impl Object<'_> {
    fn attribute(&self, name: &CStr) -> Option<Self> {
        let functions = self.python.functions;
        // SAFETY: an object and a text, and the lock is held.
        self.python.owned(unsafe { (functions.PyObject_GetAttrString)(self.at, name.as_ptr()) })
    }

    fn item(&self, name: &CStr) -> Option<Self> {
        let functions = self.python.functions;
        // SAFETY: an object and a text, and the lock is held.
        self.python.owned(unsafe { (functions.PyMapping_GetItemString)(self.at, name.as_ptr()) })
    }

    fn text(&self) -> Option<String> {
        let mut len = 0;
        // SAFETY: an object and a place for a length, and the lock is held.
        let at = unsafe { (self.python.functions.PyUnicode_AsUTF8AndSize)(self.at, &raw mut len) };
        if at.is_null() {
            // SAFETY: the lock is held.
            unsafe { (self.python.functions.PyErr_Clear)() };
            return None;
        }
        // SAFETY: the text has as many bytes, and lives as long as the object.
        let bytes =
            unsafe { std::slice::from_raw_parts(at.cast::<u8>(), usize::try_from(len).ok()?) };
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns the file and the line at which a frame is.
    fn line(&self) -> Option<String> {
        let functions = self.python.functions;
        // SAFETY: a frame, and the lock is held.
        let (code, line) = unsafe {
            ((functions.PyFrame_GetCode)(self.at), (functions.PyFrame_GetLineNumber)(self.at))
        };
        let file = self.python.owned(code)?.attribute(c"co_filename")?.text()?;
        Some(format!("{file}:{line}"))
    }

    /// Whether a frame is in one of the packages that are passed over.
    fn is_passed(&self) -> bool {
        let globals = self.attribute(c"f_globals");
        let module = globals.and_then(|globals| globals.item(c"__name__")?.text());
        module.is_some_and(|module| {
            let package = module.split('.').next().unwrap_or_default();
            PASSED.contains(&package)
        })
    }

    /// Returns the frame that called a frame.
    fn caller(&self) -> Option<Self> {
        let functions = self.python.functions;
        let caller = self.attribute(c"f_back")?;
        // The outermost frame has None there, which is no frame, and has no code.
        // SAFETY: an object and a text, and the lock is held.
        let code = unsafe { (functions.PyObject_GetAttrString)(caller.at, c"f_code".as_ptr()) };
        self.python.owned(code).map(|_| caller)
    }
}

/// Returns the line of the program at which this thread calls, as `/home/me/train.py:88`: of the innermost frame beyond
/// the packages that programs do not know, or else of the outermost frame. `None` where the thread is in no function of
/// Python.
pub(super) fn line() -> Option<String> {
    let python = Interpreter::of_thread()?;
    let mut frame = python.frame()?;
    while frame.is_passed() {
        match frame.caller() {
            Some(caller) => frame = caller,
            None => break,
        }
    }
    frame.line()
}
