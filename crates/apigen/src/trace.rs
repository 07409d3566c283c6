//! Generates the description of each function's arguments for `mpiexec --trace`: which words are
//! ranks, tag, communicator, requests, and the effect of the call on messages. It follows from the
//! names and kinds of the parameters.

use crate::profile::base;
use crate::{Direction, Function, Param, Who, Words};

/// The parameter with the address for statuses.
pub(crate) fn status(f: &Function) -> &str {
    let is_it = |p: &&Param| p.kind == "STATUS" && p.direction == Direction::Out && p.depth() == 1;
    let takes = !matches!(what(f), "Plain" | "Scan" | "Send");
    let found = f.fixed_params().find(is_it).filter(|_| takes);
    found.map_or("", |p| p.name.as_str())
}

/// The Rust expression of a call's `Act`.
pub(crate) fn act(f: &Function, words: &Words) -> String {
    let mut what = what(f);
    let mut fields = Vec::new();
    if is_collective(f, words) {
        fields.push("collective: true".into());
    }
    let plain = |p: &&Param| p.direction == Direction::In && p.depth() == 0;
    let find = |test: &dyn Fn(&Param) -> bool| f.fixed_params().filter(plain).find(|p| test(p));
    if let Some(p) = find(&|p| p.kind == "COMMUNICATOR") {
        fields.push(format!("comm: _{}", p.name));
    }
    if let Some(p) = find(&|p| p.kind == "WINDOW") {
        fields.push(format!("win: _{}", p.name));
    }
    for name in ["dest", "source", "root"] {
        if find(&|p| p.name == name && p.base_type() == "int").is_some() {
            fields.push(format!("{name}: _{name} as i32"));
        }
    }
    if let Some(target) = target(f) {
        fields.push(format!("dest: _{} as i32", target.name));
    }
    if let Some(p) = find(&|p| p.kind == "LOCK_TYPE") {
        fields.push(format!("tag: _{} as i32", p.name));
    }
    let tags = f.fixed_params().filter(plain).filter(|p| p.kind == "TAG");
    for (p, name) in tags.zip(["tag", "recvtag"]) {
        fields.push(format!("{name}: _{} as i32", p.name));
    }
    let requests = f.fixed_params().find(|p| p.kind == "REQUEST");
    if let Some(count) = requests.and_then(|p| p.length.as_deref()) {
        fields.push(format!("requests: _{count}"));
    }
    let used: Vec<String> = pointers(f, what).iter().map(|w| word(f, w)).collect();
    if !used.is_empty() {
        let rest = vec!["0"; 5 - used.len()];
        let all: Vec<&str> = used.iter().map(String::as_str).chain(rest).collect();
        fields.push(format!("words: [{}]", all.join(", ")));
    }
    let named = |field: &String| {
        ["dest", "source", "tag", "requests"]
            .iter()
            .any(|n| field.starts_with(n))
    };
    if what == "Plain" && fields.iter().any(named) {
        what = "Named";
    }
    if what != "Plain" {
        fields.insert(0, format!("what: What::{what}"));
    }
    match fields.is_empty() {
        true => "Act::PLAIN".into(),
        false => format!("Act {{ {}, ..Act::PLAIN }}", fields.join(", ")),
    }
}

/// Whether a call is on a window that exists.
fn is_on_window(f: &Function) -> bool {
    let is_it = |p: &Param| p.kind == "WINDOW" && p.direction == Direction::In && p.depth() == 0;
    f.fixed_params().any(is_it)
}

/// The rank of a window whose memory a call accesses, locks or completes.
fn target(f: &Function) -> Option<&Param> {
    match is_on_window(f) && !f.name.contains("_query") {
        true => f.fixed_params().find(|p| p.kind == "RANK_NNI"),
        false => None,
    }
}

/// A parameter as a word; a number or a missing parameter stays a number.
fn word(f: &Function, name: &str) -> String {
    match f.fixed_params().any(|p| p.name == name) {
        true => format!("_{name}"),
        false if name == "1" => "1".into(),
        false => "0".into(),
    }
}

/// Whether all members of the communicator or the window call it, each the same number of times.
fn is_collective(f: &Function, words: &Words) -> bool {
    if matches!(base(f), "MPI_Win_fence" | "MPI_Win_free") {
        return true;
    }
    let summary = words.summaries.get(base(f));
    let persistent = base(f).ends_with("_init");
    let of_all = base(f) != "MPI_Comm_create_group";
    let comm = |p: &Param| p.kind == "COMMUNICATOR" && p.direction == Direction::In;
    summary.is_some_and(|s| s.who == Who::Collective)
        && !persistent
        && of_all
        && f.fixed_params().any(|p| comm(p) && p.depth() == 0)
}

/// Its name in the recorder's `What`.
fn what(f: &Function) -> &'static str {
    match base(f) {
        "MPI_Send" | "MPI_Bsend" | "MPI_Ssend" | "MPI_Rsend" => "Send",
        "MPI_Isend" | "MPI_Ibsend" | "MPI_Issend" | "MPI_Irsend" => "Send",
        "MPI_Recv" => "Recv",
        "MPI_Sendrecv" | "MPI_Sendrecv_replace" => "Sendrecv",
        "MPI_Irecv" => "Irecv",
        "MPI_Isendrecv" | "MPI_Isendrecv_replace" => "Isendrecv",
        "MPI_Send_init" | "MPI_Bsend_init" | "MPI_Ssend_init" | "MPI_Rsend_init" => "SendInit",
        "MPI_Recv_init" => "RecvInit",
        "MPI_Start" | "MPI_Startall" => "Start",
        "MPI_Wait" | "MPI_Waitall" | "MPI_Test" | "MPI_Testall" => "Wait",
        "MPI_Waitany" | "MPI_Testany" => "Waitany",
        "MPI_Waitsome" | "MPI_Testsome" => "Waitsome",
        "MPI_Request_free" => "RequestFree",
        "MPI_Mprobe" | "MPI_Improbe" => "Mprobe",
        "MPI_Probe" | "MPI_Iprobe" => "Probe",
        "MPI_Scan" | "MPI_Exscan" => "Scan",
        "MPI_Mrecv" => "Mrecv",
        "MPI_Imrecv" => "Imrecv",
        "MPI_Comm_idup" | "MPI_Comm_idup_with_info" => "CopiesComm",
        "MPI_Comm_free" | "MPI_Comm_disconnect" => "FreesComm",
        "MPI_Comm_set_name" => "NamesComm",
        "MPI_Init" | "MPI_Init_thread" => "Begins",
        "MPI_Finalize" => "Ends",
        "MPI_Win_start" | "MPI_Win_post" => "WindowGroup",
        "MPI_Win_free" => "FreesWindow",
        "MPI_Win_set_name" => "NamesWindow",
        _ if is_on_window(f) => "Window",
        _ if makes(f, "WINDOW").is_some() => "MakesWindow",
        _ if makes(f, "COMMUNICATOR").is_some() => "MakesComm",
        _ => "Plain",
    }
}

/// The parameter with the address for a new communicator or window.
fn makes<'a>(f: &'a Function, kind: &str) -> Option<&'a Param> {
    let made = |p: &&Param| p.kind == kind && p.direction == Direction::Out;
    f.fixed_params().find(made).filter(|p| p.depth() == 1)
}

/// The words listed in `What`, by the names of their parameters.
fn pointers<'a>(f: &'a Function, what: &str) -> Vec<&'a str> {
    let one = base(f) == "MPI_Wait" || base(f) == "MPI_Test" || base(f) == "MPI_Start";
    let (count, requests) = match one {
        true => ("1", "request"),
        false if what == "Waitsome" => ("incount", "array_of_requests"),
        false => ("count", "array_of_requests"),
    };
    match what {
        "Irecv" | "Isendrecv" | "RecvInit" | "RequestFree" => vec!["request"],
        "SendInit" => vec!["request", "count", "datatype"],
        "Start" => vec![count, requests],
        "Wait" => vec![count, requests, "-", "flag"],
        "Waitany" => vec![count, requests, "-", "flag", "indx"],
        "Waitsome" => vec![count, requests, "-", "outcount", "array_of_indices"],
        "Mprobe" => vec!["message", "-", "flag"],
        "Probe" => vec!["-", "-", "flag"],
        "Mrecv" => vec!["message"],
        "Imrecv" => vec!["message", "request"],
        "FreesComm" => vec!["comm"],
        "CopiesComm" => vec!["newcomm"],
        "FreesWindow" => vec!["win"],
        "WindowGroup" => vec!["group"],
        "MakesComm" | "MakesWindow" => {
            let made = makes(f, "COMMUNICATOR").or_else(|| makes(f, "WINDOW"));
            made.map(|p| p.name.as_str()).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Api;

    #[test]
    fn arguments_follow_from_the_parameters() {
        let dir = crate::api_dir(env!("CARGO_MANIFEST_DIR").as_ref());
        let (api, words) = (Api::read(&dir).unwrap(), Words::read(&dir).unwrap());
        for (name, expected, statuses) in [
            ("MPI_Comm_rank", "Act { comm: _comm, ..Act::PLAIN }", ""),
            (
                "MPI_Send_c",
                "Act { what: What::Send, comm: _comm, dest: _dest as i32, tag: _tag as i32, ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Sendrecv",
                "Act { what: What::Sendrecv, comm: _comm, dest: _dest as i32, source: _source as i32, \
                 tag: _sendtag as i32, recvtag: _recvtag as i32, ..Act::PLAIN }",
                "status",
            ),
            (
                "MPI_Waitsome",
                "Act { what: What::Waitsome, requests: _incount, \
                 words: [_incount, _array_of_requests, 0, _outcount, _array_of_indices], ..Act::PLAIN }",
                "array_of_statuses",
            ),
            (
                "MPI_Test",
                "Act { what: What::Wait, words: [1, _request, 0, _flag, 0], ..Act::PLAIN }",
                "status",
            ),
            (
                "MPI_Ibcast",
                "Act { collective: true, comm: _comm, root: _root as i32, ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Bcast_init",
                "Act { comm: _comm, root: _root as i32, ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Comm_split",
                "Act { what: What::MakesComm, collective: true, comm: _comm, \
                 words: [_newcomm, 0, 0, 0, 0], ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Probe",
                "Act { what: What::Probe, comm: _comm, source: _source as i32, tag: _tag as i32, \
                 words: [0, 0, 0, 0, 0], ..Act::PLAIN }",
                "status",
            ),
            (
                "MPI_Exscan",
                "Act { what: What::Scan, collective: true, comm: _comm, ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Intercomm_create",
                "Act { what: What::MakesComm, collective: true, comm: _local_comm, tag: _tag as i32, \
                 words: [_newintercomm, 0, 0, 0, 0], ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Rput_c",
                "Act { what: What::Window, win: _win, dest: _target_rank as i32, ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Win_lock",
                "Act { what: What::Window, win: _win, dest: _rank as i32, tag: _lock_type as i32, \
                 ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Win_shared_query",
                "Act { what: What::Window, win: _win, ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Win_fence",
                "Act { what: What::Window, collective: true, win: _win, ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Win_start",
                "Act { what: What::WindowGroup, win: _win, words: [_group, 0, 0, 0, 0], ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Win_create_c",
                "Act { what: What::MakesWindow, collective: true, comm: _comm, \
                 words: [_win, 0, 0, 0, 0], ..Act::PLAIN }",
                "",
            ),
            (
                "MPI_Win_free",
                "Act { what: What::FreesWindow, collective: true, words: [_win, 0, 0, 0, 0], ..Act::PLAIN }",
                "",
            ),
            ("MPI_Wtime", "Act::PLAIN", ""),
        ] {
            let f = api.function(name).unwrap();
            assert_eq!(act(f, &words), expected, "{name}");
            assert_eq!(status(f), statuses, "{name}");
        }
    }
}
