//! Fortran's interfaces follow from the description: names, declarations, conversions.

use kw_apigen::{
    Abi, Api, Fortran, FortranAbi, Interface, api_dir, foreign_module, foreign_symbols,
    fortran_declaration, fortran_shells, fortran_symbols, include_file, module_files, symbols,
};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

fn dir() -> PathBuf {
    api_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
}

fn api() -> (Api, Fortran) {
    let api = Api::read(&dir()).unwrap();
    let fortran = Fortran::read(&dir(), &api).unwrap();
    (api, fortran)
}

/// A module's source.
fn module(name: &str) -> String {
    let (api, fortran) = api();
    let files = module_files(&api, &fortran);
    files.into_iter().find(|(file, _)| *file == name).unwrap().1
}

/// The body of a procedure in Rust.
fn shell(name: &str) -> String {
    let (api, fortran) = api();
    let text = fortran_shells(&FortranAbi::standard(&api), &fortran).unwrap();
    let from = text
        .find(&format!(" fn {name}("))
        // of two functions, the one that also accepts sections
        .or_else(|| text.find(&format!(" fn {name}_any<")))
        .or_else(|| text.find(&format!(" fn {name}<")));
    let rest = &text[from.unwrap_or_else(|| panic!("there is no {name}"))..];
    rest[..rest.find("\n}\n").unwrap()].to_string()
}

#[test]
fn every_name_is_defined_once_and_every_alias_has_one_it_stands_for() {
    let (api, fortran) = api();
    let symbols = symbols(&api, &fortran);
    let defined: HashSet<&String> = symbols.defined.iter().collect();
    assert_eq!(defined.len(), symbols.defined.len());
    let mut names = defined.clone();
    for (name, of) in &symbols.aliases {
        assert!(
            defined.contains(of),
            "{name} stands for {of}, which is not defined"
        );
        assert!(names.insert(name), "{name} has two meanings");
    }
    for b in fortran.functions(&api) {
        for name in fortran_symbols(&api, &fortran, b.f) {
            assert!(names.contains(&name), "{name} is not exported");
        }
    }
}

#[test]
fn another_abi_has_its_names_blocks_and_values() {
    let (api, fortran) = api();
    let abi = Abi::read(&dir(), "mpich", &api).unwrap();
    let shim = FortranAbi::of(&api, &abi);
    let symbols = foreign_symbols(&shim, &fortran);
    let mut names = HashSet::new();
    let aliases = symbols.aliases.iter().map(|(name, _)| name);
    for name in symbols.defined.iter().chain(aliases) {
        assert!(names.insert(name.as_str()), "{name} has two meanings");
    }
    for name in [
        "mpi_send_",
        "mpi_send__",
        "PMPI_SEND",
        "mpi_send",
        "mpi_type_struct_",
    ]
    .into_iter()
    .chain([
        "mpi_send_f08ts_",
        "mpi_send_c_f08ts_",
        "mpi_send_f08ts_large_",
    ])
    .chain([
        "mpipriv1_",
        "__mpi_constants_MOD_commeq",
        "mpi_barrier_f08_",
    ]) {
        assert!(names.contains(name), "{name} is not exported");
    }
    let text = include_file(&shim, &fortran);
    for line in [
        "common /mpipriv1/ MPI_BOTTOM,MPI_IN_PLACE,MPI_STATUS_IGNORE",
        "parameter (MPI_STATUS_SIZE=5)",
        "parameter (MPI_COMM_WORLD=1140850688)",
        // C's value is 0x64400001
        "parameter (MPI_TAG_UB=1681915906)",
        "parameter (MPI_FLOAT_INT=-1946157056)",
    ] {
        assert!(text.contains(&format!("      {line}\n")), "{line}");
    }
}

#[test]
fn an_abi_whose_buffers_come_by_address_has_the_procedures_of_mpif_h_in_mpi_f08() {
    let (api, fortran) = api();
    let abi = Abi::read(&dir(), "openmpi", &api).unwrap();
    let shim = FortranAbi::of(&api, &abi);
    let symbols = foreign_symbols(&shim, &fortran);
    let mut names: HashSet<&str> = symbols.defined.iter().map(String::as_str).collect();
    assert_eq!(names.len(), symbols.defined.len());
    for (name, _) in &symbols.aliases {
        assert!(names.insert(name), "{name} has two meanings");
    }
    for (name, of) in [
        ("mpi_send_f08_", "mpi_send_"),
        ("pmpi_send_f08_", "mpi_send_"),
        ("mpi_comm_dup_f08_", "mpi_comm_dup_"),
        ("mpix_bcast_init_f08_", "mpi_bcast_init_"),
        ("PMPIX_BCAST_INIT", "mpi_bcast_init_"),
        ("mpi_alloc_mem_cptr__", "mpi_alloc_mem_"),
        ("pmpi_buffer_detach_f08_", "mpi_buffer_detach_f08_"),
        ("mpi_sizeof_real64_scalar_", "kw_sizeof_8_"),
        ("pmpi_sizeof_int8_r15_", "kw_sizeof_1_"),
        ("__mpi_types_MOD_ompi_win_op_ne", "mpi_comm_ne_"),
        ("__mpi_types_MOD___copy_mpi_types_Mpi_status", "kw_copy_24_"),
    ] {
        let alias = symbols.aliases.iter().find(|alias| alias.0 == name);
        assert_eq!(alias.map(|alias| alias.1.as_str()), Some(of), "{name}");
    }
    for name in [
        "mpi_buffer_detach_f08_",
        "ompi_f08_mpi_comm_world",
        "__mpi_f08_types_MOD_mpi_integer",
        "__mpi_types_MOD___vtab_mpi_types_Mpi_comm",
    ] {
        assert!(symbols.defined.iter().any(|n| n == name), "{name}");
    }
    for name in ["mpi_send_c_f08_", "mpi_send_f08ts_", "mpi_wtime_f08_"] {
        assert!(!names.contains(name), "{name} is exported");
    }
    let text = fortran_shells(&shim, &fortran).unwrap();
    assert!(text.contains(" fn mpi_buffer_detach_f08_(") && !text.contains("f08ts_"));
}

#[test]
fn a_module_wants_what_such_an_abi_has() {
    let (api, fortran) = api();
    let abi = |name| Abi::read(&dir(), name, &api).unwrap();
    let openmpi = abi("openmpi");
    let text = foreign_module(&FortranAbi::of(&api, &openmpi), &fortran).unwrap();
    for part in [
        "integer, parameter :: MPI_STATUS_SIZE = 6\n",
        "type(MPI_Comm), parameter :: MPI_COMM_SELF = MPI_Comm(1)\n",
        "logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.\n",
        "subroutine MPI_Send_f08( &\nbuf, count, datatype, dest, tag, comm, ierror)\nimport\n!GCC$ attributes no_arg_check :: buf\n",
        "double precision function PMPI_Wtick_f08( &\n) bind(C, name=\"PMPI_Wtick\")\n",
        "bind(C, name=\"__mpi_f08_types_MOD_ompi_op_op_eq\")\n",
        "subroutine MPI_Sizeof_complex64_r3(x, size, ierror)\ncomplex(8) :: x(1,1,*)\n",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("MPI_BUFFER_AUTOMATIC"));
    // descriptors
    assert!(foreign_module(&FortranAbi::of(&api, &abi("mpich")), &fortran).is_err());
}

#[test]
fn what_shells_define_is_what_the_linker_exports() {
    let (api, fortran) = api();
    let text = fortran_shells(&FortranAbi::standard(&api), &fortran).unwrap();
    for b in fortran.functions(&api).filter(|b| !b.by_hand) {
        for name in b.defined() {
            assert!(text.contains(&format!("\"C-unwind\" fn {name}(")), "{name}");
        }
    }
}

#[test]
fn a_function_has_its_names() {
    let (api, fortran) = api();
    let names = |f: &str| {
        let mut names = fortran_symbols(&api, &fortran, api.function(f).unwrap());
        names.retain(|name| name.starts_with("mpi_"));
        names
    };
    assert_eq!(names("MPI_Barrier"), ["mpi_barrier_", "mpi_barrier_f08_"]);
    assert_eq!(
        names("MPI_Send"),
        ["mpi_send_", "mpi_send_f08ts_", "mpi_send_fts_"]
    );
    assert_eq!(names("MPI_Send_c"), ["mpi_send_c_f08ts_"]);
    assert_eq!(names("MPI_Attr_get"), ["mpi_attr_get_"]);
    assert_eq!(
        names("MPI_Alloc_mem"),
        [
            "mpi_alloc_mem_",
            "mpi_alloc_mem_f08_",
            "mpi_alloc_mem_cptr_"
        ]
    );
    for c_only in ["MPI_T_init_thread", "MPI_Comm_toint", "MPI_Comm_fromint"] {
        assert!(names(c_only).is_empty(), "{c_only}");
    }
}

#[test]
fn declarations_are_those_of_the_standard() {
    let (api, fortran) = api();
    let lines = |f: &str, which| {
        fortran_declaration(&api, &fortran, api.function(f).unwrap(), which).unwrap_or_default()
    };
    assert_eq!(
        lines("MPI_Irecv", Interface::F08),
        [
            "MPI_Irecv(buf, count, datatype, source, tag, comm, request, ierror)",
            "type(*), dimension(..), asynchronous, target :: buf",
            "integer, intent(in) :: count",
            "type(MPI_Datatype), intent(in) :: datatype",
            "integer, intent(in) :: source",
            "integer, intent(in) :: tag",
            "type(MPI_Comm), intent(in) :: comm",
            "type(MPI_Request), intent(out) :: request",
            "integer, optional, intent(out) :: ierror",
        ]
    );
    assert_eq!(
        lines("MPI_Probe", Interface::MpifH),
        [
            "MPI_PROBE(SOURCE, TAG, COMM, STATUS, IERROR)",
            "INTEGER :: SOURCE",
            "INTEGER :: TAG",
            "INTEGER :: COMM",
            "INTEGER :: STATUS(MPI_STATUS_SIZE)",
            "INTEGER :: IERROR",
        ]
    );
    // an argument that may be ignored has no intent: a constant cannot be written
    assert!(lines("MPI_Recv", Interface::F08).contains(&"type(MPI_Status) :: status".to_string()));
    assert_eq!(
        lines("MPI_Wtime", Interface::Mpi),
        ["double precision MPI_Wtime()"]
    );
    assert!(lines("MPI_Send_c", Interface::Mpi).is_empty());
    assert!(lines("MPI_Attr_put", Interface::F08).is_empty());
}

#[test]
fn arguments_are_converted_by_kind() {
    assert!(shell("mpi_waitany_").contains("if code == 0 { convert::index(indx); }"));
    assert!(shell("mpi_testsome_").contains("convert::indices(array_of_indices, *outcount)"));
    // these indices do not belong to requests
    assert!(!shell("mpi_graph_get_").contains("convert::ind"));
    assert!(shell("mpi_comm_split_").contains("let mut newcomm_ = Comm(0);"));
    assert!(shell("mpi_info_set_").contains("Text::read_info(key, key_len)"));
    assert!(shell("mpi_comm_set_name_").contains("Text::read(comm_name, comm_name_len)"));
    assert!(shell("mpi_cart_create_").contains("Logicals::read(periods, *ndims as i64)"));
    assert!(
        shell("mpi_get_processor_name_").contains("if code == 0 { name_.write(name, name_len); }")
    );
    assert!(shell("mpi_wait_").contains("pending::settle(&[request_was], &[request_]);"));
    assert!(shell("mpi_start_").contains("pending::start(&[request_]);"));
}

#[test]
fn a_section_is_a_message_where_count_and_datatype_describe_all_of_it() {
    let messages = [
        "mpi_isend",
        "mpi_recv_init",
        "mpi_file_read_at",
        "mpi_put",
        "mpi_ibcast",
        "mpi_sendrecv_replace",
    ];
    for name in messages {
        assert!(
            shell(name).contains("sections.message(") && !shell(name).contains("sections.copy("),
            "{name}"
        );
    }
    for name in [
        "mpi_gather",
        "mpi_ialltoallw",
        "mpi_reduce",
        "mpi_scan_init",
    ] {
        assert!(
            shell(name).contains("sections.copy(") && !shell(name).contains("sections.message("),
            "{name}"
        );
    }
    let unpack = shell("mpi_unpack");
    assert!(unpack.contains("sections.copy(inbuf") && unpack.contains("sections.message(outbuf"));
    assert!(shell("mpi_psend_init").contains("sections.partitions("));
    assert!(!shell("mpi_get_address").contains("sections"));
}

#[test]
fn mpif_h_is_fixed_and_free_form() {
    let (api, fortran) = api();
    let text = include_file(&FortranAbi::standard(&api), &fortran);
    for line in text.lines() {
        assert!(
            line.len() <= 72 && line.is_ascii() && !line.contains('&'),
            "{line}"
        );
        assert!(
            line.starts_with('!') || line.starts_with("      "),
            "{line}"
        );
    }
    // a text in Fortran has no final zero
    assert!(text.contains("parameter (MPI_MAX_PROCESSOR_NAME=255)"));
    assert!(text.contains("parameter (MPI_COMM_WORLD=257)"));
    assert!(!text.contains("MPI_T_"));
}

#[test]
fn modules_are_standard_free_form() {
    for name in [
        "mpi_fortran_types.f90",
        "mpi.f90",
        "mpi_f08.f90",
        "mpi_fortran_compiler.f90",
    ] {
        for line in module(name).lines() {
            assert!(line.len() <= 132 && line.is_ascii(), "{name}: {line}");
        }
    }
}

/// gfortran forgets the interface of a procedure that is declared to be like another one after its
/// first call, and the second call then passes an address instead of a descriptor. A call through a
/// pointer is not affected.
#[test]
fn procedures_with_descriptors_have_interfaces_of_their_own_or_are_pointers() {
    for name in ["mpi.f90", "mpi_f08.f90"] {
        let text = module(name);
        let lines: Vec<&str> = text.lines().collect();
        let alike = lines.windows(2).filter(|w| w[0].ends_with(":: &"));
        assert!(alike.clone().count() > 300, "{name}");
        for line in alike {
            let [head, what] = [line[0], line[1]];
            let called = !head.contains(", pointer, protected") && !what.ends_with("_at");
            let described = head.contains("fts)") || head.contains("f08ts)");
            assert!(!(called && described), "{name}: {head} {what}");
            let private = format!("\nprivate :: {what}\n");
            assert!(
                called || what.contains("=>") || text.contains(&private),
                "{name}: {what}"
            );
        }
    }
    assert!(module("mpi_f08.f90").contains("PMPI_Send_f08ts => PMPI_Send_f08ts_at\n"));
}

#[test]
fn what_is_contiguous_and_constant_goes_to_c_as_it_is() {
    let (api, fortran) = api();
    let text = fortran_shells(&FortranAbi::standard(&api), &fortran).unwrap();
    let send = &text[text.find("unsafe fn mpi_send<").unwrap()..];
    let send = &send[..send.find("\n}\n").unwrap()];
    let direct = "B::is_direct(buf) && is_direct::<Datatype>(datatype) && is_direct::<Comm>(comm)";
    assert!(send.contains(direct) && send.contains("mpi_send_any::<B>(buf, count,"));
    assert!(!send.contains("sections"), "{send}");
    // arrays of handles are converted in any case
    assert!(!text.contains("mpi_ialltoallw_any"));
}

/// gfortran assumes that the address of a dummy without the target attribute is forgotten after the
/// call, and keeps the buffer's old values in registers.
#[test]
fn buffers_that_are_used_later_are_targets() {
    for name in ["mpi.f90", "mpi_f08.f90"] {
        for line in module(name).lines() {
            assert_eq!(
                line.contains(", asynchronous"),
                line.contains(", target ::"),
                "{name}: {line}"
            );
        }
    }
}

#[test]
fn large_counts_have_the_names_of_their_bases_where_a_compiler_can_tell() {
    let text = module("mpi_f08.f90");
    let generic = |name: &str| {
        let from = text.find(&format!("interface {name}\n")).unwrap();
        let rest = &text[from..];
        rest[..rest.find("end interface").unwrap()]
            .matches("procedure ")
            .count()
    };
    assert_eq!(generic("MPI_Send"), 2);
    assert_eq!(generic("MPI_Type_get_envelope"), 2);
    // address and count have the same kind
    assert_eq!(generic("MPI_Type_create_resized"), 1);
    assert_eq!(generic("MPI_Op_create"), 1);
    assert_eq!(generic("MPI_Op_create_c"), 1);
    assert_eq!(generic("PMPI_Send"), 2);
}

#[test]
fn a_wrong_row_of_the_exceptions_is_an_error() {
    let (api, _) = api();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fortran");
    std::fs::create_dir_all(&dir).unwrap();
    for row in ["MPI_Nothing\thand\twhy", "MPI_Send\tfoot\twhy"] {
        std::fs::write(
            dir.join("fortran.tsv"),
            format!("function\twhat\treason\n{row}\n"),
        )
        .unwrap();
        let error = Fortran::read(&dir, &api).unwrap_err().to_string();
        assert!(error.contains(row.split('\t').next().unwrap()), "{error}");
    }
}
