//! Routing of data to other members of a group, in as many rounds as its size has binary digits: no
//! member needs to know the sources, and none exchanges messages with more than a few others (J.
//! Bruck and others, *Efficient Algorithms for All-to-All Communications*, 1997).

use super::{Members, finish_all};
use kw_objects::error::Res;

/// The destination rank of the words, and five words.
pub type Words = [i64; 6];

const BYTES: usize = size_of::<Words>();

/// Delivers all data to its destinations. Called by all members; returns the data for this one, in
/// no order.
pub fn route(members: &Members, mut words: Vec<Words>) -> Res<Vec<Words>> {
    let (rank, size) = (members.rank, members.size());
    let mut step = 1;
    while step < size {
        let far = |w: &Words| (w[0] as u32 + size - rank) % size & step != 0;
        let (go, stay): (Vec<_>, Vec<_>) = words.into_iter().partition(far);
        words = stay;
        words.extend(turn(
            members,
            (rank + step) % size,
            (rank + size - step) % size,
            &go,
        )?);
        step <<= 1;
    }
    Ok(words)
}

/// Sends words to one member and receives some from another.
fn turn(members: &Members, to: u32, from: u32, words: &[Words]) -> Res<Vec<Words>> {
    let mine: Vec<u8> = words
        .iter()
        .flatten()
        .flat_map(|w| w.to_ne_bytes())
        .collect();
    let mut sent = Vec::new();
    sent.extend(members.send(to, &(words.len() as u64).to_ne_bytes())?);
    sent.extend(members.send(to, &mine)?);
    let mut len = [0; 8];
    members.recv(from, &mut len)?;
    let mut bytes = vec![0; u64::from_ne_bytes(len) as usize * BYTES];
    members.recv(from, &mut bytes)?;
    finish_all(members.mpi, sent)?;
    Ok(bytes.chunks_exact(BYTES).map(read).collect())
}

fn read(bytes: &[u8]) -> Words {
    let mut words = [0; 6];
    for (word, b) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = i64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
    }
    words
}
