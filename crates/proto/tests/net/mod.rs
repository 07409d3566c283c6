//! Machines over a simulated network: frames of each pair arrive in order but otherwise when the
//! test likes, in pieces or whole.

use kw_base::Peer;
use kw_base::counters::Way;
use kw_proto::endpoint::{Action, Found, FrameBody, Memory, ReqId};
use kw_proto::machine::Machine;
use kw_proto::matching::Pattern;
use kw_proto::p2p::Target;
use kw_proto::p2p::table::Choice;
use kw_proto::wire::{Header, KEY_LEN, Kind, RemoteRegion};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

#[derive(Clone, Debug)]
pub struct Mem(pub Rc<RefCell<Vec<u8>>>);

impl Mem {
    pub fn new(bytes: Vec<u8>) -> Mem {
        Mem(Rc::new(RefCell::new(bytes)))
    }
    /// Half of all memory has a key.
    fn key(&self) -> [u8; KEY_LEN] {
        [7 * (self.len() % 2) as u8; KEY_LEN]
    }
    pub fn bytes(&self) -> Vec<u8> {
        self.0.borrow().clone()
    }
}

impl Memory for Mem {
    fn len(&self) -> u64 {
        self.0.borrow().len() as u64
    }
    fn region(&self) -> Option<RemoteRegion> {
        // Leaks a reference so that "remote memory" can be found again by its number.
        let address = Rc::into_raw(self.0.clone()) as u64;
        Some(RemoteRegion {
            address,
            key: self.key(),
        })
    }
    fn alloc(len: u64) -> Option<Mem> {
        Some(Mem::new(vec![0; len as usize]))
    }
    fn nothing() -> Mem {
        Mem::new(Vec::new())
    }
    fn write(&self, at: u64, data: &[u8]) {
        let mut m = self.0.borrow_mut();
        let n = data.len().min(m.len().saturating_sub(at as usize));
        m[at as usize..at as usize + n].copy_from_slice(&data[..n]);
    }
    fn copy_to(&self, to: &Mem, len: u64) {
        to.write(0, &self.0.borrow()[..len as usize]);
    }
}

pub struct Frame {
    from: usize,
    head: Header,
    body: Vec<u8>,
    /// For the sender: the request whose payload leaves its memory when this arrives.
    sends: Option<ReqId>,
}

pub struct Net {
    pub n: usize,
    pub machines: Vec<Machine<Mem>>,
    pub wires: Vec<VecDeque<Frame>>,
    destination: Vec<Option<(Target, Mem, Vec<u8>)>>,
    get_works: bool,
    /// Frames leave the sender's memory only when they arrive.
    pub slow: bool,
    /// The context in which messages are sent, if a test asks for it.
    #[allow(dead_code)]
    pub context: u32,
    pub sources: Vec<(u64, Mem)>,
}

#[allow(dead_code)] // Not every test that shares the network needs all of it.
impl Net {
    pub fn new(n: usize, choice: Choice, get_works: bool) -> Net {
        Net {
            n,
            machines: (0..n).map(|_| Machine::new(n, choice)).collect(),
            wires: (0..n * n).map(|_| VecDeque::new()).collect(),
            destination: (0..n * n).map(|_| None).collect(),
            get_works,
            slow: false,
            context: 4,
            sources: Vec::new(),
        }
    }

    /// The next frame of a pair, taken as the message of a receive past the queues, if the receiver
    /// may and it fits.
    pub fn take_next(&mut self, me: usize, from: usize, want: Pattern, buf: &Mem) -> Option<Found> {
        let (wire, peer) = (from * self.n + me, Peer(from as u32));
        if self.destination[wire].is_some()
            || !self.machines[me].receiver().may_take(peer, buf.len())
        {
            return None;
        }
        let frame = self.wires[wire].front()?;
        let found = self.machines[me]
            .receiver()
            .take_direct(peer, want, buf.len(), &frame.head)?;
        buf.write(0, &frame.body);
        if let Some(req) = frame.sends {
            self.machines[from].sender().on_sent(req);
            self.release(from);
        }
        self.wires[wire].pop_front();
        Some(found)
    }

    /// Knows a path to every peer.
    pub fn open(mut self, choice: Choice) -> Net {
        for m in &mut self.machines {
            for peer in 0..self.n {
                m.endpoint
                    .peers
                    .set_choice(Peer(peer as u32), Way::Other, choice);
            }
        }
        self
    }

    pub fn act(&mut self, me: usize) {
        for action in std::mem::take(&mut self.machines[me].endpoint.out.actions) {
            match action {
                Action::Frame {
                    to,
                    head,
                    body,
                    req,
                } => {
                    let body = match body {
                        FrameBody::None => Vec::new(),
                        FrameBody::Extension(b) => b.to_vec(),
                        FrameBody::Keyed(b) => b.to_vec(),
                        FrameBody::Payload { buf, len } => buf.bytes()[..len as usize].to_vec(),
                    };
                    assert_eq!(body.len() as u64, head.body_len());
                    self.wires[me * self.n + to.idx()].push_back(Frame {
                        from: me,
                        head,
                        body,
                        sends: req.filter(|_| self.slow),
                    });
                    if let Some(req) = req.filter(|_| !self.slow) {
                        self.machines[me].sender().on_sent(req);
                    }
                }
                Action::Get {
                    region,
                    into,
                    len,
                    req,
                    ..
                } => {
                    let source = self
                        .sources
                        .iter()
                        .find(|(a, _)| *a == region.address)
                        .map(|(_, m)| m.clone());
                    let key = source.as_ref().map(Mem::key);
                    assert!(
                        key.is_none_or(|key| key == region.key),
                        "the key of that memory"
                    );
                    if let (true, Some(m)) = (self.get_works, source) {
                        m.copy_to(&into, len);
                        self.machines[me].receiver().on_got(req, true);
                    } else {
                        self.machines[me].receiver().on_got(req, false);
                    }
                }
                Action::Event(_) | Action::Locate(_) | Action::Reprice(_) => {}
            }
        }
        if !self.machines[me].endpoint.out.actions.is_empty() {
            self.act(me);
        }
    }

    /// Delivers one frame (or the rest of one) of a pair; `false` when there is none.
    pub fn step(&mut self, wire: usize, piecewise: bool) -> bool {
        let me = wire % self.n;
        if let Some((target, buf, body)) = self.destination[wire].take() {
            buf.write(0, &body);
            self.machines[me].receiver().on_body(target);
            self.act(me);
            self.release(me);
            return true;
        }
        let Some(f) = self.wires[wire].pop_front() else {
            return false;
        };
        if let Some(req) = f.sends {
            self.machines[f.from].sender().on_sent(req);
            self.release(f.from);
        }
        let payload = matches!(
            f.head.kind,
            Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Write
        );
        if payload && piecewise {
            let l = self.machines[me]
                .receiver()
                .on_head(Peer(f.from as u32), &f.head)
                .unwrap();
            self.destination[wire] = Some((l.target, l.buf, f.body));
        } else {
            self.machines[me]
                .on_frame(Peer(f.from as u32), &f.head, &f.body)
                .unwrap();
        }
        self.act(me);
        self.release(me);
        true
    }

    /// The owner's work after each poll of its paths, repeated while it has an effect.
    fn release(&mut self, me: usize) {
        while self.machines[me].p2p.sending.is_stalled()
            && self.machines[me].sender().send_kept_back()
        {
            self.act(me);
        }
    }

    /// Delivers everything that is in flight, and its consequences.
    pub fn deliver_all(&mut self) {
        let mut turn = 0;
        while self.busy() {
            turn += 1;
            self.step(turn % (self.n * self.n), turn % 3 == 0);
            assert!(turn < 10_000_000, "the network never empties");
        }
    }

    /// Every rank waits for long, and everything that is in flight arrives.
    pub fn offer_deferred(&mut self) {
        let mut any = true;
        while std::mem::take(&mut any) {
            for me in 0..self.n {
                any |= self.machines[me].sender().offer_deferred();
                self.act(me);
            }
            self.deliver_all();
        }
    }

    pub fn busy(&self) -> bool {
        self.wires.iter().any(|w| !w.is_empty()) || self.destination.iter().any(|l| l.is_some())
    }
}
