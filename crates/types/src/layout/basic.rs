//! The basic types: how one element is represented, and the table of MPI's predefined datatypes.
//!
//! Sizes are those of C and of default Fortran on 64-bit Linux (x86-64 and aarch64). Several names
//! share one representation: kernels choose by [`Basic`], checks of a message's type by [`Named`].

/// Class of a basic element; reductions are allowed by class (MPI 5.0, 6.9.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// Signed integer.
    Signed,
    /// Unsigned integer.
    Unsigned,
    /// Binary floating point.
    Float,
    /// Two floats, real part first.
    Complex,
    /// Truth value: zero is false.
    Logical,
    /// MPI_BYTE and MPI_PACKED.
    Byte,
    /// Printable character: no arithmetic by the standard.
    Char,
    /// Value and index, for MPI_MINLOC and MPI_MAXLOC.
    Pair,
}

macro_rules! basics {
    ($($id:ident = $class:ident, $size:literal, $align:literal, $what:literal;)*) => {
        /// Representation of one element.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Basic { $(#[doc = $what] $id),* }

        impl Basic {
            /// Every representation.
            pub const ALL: &'static [Basic] = &[$(Basic::$id),*];

            /// Its class.
            #[inline]
            pub const fn class(self) -> Class {
                match self { $(Basic::$id => Class::$class),* }
            }

            /// Bytes of data (a pair's padding is not data).
            #[inline]
            pub const fn size(self) -> u64 {
                match self { $(Basic::$id => $size),* }
            }

            /// Alignment in bytes, as C does it.
            #[inline]
            pub const fn align(self) -> u64 {
                match self { $(Basic::$id => $align),* }
            }
        }
    };
}

basics! {
    I8 = Signed, 1, 1, "8-bit signed integer.";
    I16 = Signed, 2, 2, "16-bit signed integer.";
    I32 = Signed, 4, 4, "32-bit signed integer.";
    I64 = Signed, 8, 8, "64-bit signed integer.";
    I128 = Signed, 16, 16, "128-bit signed integer (MPI_INTEGER16).";
    U8 = Unsigned, 1, 1, "8-bit unsigned integer.";
    U16 = Unsigned, 2, 2, "16-bit unsigned integer.";
    U32 = Unsigned, 4, 4, "32-bit unsigned integer.";
    U64 = Unsigned, 8, 8, "64-bit unsigned integer.";
    F16 = Float, 2, 2, "IEEE binary16.";
    BF16 = Float, 2, 2, "The upper half of an IEEE binary32 (bfloat16).";
    F32 = Float, 4, 4, "IEEE binary32.";
    F64 = Float, 8, 8, "IEEE binary64.";
    LongDouble = Float, 16, 16, "C `long double`: x87 extended in 16 bytes on x86-64, IEEE binary128 on aarch64.";
    F128 = Float, 16, 16, "IEEE binary128 (MPI_REAL16).";
    ComplexF16 = Complex, 4, 2, "Two binary16.";
    ComplexF32 = Complex, 8, 4, "Two binary32.";
    ComplexF64 = Complex, 16, 8, "Two binary64.";
    ComplexLongDouble = Complex, 32, 16, "Two C `long double`.";
    ComplexF128 = Complex, 32, 16, "Two binary128.";
    Bool = Logical, 1, 1, "C `_Bool` and C++ `bool`.";
    Logical8 = Logical, 1, 1, "Fortran LOGICAL of 1 byte.";
    Logical16 = Logical, 2, 2, "Fortran LOGICAL of 2 bytes.";
    Logical32 = Logical, 4, 4, "Fortran LOGICAL of 4 bytes.";
    Logical64 = Logical, 8, 8, "Fortran LOGICAL of 8 bytes.";
    Logical128 = Logical, 16, 16, "Fortran LOGICAL of 16 bytes.";
    Byte = Byte, 1, 1, "Uninterpreted byte.";
    Char = Char, 1, 1, "C `char` and Fortran CHARACTER of 1 byte.";
    WChar = Char, 4, 4, "C `wchar_t`.";
    FloatInt = Pair, 8, 4, "struct { float; int }.";
    DoubleInt = Pair, 12, 8, "struct { double; int }, 16 bytes apart.";
    LongInt = Pair, 12, 8, "struct { long; int }, 16 bytes apart.";
    TwoInt = Pair, 8, 4, "struct { int; int }.";
    ShortInt = Pair, 6, 4, "struct { short; int }, the int at 4, 8 bytes apart.";
    LongDoubleInt = Pair, 20, 16, "struct { long double; int }, 32 bytes apart.";
    TwoF32 = Pair, 8, 4, "Two binary32 (MPI_2REAL).";
    TwoF64 = Pair, 16, 8, "Two binary64 (MPI_2DOUBLE_PRECISION).";
}

impl Basic {
    /// Value, index and the index's displacement, of a pair.
    pub const fn pair(self) -> Option<(Basic, Basic, i64)> {
        match self {
            Basic::FloatInt => Some((Basic::F32, Basic::I32, 4)),
            Basic::DoubleInt => Some((Basic::F64, Basic::I32, 8)),
            Basic::LongInt => Some((Basic::I64, Basic::I32, 8)),
            Basic::TwoInt => Some((Basic::I32, Basic::I32, 4)),
            Basic::ShortInt => Some((Basic::I16, Basic::I32, 4)),
            Basic::LongDoubleInt => Some((Basic::LongDouble, Basic::I32, 16)),
            Basic::TwoF32 => Some((Basic::F32, Basic::F32, 4)),
            Basic::TwoF64 => Some((Basic::F64, Basic::F64, 8)),
            _ => None,
        }
    }

    /// Distance of consecutive elements in memory, padding included.
    pub const fn extent(self) -> u64 {
        let end = match self.pair() {
            Some((_, index, at)) => at as u64 + index.size(),
            None => self.size(),
        };
        end.div_ceil(self.align()) * self.align()
    }
}

/// A predefined datatype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named {
    /// The ABI's handle.
    pub handle: usize,
    /// `MPI_...`
    pub name: &'static str,
    /// Representation of one element.
    pub basic: Basic,
    /// Bytes of one element in external32 (MPI 5.0, 14.5.2).
    pub external: u8,
}

macro_rules! named {
    ($($handle:literal $name:literal $basic:ident $external:literal;)*) => {
        /// Every predefined datatype of the ABI, by ascending handle. `MPIX_`: datatypes of MPICH
        /// that MPI 5.0 does not have, at handles that its ABI leaves free; programs of MPICH's
        /// ABI name them (`api/abi/mpich.tsv`).
        pub const NAMED: &[Named] = &[$(Named {
            handle: $handle, name: $name, basic: Basic::$basic, external: $external,
        }),*];
    };
}

named! {
    0x201 "MPI_AINT" I64 8;
    0x202 "MPI_COUNT" I64 8;
    0x203 "MPI_OFFSET" I64 8;
    0x207 "MPI_PACKED" Byte 1;
    0x208 "MPI_SHORT" I16 2;
    0x209 "MPI_INT" I32 4;
    0x20a "MPI_LONG" I64 4;
    0x20b "MPI_LONG_LONG_INT" I64 8;
    0x20c "MPI_UNSIGNED_SHORT" U16 2;
    0x20d "MPI_UNSIGNED" U32 4;
    0x20e "MPI_UNSIGNED_LONG" U64 4;
    0x20f "MPI_UNSIGNED_LONG_LONG" U64 8;
    0x210 "MPI_FLOAT" F32 4;
    0x212 "MPI_C_COMPLEX" ComplexF32 8;
    0x213 "MPI_CXX_FLOAT_COMPLEX" ComplexF32 8;
    0x214 "MPI_DOUBLE" F64 8;
    0x216 "MPI_C_DOUBLE_COMPLEX" ComplexF64 16;
    0x217 "MPI_CXX_DOUBLE_COMPLEX" ComplexF64 16;
    0x218 "MPI_LOGICAL" Logical32 4;
    0x219 "MPI_INTEGER" I32 4;
    0x21a "MPI_REAL" F32 4;
    0x21b "MPI_COMPLEX" ComplexF32 8;
    0x21c "MPI_DOUBLE_PRECISION" F64 8;
    0x21d "MPI_DOUBLE_COMPLEX" ComplexF64 16;
    0x21e "MPI_CHARACTER" Char 1;
    0x220 "MPI_LONG_DOUBLE" LongDouble 16;
    0x224 "MPI_C_LONG_DOUBLE_COMPLEX" ComplexLongDouble 32;
    0x225 "MPI_CXX_LONG_DOUBLE_COMPLEX" ComplexLongDouble 32;
    0x228 "MPI_FLOAT_INT" FloatInt 8;
    0x229 "MPI_DOUBLE_INT" DoubleInt 12;
    0x22a "MPI_LONG_INT" LongInt 8;
    0x22b "MPI_2INT" TwoInt 8;
    0x22c "MPI_SHORT_INT" ShortInt 6;
    0x22d "MPI_LONG_DOUBLE_INT" LongDoubleInt 20;
    0x230 "MPI_2REAL" TwoF32 8;
    0x231 "MPI_2DOUBLE_PRECISION" TwoF64 16;
    0x232 "MPI_2INTEGER" TwoInt 8;
    0x238 "MPI_C_BOOL" Bool 1;
    0x239 "MPI_CXX_BOOL" Bool 1;
    0x23c "MPI_WCHAR" WChar 2;
    0x240 "MPI_INT8_T" I8 1;
    0x241 "MPI_UINT8_T" U8 1;
    0x243 "MPI_CHAR" Char 1;
    0x244 "MPI_SIGNED_CHAR" I8 1;
    0x245 "MPI_UNSIGNED_CHAR" U8 1;
    0x247 "MPI_BYTE" Byte 1;
    0x248 "MPI_INT16_T" I16 2;
    0x249 "MPI_UINT16_T" U16 2;
    0x24a "MPIX_C_FLOAT16" F16 2;
    0x24c "MPIX_BFLOAT16" BF16 2;
    0x250 "MPI_INT32_T" I32 4;
    0x251 "MPI_UINT32_T" U32 4;
    0x258 "MPI_INT64_T" I64 8;
    0x259 "MPI_UINT64_T" U64 8;
    0x2c0 "MPI_LOGICAL1" Logical8 1;
    0x2c1 "MPI_INTEGER1" I8 1;
    0x2c8 "MPI_LOGICAL2" Logical16 2;
    0x2c9 "MPI_INTEGER2" I16 2;
    0x2ca "MPI_REAL2" F16 2;
    0x2d0 "MPI_LOGICAL4" Logical32 4;
    0x2d1 "MPI_INTEGER4" I32 4;
    0x2d2 "MPI_REAL4" F32 4;
    0x2d3 "MPI_COMPLEX4" ComplexF16 4;
    0x2d8 "MPI_LOGICAL8" Logical64 8;
    0x2d9 "MPI_INTEGER8" I64 8;
    0x2da "MPI_REAL8" F64 8;
    0x2db "MPI_COMPLEX8" ComplexF32 8;
    0x2e0 "MPI_LOGICAL16" Logical128 16;
    0x2e1 "MPI_INTEGER16" I128 16;
    0x2e2 "MPI_REAL16" F128 16;
    0x2e3 "MPI_COMPLEX16" ComplexF64 16;
    0x2eb "MPI_COMPLEX32" ComplexF128 32;
}

/// Predefined datatypes' handles are between this (MPI_DATATYPE_NULL) and `FIRST + RANGE`.
pub const FIRST: usize = 0x200;
/// How many handles the ABI keeps for predefined datatypes.
pub const RANGE: usize = 0x100;

const fn places() -> [u8; RANGE] {
    let mut table = [u8::MAX; RANGE];
    let mut i = 0;
    while i < NAMED.len() {
        table[NAMED[i].handle - FIRST] = i as u8;
        i += 1;
    }
    table
}

const fn plains() -> [u8; RANGE] {
    let mut table = [0; RANGE];
    let mut i = 0;
    while i < NAMED.len() {
        let basic = NAMED[i].basic;
        if basic.size() == basic.extent() {
            table[NAMED[i].handle - FIRST] = basic.size() as u8;
        }
        i += 1;
    }
    table
}

static PLACE: [u8; RANGE] = places();
static PLAIN: [u8; RANGE] = plains();

/// The row of [`NAMED`] of a handle.
#[inline]
pub fn place(handle: usize) -> Option<usize> {
    match PLACE.get(handle.wrapping_sub(FIRST)) {
        Some(&row) if row != u8::MAX => Some(row as usize),
        _ => None,
    }
}

/// The predefined datatype of a handle.
#[inline]
pub fn by_handle(handle: usize) -> Option<&'static Named> {
    NAMED.get(place(handle)?)
}

/// Bytes of one element of a predefined datatype without padding; `None` for all other handles.
#[inline]
pub fn plain_size(handle: usize) -> Option<u64> {
    match PLAIN.get(handle.wrapping_sub(FIRST)) {
        Some(&size) if size != 0 => Some(size as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_up_finds_every_row_and_nothing_else() {
        let found = (0..8192).filter_map(by_handle).count();
        assert_eq!(found, NAMED.len());
        for row in NAMED {
            assert_eq!(by_handle(row.handle), Some(row));
        }
        assert_eq!(by_handle(usize::MAX), None);
    }

    #[test]
    fn pairs_are_laid_out_as_c_structs() {
        let extents: Vec<(u64, u64)> = (0x228..0x22e)
            .map(|h| by_handle(h).unwrap().basic)
            .map(|b| (b.size(), b.extent()))
            .collect();
        assert_eq!(
            extents,
            [(8, 8), (12, 16), (12, 16), (8, 8), (6, 8), (20, 32)]
        );
        assert_eq!(plain_size(0x229), None);
        assert_eq!(plain_size(0x209), Some(4));
    }
}
