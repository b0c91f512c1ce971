//! The C library of Roundelay as an extension module, so that a wheel carries it. Python calls its functions by ctypes:
//! they are the symbols of this library, and the module itself is empty.

#[pyo3::pymodule]
mod _native {
    /// Keeps the library's functions in the module.
    #[pymodule_export]
    const VERSION: &str = roundelay_command::VERSION;
}
