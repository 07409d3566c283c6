//! Names of procedures as linkers see them.

use super::fortran_abi::FortranAbi;
use super::{Binding, Fortran};
use crate::{Api, Function};

/// Exports of `libmpifort_abi`.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Procedures that Rust defines.
    pub defined: Vec<String>,
    /// Further names of these: name, name of the definition.
    pub aliases: Vec<(String, String)>,
}

impl Symbols {
    /// Options for a linker that give the procedures their further names.
    pub fn linker_options(&self) -> String {
        let option = |(name, of): &(String, String)| format!("--defsym={name}={of}\n");
        self.aliases.iter().map(option).collect()
    }

    /// A version script for a linker: these names are exported, and nothing else.
    pub fn exports(&self) -> String {
        let aliases = self.aliases.iter().map(|(name, _)| name);
        let names = self.defined.iter().chain(aliases);
        let lines: String = names.map(|name| format!("{name};\n")).collect();
        format!("{{\nglobal:\n{lines}local: *;\n}};\n")
    }
}

impl Binding<'_> {
    /// Name in lower case.
    pub fn small(&self) -> String {
        self.f.name.to_ascii_lowercase()
    }

    /// The name in mpif.h; large-count twins have none.
    pub fn plain(&self) -> String {
        format!("{}_", self.small())
    }

    /// The name of the specific procedure of mpi_f08.
    pub fn specific_f08(&self) -> String {
        let end = if self.has_choice() { "_f08ts" } else { "_f08" };
        format!("{}{end}", self.f.name)
    }

    /// The name of the specific procedure of module mpi.
    pub fn specific_mpi(&self) -> String {
        let end = if self.has_choice() { "_fts" } else { "" };
        format!("{}{end}", self.f.name)
    }

    /// The generic name: a large-count twin has that of its base.
    pub fn generic(&self) -> &str {
        match self.base {
            Some(base) if !self.own_name => base,
            _ => &self.f.name,
        }
    }

    /// The linker names that Rust defines.
    pub fn defined(&self) -> Vec<String> {
        let f08 = linker(&self.specific_f08());
        match (self.is_large(), self.has_two_forms()) {
            (true, _) => vec![f08],
            (false, true) => vec![self.plain(), f08],
            (false, false) => vec![self.plain()],
        }
    }

    /// The name in a library whose mpi_f08 passes buffers by address; that library has no large
    /// counts, and differs from mpif.h in the form of an address that MPI returns.
    pub(super) fn defined_by_address(&self) -> Vec<String> {
        match (self.is_large(), self.has_two_forms() && !self.has_choice()) {
            (true, _) => Vec::new(),
            (false, true) => vec![self.plain(), self.f08_by_address()],
            (false, false) => vec![self.plain()],
        }
    }

    /// The name in such an mpi_f08.
    pub(super) fn f08_by_address(&self) -> String {
        format!("{}_f08_", self.small())
    }

    /// Whether such an mpi_f08 has it under a separate name: neither large counts, nor the clocks,
    /// which are C's.
    pub(super) fn is_plain_f08(&self) -> bool {
        self.f08 && !self.is_large() && (self.f.code || !self.f.params.is_empty())
    }

    /// Its name in module mpi if memory is given by a C pointer, and the procedure.
    fn of_pointers(&self) -> Option<(String, String)> {
        let has = self.f.params.iter().any(|p| p.kind == "C_BUFFER");
        has.then(|| (format!("{}_cptr_", self.small()), self.plain()))
    }

    fn all(&self) -> Vec<(String, String)> {
        let defined = self.defined();
        let last = defined[defined.len() - 1].clone();
        let mut names: Vec<(String, String)> =
            defined.into_iter().map(|d| (d.clone(), d)).collect();
        if self.f08 {
            names.push((linker(&self.specific_f08()), last.clone()));
        }
        if !self.is_large() && self.has_choice() {
            names.push((linker(&self.specific_mpi()), last.clone()));
        }
        names.extend(self.of_pointers().filter(|_| !self.is_large()));
        names.dedup();
        names
    }
}

/// The linker names of a function, the p-names too; none if Fortran does not have it.
pub fn fortran_symbols(api: &Api, fortran: &Fortran, f: &Function) -> Vec<String> {
    let bindings = fortran.functions(api).filter(|b| b.f.name == f.name);
    let names = bindings.flat_map(|b| b.all()).map(|(name, _)| name);
    names.flat_map(|name| [format!("p{name}"), name]).collect()
}

/// The linker name of a Fortran name.
pub fn linker(name: &str) -> String {
    format!("{}_", name.to_ascii_lowercase())
}

/// Every exported name.
pub fn symbols(api: &Api, fortran: &Fortran) -> Symbols {
    let mut out = Symbols::default();
    let mut add = |name: String, of: String| {
        if name == of {
            out.defined.push(name.clone());
        } else {
            out.aliases.push((name.clone(), of.clone()));
        }
        out.aliases.push((format!("p{name}"), of));
    };
    for b in fortran.functions(api) {
        for (name, of) in b.all() {
            add(name, of);
        }
    }
    for (name, of) in super::modules::own_procedures(api) {
        add(name, of);
    }
    for (name, _) in super::callbacks::predefined() {
        add(linker(&name), linker(&name));
    }
    out.aliases.sort();
    out.aliases.dedup();
    out
}

/// Every name that a library of another ABI exports: those of mpif.h in the spelling of each
/// compiler, those of mpi_f08, the other symbols of its modules, and the constants with an address.
pub fn foreign_symbols(abi: &FortranAbi, fortran: &Fortran) -> Symbols {
    let predefined = super::callbacks::predefined();
    let functions = || fortran.functions(abi.api).filter(|b| !b.is_large());
    let mut out = Symbols {
        defined: functions()
            .map(|b| b.plain())
            .chain(predefined.into_iter().map(|(name, _)| linker(&name)))
            .chain(MORE.map(str::to_string))
            .collect(),
        aliases: Vec::new(),
    };
    let mut plain: Vec<(String, String)> =
        out.defined.iter().map(|n| (n.clone(), n.clone())).collect();
    plain.extend(functions().filter_map(|b| b.of_pointers()));
    plain.extend(abi.beyond().map(|(name, of)| (linker(name), linker(of))));
    for (name, of) in plain {
        let written = written(&name).into_iter().filter(|name| *name != of);
        out.aliases.extend(written.map(|name| (name, of.clone())));
    }
    match abi.by_address() {
        true => addresses(&mut out, abi, fortran),
        false if abi.has_f08() => descriptors(&mut out, abi, fortran),
        false => {}
    }
    out.aliases.extend(abi.procedures());
    let blocks = abi.blocks().into_iter().map(|b| format!("{}_", b.name));
    let classes = abi.classes().into_iter().flat_map(|class| {
        ["__vtab", "__def_init"].map(|part| format!("{}{part}{}", class.before, class.after))
    });
    let variables = abi.variables().into_iter().map(|(name, _)| name);
    out.defined.extend(blocks.chain(classes).chain(variables));
    out.defined.extend(abi.objects().map(str::to_string));
    out
}

/// Spellings of the name of a procedure of mpif.h by compilers, and of the p-name.
fn written(linker: &str) -> Vec<String> {
    let plain = linker.trim_end_matches('_');
    let both = [plain.to_string(), format!("p{plain}")];
    let each = both.into_iter().flat_map(|name| {
        let upper = name.to_uppercase();
        [format!("{name}_"), format!("{name}__"), upper, name]
    });
    each.collect()
}

/// The names of mpi_f08 if buffers are passed by address: most procedures are those of mpif.h.
fn addresses(out: &mut Symbols, abi: &FortranAbi, fortran: &Fortran) {
    let mut add = |name: String, of: &str| {
        out.aliases.push((format!("p{name}"), of.to_string()));
        match name == of {
            true => out.defined.push(name),
            false => out.aliases.push((name, of.to_string())),
        }
    };
    for b in fortran.functions(abi.api).filter(Binding::is_plain_f08) {
        let defined = b.defined_by_address();
        add(b.f08_by_address(), &defined[defined.len() - 1]);
    }
    for (name, of) in abi.beyond() {
        add(format!("{}_f08_", name.to_ascii_lowercase()), &linker(of));
    }
}

/// The names of mpi_f08 if buffers are passed by descriptors.
fn descriptors(out: &mut Symbols, abi: &FortranAbi, fortran: &Fortran) {
    for b in fortran.functions(abi.api) {
        for (name, of) in b.all().into_iter().filter(|(n, _)| n.contains("_f08")) {
            // another name of large-count twins: that of the base, with a suffix
            let large = b.base.filter(|_| b.is_large());
            let large = large.map(|base| {
                let end = if b.has_choice() { "ts" } else { "" };
                format!("{}_f08{end}_large_", base.to_ascii_lowercase())
            });
            for name in [Some(name), large].into_iter().flatten() {
                out.aliases
                    .push((format!("pmpir{}", &name["mpi".len()..]), of.clone()));
                match name == of {
                    true => out.defined.push(name),
                    false => out.aliases.push((name, of.clone())),
                }
            }
        }
    }
}

/// Procedures without a row in the description: those that MPI 3.0 removed (module `removed` of
/// `crates/fortran`), and one that only Fortran has.
const MORE: [&str; 11] = [
    "mpi_f_sync_reg_",
    "mpi_address_",
    "mpi_errhandler_create_",
    "mpi_errhandler_get_",
    "mpi_errhandler_set_",
    "mpi_type_extent_",
    "mpi_type_hindexed_",
    "mpi_type_hvector_",
    "mpi_type_lb_",
    "mpi_type_struct_",
    "mpi_type_ub_",
];
