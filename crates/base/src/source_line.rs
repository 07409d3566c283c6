//! Lines of a program whose code is in no file, as Java's, written as numbers. Such a *place* is
//! noted where the return address of a call is noted for other programs.
//!
//! A place is [`FIRST`] + module x [`LINES`] + line + 1: it is not an address of code, but like one
//! it consists of a module (here a method) and an offset in it. A module's name replaces that of a
//! file: `java:SOURCE:METHOD`, for example `java:Ring.java:Ring.main`.

/// The first place, above the addresses of programs.
pub const FIRST: u64 = 1 << 47;
/// End of the places. Records of places have 48 bits for them.
pub const END: u64 = 1 << 48;
/// Number of places of a module.
pub const LINES: u64 = 1 << 20;

/// Whether a number is a place.
pub fn is_source_line(address: u64) -> bool {
    (FIRST..END).contains(&address)
}

/// Base of the offsets in a place's module.
pub fn base(place: u64) -> u64 {
    place & !(LINES - 1)
}

/// Source file and method of a module, if this is the name of one; the file may be empty.
pub fn module(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("java:")?.split_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_line_has_a_module_and_a_line() {
        let place = FIRST + 3 * LINES + 77 + 1;
        assert!(is_source_line(place) && is_source_line(END - 1));
        assert!(!is_source_line(FIRST - 1) && !is_source_line(END));
        assert_eq!(place - base(place), 78);
        let name = "java:Ring.java:acme.Ring.main";
        assert_eq!(module(name), Some(("Ring.java", "acme.Ring.main")));
        assert_eq!(module("/home/me/java:x:y"), None);
    }
}
