//! The arguments of a collective call as a record.

use super::record::{Amount, Record, mix};
use crate::calls::coll::call::Call;
use crate::calls::coll::inter;
use crate::calls::coll::plan::{Args, ListArgs};
use crate::error::Res;
use crate::handle::{OpH, TypeH};
use crate::objects::Comm;
use crate::objects::op::Operation;
use crate::objects::topology::Neighborhood;
use crate::state::Tables;
use kw_coll::{Coll, Edge};
use kw_sys::args::{Array, Ints};
use kw_sys::reduce::Op;

/// The function's name in lower case.
pub(super) fn name(call: &Call) -> &'static str {
    match call {
        Call::Barrier => "barrier",
        Call::Bcast(..) => "bcast",
        Call::Gather(..) => "gather",
        Call::Gatherv(..) => "gatherv",
        Call::Scatter(..) => "scatter",
        Call::Scatterv(..) => "scatterv",
        Call::Allgather(..) => "allgather",
        Call::Allgatherv(..) => "allgatherv",
        Call::Alltoall(..) => "alltoall",
        Call::Alltoallv(..) => "alltoallv",
        Call::Alltoallw(..) => "alltoallw",
        Call::Reduce(..) => "reduce",
        Call::Everywhere(_, Coll::Scan) => "scan",
        Call::Everywhere(_, Coll::Exscan) => "exscan",
        Call::Everywhere(..) => "allreduce",
        Call::ReduceScatter(..) => "reduce_scatter",
        Call::ReduceScatterBlock(..) => "reduce_scatter_block",
    }
}

/// A record that says who calls what on which communicator.
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

/// This rank among those that data go to and come from.
struct Says<'a> {
    tables: &'a Tables,
    record: &'a mut Record,
    /// Place of the first of them in the record.
    base: u32,
    /// How many there are.
    n: u32,
    me: u32,
    inter: bool,
    text: String,
}

/// Whether this rank is the root, and the root's number if it deals with it.
type Rooted = (bool, Option<u32>);

/// Says what the arguments of a call say; they have been found valid.
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
    /// MPI_PACKED's name: what it holds is not known.
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

/// How many elements of which datatype a block of a neighbourhood collective has.
pub(in crate::calls::coll) type Block = (i64, TypeH);

/// Says what goes along the edges of this process; the arguments have been found valid.
pub(super) fn along(
    tables: &Tables,
    around: &Neighborhood,
    (give, take): (&dyn Fn(usize) -> Block, &dyn Fn(usize) -> Block),
    record: &mut Record,
) -> Res {
    let block = |of: &dyn Fn(usize) -> Block, edge: &Edge| {
        let (count, datatype) = of(edge.block as usize);
        amount(tables, count, datatype)
    };
    let row = |edges: &[Edge], of, rank: u32| -> Res<Amount> {
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
        let (count, datatype) = give(edge.block as usize);
        let name = type_name(tables, datatype);
        record
            .detail
            .insert_str(0, &format!(" of {count} {name} to rank {}", edge.rank));
    }
    Ok(())
}

impl Says<'_> {
    fn call(&mut self, call: &Call, rank: u32) -> Res {
        match *call {
            Call::Barrier => Ok(()),
            Call::Bcast(args, root) => {
                let rooted = self.root(root);
                if rooted.0 || rooted.1.is_some() {
                    self.of(args)?;
                }
                self.give_out(
                    rooted,
                    |s, _| s.amount(args.1, args.2),
                    |s| s.amount(args.1, args.2),
                )
            }
            Call::Scatter(s, r, root) => {
                let rooted = self.root(root);
                self.of_either(rooted.0, s, r)?;
                let keeps = r.0.is_in_place();
                self.give_out(
                    rooted,
                    |says, _| says.amount(s.1, s.2),
                    |says| says.unless(keeps, r),
                )
            }
            Call::Scatterv(s, r, root) => {
                let rooted = self.root(root);
                self.of_either(rooted.0, (s.0, 0, s.3), r)?;
                let keeps = r.0.is_in_place();
                self.give_out(
                    rooted,
                    |says, i| says.listed(s, i),
                    |says| says.unless(keeps, r),
                )
            }
            Call::Gather(s, r, root) => {
                let rooted = self.root(root);
                self.of_either(rooted.0, r, s)?;
                let keeps = s.0.is_in_place();
                self.collect(
                    rooted,
                    |says, _| says.amount(r.1, r.2),
                    |says| says.unless(keeps, s),
                )
            }
            Call::Gatherv(s, r, root) => {
                let rooted = self.root(root);
                self.of_either(rooted.0, (r.0, 0, r.3), s)?;
                let keeps = s.0.is_in_place();
                self.collect(
                    rooted,
                    |says, i| says.listed(r, i),
                    |says| says.unless(keeps, s),
                )
            }
            Call::Allgather(s, r) => {
                let own = if self.in_place(s.0.is_in_place()) {
                    r
                } else {
                    s
                };
                self.of(own)?;
                let give = self.amount(own.1, own.2)?;
                let take = self.amount(r.1, r.2)?;
                self.exchange(|_, _| Ok((give, take)))
            }
            Call::Allgatherv(s, r) => {
                let give = if self.in_place(s.0.is_in_place()) {
                    self.listed(r, rank)?
                } else {
                    self.of(s)?;
                    self.amount(s.1, s.2)?
                };
                self.exchange(|says, i| Ok((give, says.listed(r, i)?)))
            }
            Call::Alltoall(s, r) => {
                let own = if self.in_place(s.0.is_in_place()) {
                    r
                } else {
                    s
                };
                self.of(own)?;
                let give = self.amount(own.1, own.2)?;
                let take = self.amount(r.1, r.2)?;
                self.exchange(|_, _| Ok((give, take)))
            }
            Call::Alltoallv(s, r) => {
                let own = if self.in_place(s.0.is_in_place()) {
                    r
                } else {
                    s
                };
                self.text = format!(" of {}", self.type_name(own.3));
                self.exchange(|says, i| Ok((says.listed(own, i)?, says.listed(r, i)?)))
            }
            Call::Alltoallw(s, r) => {
                let own = if self.in_place(s.0.is_in_place()) {
                    r
                } else {
                    s
                };
                let one = |says: &Says, (_, counts, _, types): (_, Ints, Ints, Array<TypeH>), i| {
                    says.amount(Ints::get(counts, i as usize), types.get(i as usize))
                };
                self.exchange(|says, i| Ok((one(says, own, i)?, one(says, r, i)?)))
            }
            Call::Reduce((s, _, count, datatype, op), root) => {
                let (is_root, with) = self.root(root);
                if !is_root && with.is_none() {
                    return Ok(());
                }
                self.same(count as u64, datatype)?;
                self.combined(count, datatype, op, s.is_in_place())
            }
            Call::Everywhere((s, _, count, datatype, op), coll) => {
                // The standard wants MPI_IN_PLACE at all ranks of these, but of scans.
                if coll == Coll::Allreduce {
                    self.in_place(s.is_in_place());
                }
                self.same(count as u64, datatype)?;
                self.combined(count, datatype, op, s.is_in_place())
            }
            Call::ReduceScatterBlock((s, _, count, datatype, op)) => {
                self.in_place(s.is_in_place());
                let ranks = if self.inter {
                    self.record.pairs.len() as u32 - self.n
                } else {
                    1
                };
                self.same(count as u64 * ranks as u64, datatype)?;
                self.combined(count, datatype, op, s.is_in_place())
            }
            Call::ReduceScatter((s, _, counts, datatype, op)) => {
                self.in_place(s.is_in_place());
                let ranks = self.record.pairs.len() as u32 - if self.inter { self.n } else { 0 };
                let counts = counts.to_vec(ranks as usize);
                let total: i64 = counts.iter().sum();
                self.same(total as u64, datatype)?;
                if !self.inter {
                    self.record.list = mix(&counts);
                }
                self.combined(total, datatype, op, s.is_in_place())
            }
        }
    }

    fn amount(&self, count: i64, datatype: TypeH) -> Res<Amount> {
        amount(self.tables, count, datatype)
    }

    fn listed(&self, (_, counts, _, datatype): ListArgs, i: u32) -> Res<Amount> {
        self.amount(counts.get(i as usize), datatype)
    }

    fn unless(&self, in_place: bool, (_, count, datatype): Args) -> Res<Amount> {
        if in_place {
            return Ok(Amount::UNSAID);
        }
        self.amount(count, datatype)
    }

    fn type_name(&self, datatype: TypeH) -> String {
        type_name(self.tables, datatype)
    }

    /// " of 4 MPI_INT"
    fn of(&mut self, (_, count, datatype): Args) -> Res {
        let name = self.type_name(datatype);
        self.text.insert_str(0, &format!(" of {count} {name}"));
        Ok(())
    }

    /// The buffer that means something at a root, or elsewhere.
    fn of_either(&mut self, is_root: bool, at_root: Args, elsewhere: Args) -> Res {
        let (_, count, datatype) = if is_root { at_root } else { elsewhere };
        if count == 0 {
            return Ok(());
        }
        self.of((at_root.0, count, datatype))
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

    fn exchange(&mut self, what: impl Fn(&Says, u32) -> Res<(Amount, Amount)>) -> Res {
        for i in 0..self.n {
            *self.pair(i) = what(self, i)?;
        }
        Ok(())
    }

    /// The root gives everybody something, and everybody takes it.
    fn give_out(
        &mut self,
        (is_root, with): Rooted,
        give: impl Fn(&Says, u32) -> Res<Amount>,
        take: impl Fn(&Says) -> Res<Amount>,
    ) -> Res {
        if is_root {
            for i in 0..self.n {
                self.pair(i).0 = give(self, i)?;
            }
        }
        if let Some(root) = with {
            self.pair(root).1 = take(self)?;
        }
        Ok(())
    }

    fn collect(
        &mut self,
        (is_root, with): Rooted,
        take: impl Fn(&Says, u32) -> Res<Amount>,
        give: impl Fn(&Says) -> Res<Amount>,
    ) -> Res {
        if is_root {
            for i in 0..self.n {
                self.pair(i).1 = take(self, i)?;
            }
        }
        if let Some(root) = with {
            self.pair(root).0 = give(self)?;
        }
        Ok(())
    }

    fn same(&mut self, count: u64, datatype: TypeH) -> Res {
        self.record.same = self.amount(count as i64, datatype)?;
        Ok(())
    }

    /// " of 4 MPI_INT by MPI_SUM". Operations of the user have other handles at other ranks.
    fn combined(&mut self, count: i64, datatype: TypeH, op: OpH, in_place: bool) -> Res {
        let (word, name) = match Op::by_handle(op.0) {
            Some(known) => (op.0 as u64, known.name().to_string()),
            None => {
                let commutes = matches!(self.tables.op(op)?, Operation::User(u) if u.commutes);
                let name = if commutes {
                    "a commutative operation of the user"
                } else {
                    "an operation of the user that does not commute"
                };
                (1 << 32 | commutes as u64, name.to_string())
            }
        };
        self.record.op = word;
        let place = if in_place && !self.text.contains("IN_PLACE") {
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
