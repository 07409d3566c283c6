//! The arguments of a collective call as a record.

use super::record::{Amount, Record, mix};
use crate::calls::coll::call::Call;
use crate::calls::coll::inter;
use crate::calls::coll::side::{Block, Side};
use kw_coll::{Coll, Edge};
use kw_objects::Comm;
use kw_objects::error::Res;
use kw_objects::handle::{OpH, TypeH};
use kw_objects::op::Operation;
use kw_objects::state::Tables;
use kw_objects::topology::Neighborhood;
use kw_sys::buf::Addr;
use kw_sys::reduce::Op;

/// The function's name in lower case.
pub(super) fn name(call: &Call) -> String {
    let (name, letter) = match call {
        Call::Barrier => ("barrier", ""),
        Call::Bcast(..) => ("bcast", ""),
        Call::Gather(_, r, _) => ("gather", r.letter()),
        Call::Scatter(s, ..) => ("scatter", s.letter()),
        Call::Allgather(_, r) => ("allgather", r.letter()),
        Call::Alltoall(_, r) => ("alltoall", r.letter()),
        Call::Reduce(..) => ("reduce", ""),
        Call::Everywhere(_, Coll::Scan) => ("scan", ""),
        Call::Everywhere(_, Coll::Exscan) => ("exscan", ""),
        Call::Everywhere(..) => ("allreduce", ""),
        Call::ReduceScatter(..) => ("reduce_scatter", ""),
        Call::ReduceScatterBlock(..) => ("reduce_scatter_block", ""),
    };
    format!("{name}{letter}")
}

/// A record with this rank, the call and the communicator.
pub(super) fn head(comm: &Comm, name: &str) -> Record {
    let (who, n) = if comm.is_inter() {
        let process = comm.local.peer(comm.rank);
        let who = format!(
            "rank {} of a group (process {process} of the job)",
            comm.rank
        );
        (who, comm.local.size() + comm.target().size())
    } else {
        (format!("rank {}", comm.rank), comm.local.size())
    };
    let mut record = Record::new(name, who, n);
    record.detail = match comm.name.as_str() {
        "" => format!(" on a communicator of {n} ranks"),
        name => format!(" on {name}"),
    };
    record
}

/// The ranks with which this one exchanges data.
struct Says<'a> {
    tables: &'a Tables,
    record: &'a mut Record,
    /// Index of the first of them in the record.
    base: u32,
    /// Their number.
    n: u32,
    me: u32,
    inter: bool,
    text: String,
}

/// Whether this rank is the root, and the root's number if it deals with it.
type Rooted = (bool, Option<u32>);

/// Records the arguments of a call, which are valid.
pub(super) fn arguments(tables: &Tables, comm: &Comm, call: &Call, record: &mut Record) -> Res {
    let n = comm.target().size();
    let (base, me) = match comm.is_inter() {
        false => (0, comm.rank),
        true => match inter::numbered(comm) {
            (true, me, sizes) => (sizes[0], me),
            (false, me, _) => (0, me),
        },
    };
    let mut says = Says {
        tables,
        base,
        n,
        me,
        inter: comm.is_inter(),
        text: String::new(),
        record,
    };
    says.call(call, comm.rank)?;
    let text = says.text;
    record.detail.insert_str(0, &text);
    Ok(())
}

fn amount(tables: &Tables, count: i64, datatype: TypeH) -> Res<Amount> {
    /// MPI_PACKED's name: its contents are unknown.
    const PACKED: &str = "MPI_PACKED";
    let any = type_name(tables, datatype) == PACKED;
    Ok(Amount::of(tables.layout(datatype)?, count as u64, any))
}

fn type_name(tables: &Tables, datatype: TypeH) -> String {
    match tables.datatype(datatype) {
        Ok(d) if !d.name.is_empty() => d.name.to_string(),
        _ => "elements of a derived datatype".into(),
    }
}

/// Records the data along the edges of this process; the arguments are valid.
pub(super) fn along(
    tables: &Tables,
    around: &Neighborhood,
    (give, take): (Side, Side),
    record: &mut Record,
) -> Res {
    let block = |of: Side, edge: &Edge| {
        let (count, datatype) = of.block(edge.block as usize);
        amount(tables, count, datatype)
    };
    let row = |edges: &[Edge], of: Side, rank: u32| -> Res<Amount> {
        let there = edges.iter().filter(|e| e.rank == rank);
        let amounts: Vec<Amount> = there.map(|e| block(of, e)).collect::<Res<_>>()?;
        Ok(Amount::in_row(amounts.into_iter()))
    };
    for rank in 0..record.pairs.len() as u32 {
        let pair = (
            row(&around.edges.to, give, rank)?,
            row(&around.edges.from, take, rank)?,
        );
        record.pairs[rank as usize] = pair;
    }
    if let Some(edge) = around.edges.to.first() {
        let (count, datatype) = give.block(edge.block as usize);
        let name = type_name(tables, datatype);
        record
            .detail
            .insert_str(0, &format!(" of {count} {name} to rank {}", edge.rank));
    }
    Ok(())
}

/// Whether the root sends a block to every rank, or receives one.
#[derive(Clone, Copy, PartialEq)]
enum Root {
    Gives,
    Takes,
}

impl Says<'_> {
    fn call(&mut self, call: &Call, rank: u32) -> Res {
        use Root::{Gives, Takes};
        let ranks = self.record.pairs.len() as u32;
        match *call {
            Call::Barrier => Ok(()),
            Call::Bcast(args, root) => self.rooted(root, Gives, Side::Even(args), Side::Even(args)),
            Call::Scatter(s, r, root) => self.rooted(root, Gives, s, r),
            Call::Gather(s, r, root) => self.rooted(root, Takes, r, s),
            Call::Allgather(s, r) => self.exchange(s, r, Some(rank)),
            Call::Alltoall(s, r) => self.exchange(s, r, None),
            Call::Reduce((s, _, count, datatype, op), root) => {
                let (is_root, with) = self.root(root);
                if !is_root && with.is_none() {
                    return Ok(());
                }
                self.combined((count, count), datatype, op, s)
            }
            Call::Everywhere((s, _, count, datatype, op), coll) => {
                // The standard requires MPI_IN_PLACE on all ranks of these calls, except scans.
                if coll == Coll::Allreduce {
                    self.in_place(s.is_in_place());
                }
                self.combined((count, count), datatype, op, s)
            }
            Call::ReduceScatterBlock((s, _, count, datatype, op)) => {
                self.in_place(s.is_in_place());
                let blocks = if self.inter { ranks - self.n } else { 1 };
                let all = count.saturating_mul(blocks as i64);
                self.combined((count, all), datatype, op, s)
            }
            Call::ReduceScatter((s, _, counts, datatype, op)) => {
                self.in_place(s.is_in_place());
                let blocks = ranks - if self.inter { self.n } else { 0 };
                let counts = counts.to_vec(blocks as usize);
                let total: i64 = counts.iter().sum();
                if !self.inter {
                    self.record.list = mix(&counts);
                }
                self.combined((total, total), datatype, op, s)
            }
        }
    }

    /// A block between the root and every other rank.
    fn rooted(&mut self, root: i32, way: Root, at_root: Side, elsewhere: Side) -> Res {
        let (is_root, with) = self.root(root);
        if is_root || with.is_some() {
            self.of(if is_root { at_root } else { elsewhere });
        }
        if is_root {
            for i in 0..self.n {
                let amount = self.amount(at_root.block(i as usize))?;
                let pair = self.pair(i);
                *(if way == Root::Gives {
                    &mut pair.0
                } else {
                    &mut pair.1
                }) = amount;
            }
        }
        if let (Some(root), false) = (with, elsewhere.addr().is_in_place()) {
            let amount = self.amount(elsewhere.block(0))?;
            let pair = self.pair(root);
            *(if way == Root::Gives {
                &mut pair.1
            } else {
                &mut pair.0
            }) = amount;
        }
        Ok(())
    }

    /// A block between all pairs of ranks; for some calls this rank sends the same block to all.
    fn exchange(&mut self, s: Side, r: Side, same: Option<u32>) -> Res {
        let own = if self.in_place(s.addr().is_in_place()) {
            r
        } else {
            s
        };
        self.of(own);
        for i in 0..self.n {
            let give = self.amount(own.block(same.unwrap_or(i) as usize))?;
            *self.pair(i) = (give, self.amount(r.block(i as usize))?);
        }
        Ok(())
    }

    fn amount(&self, (count, datatype): Block) -> Res<Amount> {
        amount(self.tables, count, datatype)
    }

    fn type_name(&self, datatype: TypeH) -> String {
        type_name(self.tables, datatype)
    }

    /// " of 4 MPI_INT", or " of MPI_INT" if the blocks differ.
    fn of(&mut self, side: Side) {
        let text = match side {
            Side::Even((_, count, datatype)) => format!(" of {count} {}", self.type_name(datatype)),
            Side::Listed((.., datatype)) => format!(" of {}", self.type_name(datatype)),
            Side::Apart(_) => return,
        };
        self.text.insert_str(0, &text);
    }

    fn in_place(&mut self, yes: bool) -> bool {
        if !self.inter {
            self.record.in_place = Some(yes);
        }
        if yes {
            self.text.push_str(" with MPI_IN_PLACE");
        }
        yes
    }

    fn root(&mut self, root: i32) -> Rooted {
        let (rooted, place) = match root {
            inter::ROOT if self.inter => ((true, None), Some(self.me)),
            _ if root < 0 => ((false, None), None),
            _ => {
                let place = self.base + root as u32;
                (
                    (!self.inter && place == self.me, Some(root as u32)),
                    Some(place),
                )
            }
        };
        self.record.root = place;
        let text = match root {
            inter::ROOT => "MPI_ROOT".to_string(),
            _ if root < 0 => "MPI_PROC_NULL".to_string(),
            _ => root.to_string(),
        };
        self.text.push_str(&format!(" with root {text}"));
        rooted
    }

    fn pair(&mut self, i: u32) -> &mut (Amount, Amount) {
        &mut self.record.pairs[(self.base + i) as usize]
    }

    /// " of 4 MPI_INT by MPI_SUM"; `all`: how many the ranks combine. User-defined operations have
    /// different handles on different ranks.
    fn combined(&mut self, (count, all): (i64, i64), datatype: TypeH, op: OpH, s: Addr) -> Res {
        self.record.same = self.amount((all, datatype))?;
        let (word, name) = match Op::by_handle(op.0) {
            Some(known) => (op.0 as u64, known.name().to_string()),
            None => {
                let commutes = matches!(self.tables.ops.get(op)?, Operation::User(u) if u.commutes);
                let name = if commutes {
                    "a commutative operation of the user"
                } else {
                    "an operation of the user that does not commute"
                };
                (1 << 32 | commutes as u64, name.to_string())
            }
        };
        self.record.op = word;
        let place = if s.is_in_place() && !self.text.contains("IN_PLACE") {
            " with MPI_IN_PLACE"
        } else {
            ""
        };
        let datatype = self.type_name(datatype);
        self.text
            .insert_str(0, &format!(" of {count} {datatype} by {name}{place}"));
        Ok(())
    }
}
