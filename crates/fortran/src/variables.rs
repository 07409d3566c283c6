//! Library variables of gfortran's modules, in ABIs in which they are not constants of the program:
//! handles, and the type information of a `class(*)`. The other ABIs have none of these.

/// Handles that are constants: name, the INTEGER.
macro_rules! numbers {
    ($($name:ident $value:literal;)*) => {$(
        std::arch::global_asm!(
            ".pushsection .data", ".balign 4",
            concat!(".globl ", stringify!($name)),
            concat!(".type ", stringify!($name), ", @object"),
            concat!(".size ", stringify!($name), ", 4"),
            concat!(stringify!($name), ": .long ", $value),
            ".popsection",
        );
    )*};
}

/// Types: beginning and end of the names of their two variables, a number that gfortran derives
/// from the type's name, and the type's size. The first variable has these, the initial value of an
/// object (the second one), and the function that copies an object.
macro_rules! classes {
    ($($before:literal $after:literal $hash:literal $bytes:literal;)*) => {$(
        std::arch::global_asm!(
            ".pushsection .data", ".balign 32",
            concat!(".globl ", $before, "__vtab", $after),
            concat!(".type ", $before, "__vtab", $after, ", @object"),
            concat!(".size ", $before, "__vtab", $after, ", 56"),
            concat!($before, "__vtab", $after, ": .long ", $hash, ", 0"),
            concat!(".quad ", $bytes, ", 0, ", $before, "__def_init", $after, ", kw_copy_", $bytes, "_, 0, 0"),
            concat!(".globl ", $before, "__def_init", $after),
            concat!(".type ", $before, "__def_init", $after, ", @object"),
            concat!(".size ", $before, "__def_init", $after, ", ", $bytes),
            concat!($before, "__def_init", $after, ": .fill ", $bytes, ", 1, 0"),
            ".popsection",
        );
    )*};
}

include!(concat!(env!("OUT_DIR"), "/variables.rs"));

macro_rules! copies {
    ($($name:ident $bytes:literal;)*) => {$(
        /// Copies an object of a type.
        ///
        /// # Safety
        /// Both are objects of this type.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(from: *const [u8; $bytes], to: *mut [u8; $bytes]) {
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy(from, to, 1) };
        }
    )*};
}

copies! {
    kw_copy_4_ 4;
    kw_copy_8_ 8;
    kw_copy_24_ 24;
}
