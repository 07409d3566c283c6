//! Artificial traces: of programs whose losses are known by construction. Tests and the hidden
//! command `kwtrace example` use them.

use prost::Message;

use crate::perfetto::{
    CounterDescriptor, DebugAnnotation, EventType, ProcessDescriptor,
    SEQ_INCREMENTAL_STATE_CLEARED, ThreadDescriptor, Trace, TracePacket, TrackDescriptor,
    TrackEvent, Value,
};

/// Source file of the calls.
fn process(rank: u32) -> u64 {
    (u64::from(rank) + 1) << 16
}

/// One call that will be written.
#[derive(Debug, Clone, Default)]
pub struct Made {
    function: &'static str,
    begin: u64,
    end: u64,
    args: Vec<(&'static str, Value)>,
    sends: Vec<u64>,
    receives: Vec<(u64, Vec<(&'static str, Value)>)>,
}

impl Made {
    /// A call of this function from `begin` to `end`, at this line.
    pub fn new(function: &'static str, begin: u64, end: u64, at: &str) -> Made {
        let made = Made {
            function,
            begin,
            end,
            ..Made::default()
        };
        made.text("at", at)
    }

    /// Adds a number as an argument.
    #[must_use]
    pub fn int(mut self, name: &'static str, value: i64) -> Made {
        self.args.push((name, Value::Int(value)));
        self
    }

    /// Adds a text as an argument.
    #[must_use]
    pub fn text(mut self, name: &'static str, value: &str) -> Made {
        self.args.push((name, Value::String(value.to_string())));
        self
    }

    /// Makes it collective number `coll` of MPI_COMM_WORLD.
    #[must_use]
    pub fn collective(self, coll: u64, bytes: u64) -> Made {
        let made = self.text("comm", "MPI_COMM_WORLD").int("comm_id", 1);
        made.int("coll", coll as i64).int("bytes", bytes as i64)
    }

    /// Makes it the start of message `flow` to a rank.
    #[must_use]
    pub fn sends(mut self, flow: u64, dest: u32, tag: i64, bytes: u64) -> Made {
        self.sends.push(flow);
        let made = self.int("dest", i64::from(dest)).int("tag", tag);
        let made = made.text("comm", "MPI_COMM_WORLD").int("comm_id", 1);
        made.int("bytes", bytes as i64)
    }

    /// Makes it the completion of message `flow` from a rank, whose receive was posted at this
    /// time.
    #[must_use]
    pub fn receives(mut self, flow: u64, source: u32, tag: i64, bytes: u64, posted: u64) -> Made {
        let args = vec![
            ("source", Value::Int(i64::from(source))),
            ("tag", Value::Int(tag)),
            ("comm", Value::String("MPI_COMM_WORLD".into())),
            ("comm_id", Value::Uint(1)),
            ("bytes", Value::Uint(bytes)),
            ("posted", Value::Uint(posted)),
        ];
        self.receives.push((flow, args));
        self
    }
}

/// A trace under construction.
#[derive(Debug, Default)]
pub struct Maker {
    trace: Trace,
}

fn annotations(args: &[(&'static str, Value)]) -> Vec<DebugAnnotation> {
    let one = |(name, value): &(&'static str, Value)| DebugAnnotation {
        name: Some(name.to_string()),
        value: Some(value.clone()),
        ..DebugAnnotation::default()
    };
    args.iter().map(one).collect()
}

impl Maker {
    /// Creates a job of this many ranks.
    pub fn new(ranks: u32) -> Maker {
        let mut maker = Maker::default();
        for rank in 0..ranks {
            maker.describe(rank);
        }
        maker
    }

    fn describe(&mut self, rank: u32) {
        let pid = Some(rank as i32 + 1);
        let process_track = TrackDescriptor {
            uuid: Some(process(rank)),
            process: Some(ProcessDescriptor {
                pid,
                process_name: Some(format!("rank {rank} on host{}", rank / 8)),
                process_labels: vec!["example".into(), format!("pid {}", 4000 + rank)],
                ..ProcessDescriptor::default()
            }),
            ..TrackDescriptor::default()
        };
        let thread = TrackDescriptor {
            uuid: Some(process(rank) + 1),
            parent_uuid: Some(process(rank)),
            thread: Some(ThreadDescriptor {
                pid,
                tid: Some(4000 + rank as i32),
                thread_name: Some("main".into()),
            }),
            ..TrackDescriptor::default()
        };
        let counter = TrackDescriptor {
            uuid: Some(process(rank) + 0x100),
            parent_uuid: Some(process(rank)),
            name: Some("unexpected messages".into()),
            counter: Some(CounterDescriptor::default()),
            ..TrackDescriptor::default()
        };
        for (i, track) in [process_track, thread, counter].into_iter().enumerate() {
            self.trace.packet.push(TracePacket {
                trusted_packet_sequence_id: Some(1 + rank * 256),
                sequence_flags: (i == 0).then_some(SEQ_INCREMENTAL_STATE_CLEARED),
                track_descriptor: Some(track),
                ..TracePacket::default()
            });
        }
    }

    fn event(&mut self, rank: u32, time: u64, event: TrackEvent) {
        self.trace.packet.push(TracePacket {
            timestamp: Some(time),
            trusted_packet_sequence_id: Some(1 + rank * 256),
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    /// Adds a call of this rank; its calls must be in the order of their times, and not nested.
    pub fn call(&mut self, rank: u32, made: Made) {
        let track_uuid = Some(process(rank) + 1);
        let begin = TrackEvent {
            r#type: Some(EventType::SliceBegin.into()),
            track_uuid,
            name: Some(made.function.into()),
            categories: vec!["mpi".into()],
            debug_annotations: annotations(&made.args),
            flow_ids: made.sends,
            ..TrackEvent::default()
        };
        self.event(rank, made.begin, begin);
        for (flow, args) in made.receives {
            let received = TrackEvent {
                r#type: Some(EventType::Instant.into()),
                track_uuid,
                name: Some("received".into()),
                categories: vec!["message".into()],
                debug_annotations: annotations(&args),
                terminating_flow_ids: vec![flow],
                ..TrackEvent::default()
            };
            self.event(rank, made.end, received);
        }
        let end = TrackEvent {
            r#type: Some(EventType::SliceEnd.into()),
            track_uuid,
            ..TrackEvent::default()
        };
        self.event(rank, made.end, end);
    }

    /// Adds a value of this rank's counter.
    pub fn counter(&mut self, rank: u32, time: u64, value: i64) {
        let event = TrackEvent {
            r#type: Some(EventType::Counter.into()),
            track_uuid: Some(process(rank) + 0x100),
            counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.event(rank, time, event);
    }

    /// Adds an MPI_Pcontrol of this rank.
    pub fn phase(&mut self, rank: u32, time: u64, level: i64) {
        let event = TrackEvent {
            r#type: Some(EventType::Instant.into()),
            track_uuid: Some(process(rank) + 1),
            name: Some("MPI_Pcontrol".into()),
            categories: vec!["user".into()],
            debug_annotations: annotations(&[("level", Value::Int(level))]),
            ..TrackEvent::default()
        };
        self.event(rank, time, event);
    }

    /// Makes this rank receive from another one in the topology of MPI_COMM_WORLD.
    pub fn neighbor(&mut self, rank: u32, source: u32) {
        let args = [
            ("comm_id", Value::Uint(1)),
            ("source", Value::Int(source.into())),
        ];
        let event = TrackEvent {
            r#type: Some(EventType::Instant.into()),
            track_uuid: Some(process(rank)),
            name: Some("neighbour".into()),
            categories: vec!["topology".into()],
            debug_annotations: annotations(&args),
            ..TrackEvent::default()
        };
        self.event(rank, 0, event);
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        self.trace.encode_to_vec()
    }

    /// Reads the trace from the bytes.
    pub fn trace(&self) -> crate::model::Trace {
        // a trace that was just made is whole
        crate::read::read(self.bytes().as_slice()).expect("a trace that was made is a trace")
    }
}

/// A ring: in each round every rank computes 100 us, sends to the next rank, and receives from the
/// previous one. Rank 0 computes 400 us instead, so rank 1 waits 300 us more in each round, and all
/// ranks after it when the delay has gone round. At the end there is a reduction.
pub fn ring(ranks: u32, rounds: u32) -> Vec<u8> {
    let mut maker = Maker::new(ranks);
    let n = ranks as usize;
    let mut now = vec![0u64; n];
    for round in 0..u64::from(rounds) {
        let mut sent = vec![0; n];
        for r in 0..n {
            now[r] += if r == 0 { 400_000 } else { 100_000 };
            sent[r] = now[r];
            let (flow, dest) = (round * n as u64 + r as u64 + 1, (r as u32 + 1) % ranks);
            let send = Made::new("MPI_Send", now[r], now[r] + 2_000, "ring.c:20 (main)");
            maker.call(r as u32, send.sends(flow, dest, 7, 4096));
            now[r] += 2_000;
        }
        for r in 0..n {
            let from = (r + n - 1) % n;
            let flow = round * n as u64 + from as u64 + 1;
            let (begin, came) = (now[r], sent[from] + 5_000);
            now[r] = came.max(begin + 1_000);
            let receive = Made::new("MPI_Recv", begin, now[r], "ring.c:21 (main)");
            let receive = receive.int("source", from as i64).int("tag", 7);
            maker.call(
                r as u32,
                receive.receives(flow, from as u32, 7, 4096, begin),
            );
        }
    }
    let last = now.iter().max().copied().unwrap_or(0) + 8_000;
    for r in 0..n {
        let call = Made::new("MPI_Allreduce", now[r], last, "ring.c:30 (main)");
        maker.call(r as u32, call.collective(0, 8).text("op", "MPI_SUM"));
    }
    maker.bytes()
}

/// A stencil on a grid of ranks: in each step four halos, every fourth step a reduction, every 32nd
/// step a broadcast of rank 0, which first writes a file. One rank has more work than the others.
#[derive(Debug, Clone, Copy)]
pub struct Stencil {
    /// Ranks: columns times rows.
    pub grid: (u32, u32),
    /// Steps.
    pub steps: u32,
    /// Nanoseconds of work in a step.
    pub work: u64,
    /// The rank with more work.
    pub slow: u32,
    /// Additional work in percent.
    pub more: u64,
}

/// A sequence of pseudorandom numbers, the same every time.
struct Noise(u64);

impl Noise {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below.max(1)
    }
}

const HALO: u64 = 32_768;
/// Nanoseconds from a send to the arrival.
const LATENCY: u64 = 12_000;

impl Stencil {
    fn neighbors(&self, rank: u32) -> [u32; 4] {
        let (w, h) = self.grid;
        let (x, y) = (rank % w, rank / w);
        let at = |x: u32, y: u32| (y % h) * w + x % w;
        [
            at(x + w - 1, y),
            at(x + 1, y),
            at(x, y + h - 1),
            at(x, y + 1),
        ]
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let ranks = self.grid.0 * self.grid.1;
        let mut maker = Maker::new(ranks);
        let mut noise = Noise(19);
        let mut now = vec![0u64; ranks as usize];
        let mut coll = 0;
        self.together(
            &mut maker,
            &mut now,
            "MPI_Init",
            "stencil.c:88 (main)",
            &mut coll,
        );
        for step in 0..self.steps {
            if step % 32 == 0 {
                self.parameters(&mut maker, &mut now, &mut coll, step);
            }
            self.step(&mut maker, &mut now, &mut noise, step);
            if step % 4 == 3 {
                self.together(
                    &mut maker,
                    &mut now,
                    "MPI_Allreduce",
                    "stencil.c:131 (residual)",
                    &mut coll,
                );
            }
        }
        self.together(
            &mut maker,
            &mut now,
            "MPI_Barrier",
            "stencil.c:170 (main)",
            &mut coll,
        );
        maker.bytes()
    }

    /// Rank 0 writes, then broadcasts the parameters.
    fn parameters(&self, maker: &mut Maker, now: &mut [u64], coll: &mut u64, step: u32) {
        maker.phase(0, now[0], i64::from(step / 32));
        now[0] += self.work * 2;
        let root = now[0];
        for (rank, now) in now.iter_mut().enumerate() {
            let begin = *now;
            *now = begin.max(root) + 4_000 + 500 * rank as u64 % 4_000;
            let call = Made::new("MPI_Bcast", begin, *now, "stencil.c:104 (parameters)");
            maker.call(rank as u32, call.collective(*coll, 1024).int("root", 0));
        }
        *coll += 1;
    }

    fn step(&self, maker: &mut Maker, now: &mut [u64], noise: &mut Noise, step: u32) {
        let ranks = now.len();
        let mut posted = vec![0; ranks];
        let mut sent = vec![[0u64; 4]; ranks];
        for r in 0..ranks {
            posted[r] = now[r];
            for (side, from) in self.neighbors(r as u32).into_iter().enumerate() {
                let call = Made::new(
                    "MPI_Irecv",
                    now[r],
                    now[r] + 300,
                    "stencil.c:118 (exchange)",
                );
                let call = call.int("source", i64::from(from)).int("tag", side as i64);
                maker.call(
                    r as u32,
                    call.text("comm", "MPI_COMM_WORLD")
                        .int("bytes", HALO as i64),
                );
                now[r] += 500;
            }
            let own = self.work * 8 / 10 + noise.next(self.work * 4 / 10);
            now[r] += if r as u32 == self.slow {
                own + own * self.more / 100
            } else {
                own
            };
            for (side, to) in self.neighbors(r as u32).into_iter().enumerate() {
                sent[r][side] = now[r];
                let call = Made::new(
                    "MPI_Isend",
                    now[r],
                    now[r] + 1_500,
                    "stencil.c:121 (exchange)",
                );
                let flow = self.flow(step, r, side);
                // data sent to the left arrives from the right
                maker.call(r as u32, call.sends(flow, to, (side ^ 1) as i64, HALO));
                now[r] += 1_700;
            }
        }
        for r in 0..ranks {
            let begin = now[r];
            let neighbors = self.neighbors(r as u32);
            let came = |side: usize| sent[neighbors[side] as usize][side ^ 1] + LATENCY;
            let last = (0..4).map(came).max().unwrap_or(0);
            now[r] = last.max(begin + 2_000);
            let mut call = Made::new("MPI_Waitall", begin, now[r], "stencil.c:124 (exchange)")
                .int("requests", 8);
            for (side, from) in neighbors.into_iter().enumerate() {
                let flow = self.flow(step, from as usize, side ^ 1);
                call = call.receives(flow, from, side as i64, HALO, posted[r]);
            }
            maker.call(r as u32, call);
            if step % 8 == 0 {
                maker.counter(r as u32, now[r], noise.next(5) as i64);
            }
        }
    }

    fn flow(&self, step: u32, rank: usize, side: usize) -> u64 {
        let ranks = u64::from(self.grid.0 * self.grid.1);
        1 + (u64::from(step) * ranks + rank as u64) * 4 + side as u64
    }

    /// A collective that all leave at the same time.
    fn together(
        &self,
        maker: &mut Maker,
        now: &mut [u64],
        function: &'static str,
        at: &'static str,
        coll: &mut u64,
    ) {
        let last = now.iter().max().copied().unwrap_or(0) + 15_000;
        for (rank, now) in now.iter_mut().enumerate() {
            let call = Made::new(function, *now, last + rank as u64 * 100 % 3_000, at);
            *now = last + rank as u64 * 100 % 3_000;
            let call = match function {
                "MPI_Init" => call,
                "MPI_Allreduce" => call.collective(*coll, 8).text("op", "MPI_MAX"),
                _ => call.collective(*coll, 0),
            };
            maker.call(rank as u32, call);
        }
        if function != "MPI_Init" {
            *coll += 1;
        }
    }
}
