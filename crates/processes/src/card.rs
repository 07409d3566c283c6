//! Description of the processes of one side for the other side.
//!
//! All integers are little-endian; texts and byte strings are preceded by their length (u32).
//!
//! ```text
//! card     the number of the protocol u32
//!          worlds u32, then of each: name, foreign key (32 bytes), what its ranks agreed on
//!          members u32, then of each: world u32, rank u32, network, address
//! ```

use kw_base::reader::Reader;

/// Number of the protocol by which two sides meet; another one is refused. It changes with the card
/// and with the messages that follow it.
const PROTOCOL: u32 = 2;

/// A job of some of the processes.
#[derive(Clone, PartialEq, Eq)]
pub struct WorldCard {
    /// Its name.
    pub name: String,
    /// Key that proves an introduction to it.
    pub foreign_key: [u8; 32],
    /// The settings on which its ranks agreed (`kw_boot::Agreed`).
    pub agreed: Vec<u8>,
}

impl std::fmt::Debug for WorldCard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorldCard")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessCard {
    /// Index of its world.
    pub world: u32,
    /// Its rank there.
    pub rank: u32,
    /// The network by which it is reached.
    pub network: String,
    /// Its address there.
    pub address: String,
}

/// One side.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Card {
    /// The jobs of its processes.
    pub worlds: Vec<WorldCard>,
    /// Its processes, by rank.
    pub members: Vec<ProcessCard>,
}

impl Card {
    /// Encodes the card as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        number(&mut out, PROTOCOL);
        number(&mut out, self.worlds.len() as u32);
        for world in &self.worlds {
            text(&mut out, world.name.as_bytes());
            out.extend(world.foreign_key);
            text(&mut out, &world.agreed);
        }
        number(&mut out, self.members.len() as u32);
        for member in &self.members {
            number(&mut out, member.world);
            number(&mut out, member.rank);
            text(&mut out, member.network.as_bytes());
            text(&mut out, member.address.as_bytes());
        }
        out
    }

    /// Decodes a card; `None` if the bytes are not one of this protocol.
    pub fn decode(bytes: &[u8]) -> Option<Card> {
        let mut reader = Reader::new(bytes);
        if reader.u32()? != PROTOCOL {
            return None;
        }
        let mut card = Card::default();
        for _ in 0..reader.u32()? {
            card.worlds.push(WorldCard {
                name: take_text(&mut reader)?,
                foreign_key: reader.take()?,
                agreed: reader.counted()?.to_vec(),
            });
        }
        for _ in 0..reader.u32()? {
            let member = ProcessCard {
                world: reader.u32()?,
                rank: reader.u32()?,
                network: take_text(&mut reader)?,
                address: take_text(&mut reader)?,
            };
            if member.world as usize >= card.worlds.len() {
                return None;
            }
            card.members.push(member);
        }
        reader.rest().is_empty().then_some(card)
    }
}

fn number(out: &mut Vec<u8>, number: u32) {
    out.extend(number.to_le_bytes());
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    number(out, text.len() as u32);
    out.extend(text);
}

fn take_text(reader: &mut Reader<'_>) -> Option<String> {
    String::from_utf8(reader.counted()?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_survives_the_wire_and_nothing_shorter_is_one() {
        let card = Card {
            worlds: vec![WorldCard {
                name: "one".into(),
                foreign_key: [7; 32],
                agreed: vec![1, 2, 3],
            }],
            members: vec![ProcessCard {
                world: 0,
                rank: 4,
                network: "tcp".into(),
                address: "127.0.0.1:9".into(),
            }],
        };
        let bytes = card.encode();
        assert_eq!(Card::decode(&bytes), Some(card));
        for end in 0..bytes.len() {
            assert_eq!(Card::decode(&bytes[..end]), None, "cut at {end}");
        }
        let mut newer = bytes.clone();
        newer[0] += 1;
        assert_eq!(Card::decode(&newer), None, "another protocol");
        let mut other = bytes;
        let world = other.len() - 4 - 4 - 3 - 4 - 11 - 4;
        other[world] = 1;
        assert_eq!(Card::decode(&other), None, "a world that is not there");
    }
}
