//! Generational slab: a table whose keys of removed entries never name a later one.

/// Names one entry of a [`Slab`], for as long as it lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Key {
    /// Position in the table.
    pub index: u32,
    /// How many times the position was reused, 24 bits.
    pub generation: u32,
}

impl Key {
    /// Packs the key into 56 bits: `generation << 32 | index`.
    #[inline]
    pub fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// Inverse of [`Key::to_bits`]; bits 56 and above are ignored.
    #[inline]
    pub fn from_bits(bits: u64) -> Key {
        Key {
            index: bits as u32,
            generation: (bits >> 32) as u32 & GENERATIONS,
        }
    }
}

const GENERATIONS: u32 = 0x00ff_ffff;
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Slot<T> {
    generation: u32,
    next_free: u32,
    value: Option<T>,
}

/// A growing table with constant-time insert, remove and look-up; keys are checked, never trusted.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    len: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab::new()
    }
}

impl<T> Slab<T> {
    /// An empty table; allocates nothing.
    pub const fn new() -> Self {
        Slab {
            slots: Vec::new(),
            free: NONE,
            len: 0,
        }
    }

    /// Number of live entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no entry lives.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stores `value` and returns its key.
    #[inline]
    pub fn insert(&mut self, value: T) -> Key {
        self.len += 1;
        if self.free == NONE {
            let index = self.slots.len() as u32;
            self.slots.push(Slot {
                generation: 0,
                next_free: NONE,
                value: Some(value),
            });
            return Key {
                index,
                generation: 0,
            };
        }
        let index = self.free;
        let slot = &mut self.slots[index as usize];
        self.free = slot.next_free;
        // A free slot has no value: nothing is dropped there.
        slot.value.get_or_insert(value);
        Key {
            index,
            generation: slot.generation,
        }
    }

    /// The key that the next [`Slab::insert`] will return.
    #[inline]
    pub fn next_key(&self) -> Key {
        match self.slots.get(self.free as usize) {
            Some(slot) => Key {
                index: self.free,
                generation: slot.generation,
            },
            None => Key {
                index: self.slots.len() as u32,
                generation: 0,
            },
        }
    }

    /// The entry, if the key still names one.
    #[inline]
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        slot.value.as_ref()
    }

    /// The entry, mutable, if the key still names one.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        slot.value.as_mut()
    }

    /// Takes the entry out; its key is dead from then on.
    #[inline]
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.take_out(key, Option::take)
    }

    /// Drops the entry where it is; its key is dead from then on. Whether it named one.
    #[inline]
    pub fn discard(&mut self, key: Key) -> bool {
        let drop_it = |value: &mut Option<T>| value.is_some().then(|| *value = None);
        self.take_out(key, drop_it).is_some()
    }

    #[inline(always)]
    fn take_out<R>(
        &mut self,
        key: Key,
        how: impl FnOnce(&mut Option<T>) -> Option<R>,
    ) -> Option<R> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        let value = how(&mut slot.value)?;
        slot.generation = (slot.generation + 1) & GENERATIONS;
        slot.next_free = self.free;
        self.free = key.index;
        self.len -= 1;
        Some(value)
    }

    /// Removes all entries except those that `stays` accepts; their keys are dead.
    pub fn retain(&mut self, stays: impl Fn(Key) -> bool) {
        for index in 0..self.slots.len() as u32 {
            if let Some(key) = self.key_at(index).filter(|k| !stays(*k)) {
                self.remove(key);
            }
        }
    }

    /// Puts an entry back under the key it was just removed with; nothing may have been inserted in
    /// between.
    ///
    /// # Panics
    /// If an entry was inserted in between (a fault of our own).
    pub fn put_back(&mut self, key: Key, value: T) {
        assert_eq!(self.free, key.index, "put_back right after remove");
        let slot = &mut self.slots[key.index as usize];
        self.free = slot.next_free;
        slot.generation = key.generation;
        slot.value = Some(value);
        self.len += 1;
    }

    /// Full key of the live entry at `index`, for handles that carry only part of a generation.
    pub fn key_at(&self, index: u32) -> Option<Key> {
        let slot = self.slots.get(index as usize)?;
        slot.value.as_ref().map(|_| Key {
            index,
            generation: slot.generation,
        })
    }

    /// The generation of the entry at `index`, or, if there is none, of the next one there; `None`
    /// beyond the positions used so far.
    pub fn generation_at(&self, index: u32) -> Option<u32> {
        self.slots.get(index as usize).map(|s| s.generation)
    }

    /// All live entries with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().enumerate().filter_map(|(i, s)| {
            s.value.as_ref().map(|v| {
                (
                    Key {
                        index: i as u32,
                        generation: s.generation,
                    },
                    v,
                )
            })
        })
    }

    /// All live entries, mutable, with their keys.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(i, s)| {
            let generation = s.generation;
            s.value.as_mut().map(move |v| {
                (
                    Key {
                        index: i as u32,
                        generation,
                    },
                    v,
                )
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn behaves_like_a_map_whose_keys_are_never_reused(ops in prop::collection::vec(any::<(bool, u8)>(), 0..400)) {
            let mut slab = Slab::new();
            let mut model: HashMap<Key, u8> = HashMap::new();
            let mut seen: Vec<Key> = Vec::new();
            for (insert, x) in ops {
                if insert {
                    let next = slab.next_key();
                    let k = slab.insert(x);
                    prop_assert_eq!(k, next);
                    prop_assert!(!seen.contains(&k));
                    seen.push(k);
                    model.insert(k, x);
                } else if !seen.is_empty() {
                    let k = seen[x as usize % seen.len()];
                    let there = model.remove(&k);
                    if x % 2 == 0 {
                        prop_assert_eq!(slab.remove(k), there);
                    } else {
                        prop_assert_eq!(slab.discard(k), there.is_some());
                    }
                }
                prop_assert_eq!(slab.len(), model.len());
                for k in &seen {
                    prop_assert_eq!(slab.get(*k), model.get(k));
                    prop_assert_eq!(Key::from_bits(k.to_bits()), *k);
                }
            }
        }
    }
}
