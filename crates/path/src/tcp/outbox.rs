//! Frames that the socket did not take yet, in order.

use crate::contract::{Body, Sent};
use kw_core::wire::{HEADER_LEN, Header};
use kw_sys::buf::Buf;
use kw_sys::tcp::Sock;
use std::collections::VecDeque;
use std::io;

/// What remains of a payload up to this size is copied, and its sender is done with it.
const COPIED: u64 = 4 << 10;
/// Copies share a piece of memory up to this size.
const SHARED: usize = 64 << 10;

/// One piece of what is to be sent.
#[derive(Debug)]
enum Item {
    /// Bytes of our own; the first `done` are sent.
    Bytes { data: Vec<u8>, done: usize },
    /// Payload of somebody, read when it is sent.
    Payload {
        buf: Buf,
        at: u64,
        end: u64,
        cookie: u64,
    },
}

/// The queue of one connection.
#[derive(Debug, Default)]
pub struct Outbox {
    items: VecDeque<Item>,
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn clear(&mut self) {
        self.items.clear();
    }

    /// Queues what follows the first `skip` bytes of a frame.
    pub fn push(&mut self, head: &Header, body: Body<'_>, skip: u64, cookie: u64) -> Sent {
        let mut from_body = skip;
        if skip < HEADER_LEN as u64 {
            self.copy(&head.encode()[skip as usize..]);
            from_body = 0;
        } else {
            from_body -= HEADER_LEN as u64;
        }
        match body {
            Body::None => Sent::Done,
            Body::Bytes(bytes) => {
                self.copy(&bytes[from_body as usize..]);
                Sent::Done
            }
            Body::Payload { buf, from, len } => {
                self.payload(buf, from + from_body, from + len, cookie)
            }
        }
    }

    fn payload(&mut self, buf: &Buf, at: u64, end: u64, cookie: u64) -> Sent {
        if at == end {
            return Sent::Done;
        }
        if end - at <= COPIED {
            let place = self.room((end - at) as usize);
            buf.read(at, place);
            return Sent::Done;
        }
        self.items.push_back(Item::Payload {
            buf: buf.clone(),
            at,
            end,
            cookie,
        });
        Sent::Queued
    }

    fn copy(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.room(bytes.len()).copy_from_slice(bytes);
        }
    }

    /// Room for `n` more bytes of our own at the end of the queue.
    fn room(&mut self, n: usize) -> &mut [u8] {
        let fits =
            matches!(self.items.back(), Some(Item::Bytes { data, .. }) if data.len() + n <= SHARED);
        if !fits {
            self.items.push_back(Item::Bytes {
                data: Vec::new(),
                done: 0,
            });
        }
        match self.items.back_mut() {
            Some(Item::Bytes { data, .. }) => {
                let at = data.len();
                data.resize(at + n, 0);
                &mut data[at..]
            }
            // The last item is bytes: either it was, or it has just been made so.
            _ => unreachable!("the last item of the outbox is bytes"),
        }
    }

    /// Sends once from the front: the bytes there and the payload behind them in one call. Returns how many bytes went,
    /// zero when the socket is full, and calls `sent` for every payload that is through.
    pub fn send_some(
        &mut self,
        sock: &Sock,
        chunk: u64,
        mut sent: impl FnMut(u64),
    ) -> io::Result<usize> {
        let n = match (self.items.front(), self.items.get(1)) {
            (Some(Item::Bytes { data, done }), Some(Item::Payload { buf, at, end, .. })) => {
                sock.send_with(&data[*done..], buf, *at, (end - at).min(chunk))?
            }
            (Some(Item::Bytes { data, done }), _) => sock.send(&data[*done..])?,
            (Some(Item::Payload { buf, at, end, .. }), _) => {
                sock.send_with(&[], buf, *at, (end - at).min(chunk))?
            }
            (None, _) => return Ok(0),
        };
        self.advance(n as u64, &mut sent);
        Ok(n)
    }

    fn advance(&mut self, mut n: u64, sent: &mut impl FnMut(u64)) {
        while n > 0 {
            match self.items.front_mut() {
                Some(Item::Bytes { data, done }) => {
                    let step = n.min((data.len() - *done) as u64);
                    *done += step as usize;
                    n -= step;
                    if *done < data.len() {
                        return;
                    }
                }
                Some(Item::Payload {
                    at, end, cookie, ..
                }) => {
                    let step = n.min(*end - *at);
                    *at += step;
                    n -= step;
                    if *at < *end {
                        return;
                    }
                    sent(*cookie);
                }
                None => return,
            }
            self.items.pop_front();
        }
    }
}
