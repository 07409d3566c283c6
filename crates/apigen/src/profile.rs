//! Generates the code of `mpiexec --profile`: for the recorder (`kw-profile`) a function under the
//! name of each MPI function, for `mpiexec` the names of their numbers.
//!
//! The recorder passes arguments on as the words in which they arrived, so one function serves
//! every ABI. It needs the number of bytes that the call transfers, which follows from the kinds of
//! the parameters: a number of elements and the datatype after it; and, for a trace, the meaning of
//! the arguments ([`crate::trace`]).

use crate::trace;
use crate::{Api, Direction, Function, Param, Who, Words};
use std::fmt::Write;

/// Functions that wait for other ranks although not all of a communicator take part.
const WAITING: [&str; 26] = [
    "MPI_Send",
    "MPI_Bsend",
    "MPI_Ssend",
    "MPI_Rsend",
    "MPI_Recv",
    "MPI_Mrecv",
    "MPI_Probe",
    "MPI_Mprobe",
    "MPI_Sendrecv",
    "MPI_Sendrecv_replace",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Waitany",
    "MPI_Waitsome",
    "MPI_Buffer_detach",
    "MPI_Buffer_flush",
    "MPI_Win_wait",
    "MPI_Win_start",
    "MPI_Win_complete",
    "MPI_Win_lock",
    "MPI_Win_lock_all",
    "MPI_Win_unlock",
    "MPI_Win_unlock_all",
    "MPI_Win_flush",
    "MPI_Win_flush_all",
    "MPI_Comm_join",
];

/// Recorded functions, in the order of their numbers: all that return an error code and take the
/// declared arguments, except those between the library and its Fortran layer.
fn recorded(api: &Api) -> impl Iterator<Item = &Function> {
    let variadic = |f: &Function| f.params.iter().any(|p| p.c_type == "...");
    api.with_removed()
        .filter(move |f| f.code && !variadic(f) && f.chapter != "abi")
}

/// Rust text for the recorder: for each function its symbol and its description.
pub fn profile_wrappers(api: &Api, words: &Words) -> String {
    let mut out = String::new();
    for (number, f) in recorded(api).enumerate() {
        let names: Vec<_> = f.fixed_params().map(|p| format!("_{}", p.name)).collect();
        let written = match trace::status(f) {
            "" => String::new(),
            status => format!("_{status}"),
        };
        let _ = writeln!(
            out,
            "record! {{ {number}, {}, record_{}, ({}), [{}], {}, {}, {} }}",
            f.name,
            f.rust_name(),
            names.join(", "),
            written,
            event(f),
            bytes(f),
            trace::act(f, words)
        );
    }
    out
}

/// Rust text for `mpiexec`: each function's name, and whether it waits for other ranks.
pub fn profile_names(api: &Api, words: &Words) -> String {
    let mut out = String::from(
        "/// The functions that are recorded: the name, and whether it waits for other ranks.\npub const FUNCTIONS: &[(&str, bool)] = &[\n",
    );
    for f in recorded(api) {
        let _ = writeln!(out, "    ({:?}, {}),", f.name, waits(f, words));
    }
    out + "];\n"
}

/// The function with which a large-count twin is counted.
pub(crate) fn base(f: &Function) -> &str {
    f.name.strip_suffix("_c").unwrap_or(&f.name)
}

fn waits(f: &Function, words: &Words) -> bool {
    let starts = |p: &Param| p.kind == "REQUEST" && p.direction == Direction::Out;
    if f.params.iter().any(starts) {
        return false;
    }
    let summary = words.summaries.get(base(f));
    let collective = summary.is_some_and(|s| s.who == Who::Collective);
    collective || WAITING.contains(&base(f))
}

/// Meaning of a call for the whole rank.
fn event(f: &Function) -> &'static str {
    match f.name.as_str() {
        "MPI_Init" | "MPI_Init_thread" | "MPI_Session_init" => "Begins",
        "MPI_Finalize" | "MPI_Session_finalize" => "Ends",
        "MPI_Type_free" => "FreesType",
        _ => "Passes",
    }
}

/// A buffer with its number of elements and their datatype.
struct Data<'a> {
    buffer: &'a Param,
    count: &'a Param,
    datatype: &'a Param,
}

/// The data of a call, in the order of its parameters.
fn data(f: &Function) -> Vec<Data<'_>> {
    let params: Vec<_> = f.fixed_params().collect();
    let is_count = |p: &Param| p.kind.contains("XFER_NUM_ELEM") && p.direction == Direction::In;
    let each = params.iter().enumerate().filter(|(_, p)| is_count(p));
    each.filter_map(|(at, count)| {
        let (before, behind) = (&params[..at], &params[at + 1..]);
        let buffer = before.iter().rev().find(|p| p.kind == "BUFFER")?;
        let datatype = behind.iter().find(|p| p.kind == "DATATYPE")?;
        Some(Data {
            buffer,
            count,
            datatype,
        })
    })
    .collect()
}

/// The Rust expression of the bytes that a call transfers; it is evaluated after the call, which
/// has accepted its arguments.
fn bytes(f: &Function) -> String {
    let own = base(f).trim_start_matches("MPI_").to_lowercase();
    let without_i = own.strip_prefix('i').filter(|s| is_operation(s));
    let name = without_i.unwrap_or(&own);
    let data = data(f);
    // the amount of operations that begin later is not known; nor are the neighbours
    let none = name.ends_with("_init")
        || name.starts_with("neighbor_alltoall")
        || f.name == "MPI_Status_set_elements";
    let Some(first) = data.first().filter(|_| !none) else {
        return "0".into();
    };
    let amount = match (name, data.get(1)) {
        ("scatter" | "scatterv", Some(second)) => either(second, first, name),
        (_, Some(second)) if takes_part(f, second) => either(first, second, name),
        _ => amount(first, name, false),
    };
    match f.params.iter().any(|p| p.name == "root") {
        // in an intercommunicator, ranks that take no part or give their side's data
        true => format!("if (_root as i32) < 0 {{ 0 }} else {{ {amount} }}"),
        false => amount,
    }
}

/// Whether the second data is the same communication seen from the other side: the call is one of a
/// whole communicator. In a Sendrecv and in calls for windows the first data is the data given.
fn takes_part(f: &Function, second: &Data) -> bool {
    let named = f
        .params
        .iter()
        .any(|p| p.name == "dest" || p.kind == "WINDOW");
    !named && second.buffer.name == "recvbuf"
}

/// Whether the name without its first letter is that of an operation, so that the letter was the
/// `I` of a form.
fn is_operation(name: &str) -> bool {
    const HEADS: [&str; 13] = [
        "send", "bsend", "rsend", "ssend", "recv", "mrecv", "all", "bcast", "gather", "scatter",
        "reduce", "neighbor", "scan",
    ];
    HEADS.iter().any(|head| name.starts_with(head)) || name == "exscan"
}

/// The data of one buffer, or of the other one if the first receives the result.
fn either(this: &Data, other: &Data, name: &str) -> String {
    format!(
        "if amount::in_place(_{}) {{ {} }} else {{ {} }}",
        this.buffer.name,
        amount(other, name, true),
        amount(this, name, false)
    )
}

/// The bytes of one buffer. `in_place`: the parameters of the other direction describe it.
fn amount(d: &Data, name: &str, in_place: bool) -> String {
    let wide = d.count.base_type() != "int";
    let (count, datatype) = (&d.count.name, &d.datatype.name);
    if d.count.is_array() {
        return match name {
            "reduce_scatter" | "alltoallv" => {
                format!("amount::sum(_{count}, {wide}, _{datatype}, _comm)")
            }
            "alltoallw" => format!("amount::sum_of_types(_{count}, {wide}, _{datatype}, _comm)"),
            "scatterv" | "gatherv" | "allgatherv" if in_place => {
                format!("amount::own(_{count}, {wide}, _{datatype}, _comm)")
            }
            _ => "0".into(),
        };
    }
    let number = match wide {
        true => format!("_{count} as i64"),
        false => format!("_{count} as i32 as i64"),
    };
    match name {
        "alltoall" | "reduce_scatter_block" => {
            format!("amount::for_each({number}, _{datatype}, _comm)")
        }
        _ => format!("amount::of({number}, _{datatype})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described() -> (Api, Words) {
        let dir = crate::api_dir(env!("CARGO_MANIFEST_DIR").as_ref());
        (Api::read(&dir).unwrap(), Words::read(&dir).unwrap())
    }

    #[test]
    fn bytes_follow_from_the_kinds_of_the_parameters() {
        let (api, _) = described();
        let of = |name: &str| bytes(api.function(name).unwrap());
        for (name, expected) in [
            ("MPI_Barrier", "0"),
            ("MPI_Send", "amount::of(_count as i32 as i64, _datatype)"),
            ("MPI_Irecv_c", "amount::of(_count as i64, _datatype)"),
            ("MPI_Send_init", "0"),
            ("MPI_Get_count", "0"),
            ("MPI_Status_set_elements", "0"),
            ("MPI_Neighbor_alltoallw", "0"),
            (
                "MPI_Put",
                "amount::of(_origin_count as i32 as i64, _origin_datatype)",
            ),
            (
                "MPI_Sendrecv",
                "amount::of(_sendcount as i32 as i64, _sendtype)",
            ),
            (
                "MPI_Reduce_scatter",
                "amount::sum(_recvcounts, false, _datatype, _comm)",
            ),
            (
                "MPI_Ialltoallv_c",
                "if amount::in_place(_sendbuf) { amount::sum(_recvcounts, true, _recvtype, _comm) } \
                 else { amount::sum(_sendcounts, true, _sendtype, _comm) }",
            ),
            (
                "MPI_Scatterv",
                "if (_root as i32) < 0 { 0 } else { if amount::in_place(_recvbuf) \
                 { amount::own(_sendcounts, false, _sendtype, _comm) } \
                 else { amount::of(_recvcount as i32 as i64, _recvtype) } }",
            ),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }

    #[test]
    fn who_waits() {
        let (api, words) = described();
        let waits = |name: &str| waits(api.function(name).unwrap(), &words);
        for name in [
            "MPI_Recv",
            "MPI_Send_c",
            "MPI_Waitall",
            "MPI_Allreduce_c",
            "MPI_Init",
        ] {
            assert!(waits(name), "{name}");
        }
        for name in [
            "MPI_Isend",
            "MPI_Ibcast",
            "MPI_Test",
            "MPI_Comm_rank",
            "MPI_Bcast_init",
        ] {
            assert!(!waits(name), "{name}");
        }
    }

    #[test]
    fn what_waits_is_there() {
        let (api, _) = described();
        for name in WAITING {
            assert!(api.function(name).is_some(), "{name}");
        }
    }
}
