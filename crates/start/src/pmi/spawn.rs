//! How a rank asks its launcher to start more processes in PMI-1 and PMI-2. They form a job of
//! their own.

use super::PmiError;
use super::frame;

/// Key under which a spawned job finds the name of its parent's key-value space (PMI-1).
pub const PARENT_KEY: &str = "kw_parent";

/// Processes to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// The program, as the launcher finds it.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Number of processes.
    pub count: u32,
}

impl Spawn {
    /// PMI-1's command, which has a line for each word. The new job can read the name of the
    /// `parent`'s key-value space under [`PARENT_KEY`]: one launcher (Intel MPI 2021.18) fails when
    /// there is nothing to read.
    pub(super) fn lines(&self, parent: &str) -> Result<String, PmiError> {
        let mut out = format!(
            "mcmd=spawn\nnprocs={}\nexecname={}\ntotspawns=1\nspawnssofar=1\n",
            self.count,
            one_line(&self.program)?
        );
        for (arg, i) in self.args.iter().zip(1..) {
            out += &format!("arg{i}={}\n", one_line(arg)?);
        }
        out += &format!(
            "argcnt={}\npreput_num=1\npreput_key_0={PARENT_KEY}\npreput_val_0={parent}\ninfo_num=0\nendcmd\n",
            self.args.len()
        );
        Ok(out)
    }

    /// PMI-2's frame.
    pub(super) fn frame(&self) -> Result<String, PmiError> {
        let (count, argc) = (self.count.to_string(), self.args.len().to_string());
        let names: Vec<String> = (0..self.args.len()).map(|i| format!("argv{i}")).collect();
        let mut words = vec![
            ("ncmds", "1"),
            ("preputcount", "0"),
            ("subcmd", &self.program),
            ("maxprocs", &count),
            ("argc", &argc),
        ];
        words.extend(
            names
                .iter()
                .map(String::as_str)
                .zip(self.args.iter().map(String::as_str)),
        );
        words.push(("infokeycount", "0"));
        frame::write("spawn", &words)
    }
}

fn one_line(word: &str) -> Result<&str, PmiError> {
    match word.is_empty() || word.contains(['\n', '\0']) {
        true => Err(PmiError::Unspeakable(word.into())),
        false => Ok(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Spawn {
        Spawn {
            program: "/bin/a b".into(),
            args: vec!["x=1".into(), "y z;".into()],
            count: 3,
        }
    }

    #[test]
    fn each_word_has_its_line() {
        let lines = "mcmd=spawn\nnprocs=3\nexecname=/bin/a b\ntotspawns=1\nspawnssofar=1\narg1=x=1\narg2=y z;\n\
                     argcnt=2\npreput_num=1\npreput_key_0=kw_parent\npreput_val_0=job 7\ninfo_num=0\nendcmd\n";
        assert_eq!(two().lines("job 7").unwrap(), lines);
        for bad in ["", "a\nb", "a\0b"] {
            let spawn = Spawn {
                program: bad.into(),
                ..two()
            };
            assert!(spawn.lines("job").is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_frame_has_them_as_words() {
        let frame = two().frame().unwrap();
        let words = "cmd=spawn;ncmds=1;preputcount=0;subcmd=/bin/a b;maxprocs=3;argc=2;argv0=x=1;argv1=y z;;;infokeycount=0;";
        assert_eq!(frame, format!("{:6}{words}", words.len()));
    }
}
