//! Values for some ranks, found by rank without searching.

/// Values of the ranks that have one, in the order in which they got it.
#[derive(Debug)]
pub(super) struct ByRank<T> {
    /// Position of each rank in `kept`, plus one; 0: none. As long as the highest rank needs.
    places: Vec<u32>,
    kept: Vec<(u32, T)>,
}

impl<T> Default for ByRank<T> {
    fn default() -> Self {
        ByRank {
            places: Vec::new(),
            kept: Vec::new(),
        }
    }
}

impl<T> ByRank<T> {
    #[inline]
    fn place(&self, rank: u32) -> Option<usize> {
        let place = self.places.get(rank as usize)?;
        place.checked_sub(1).map(|place| place as usize)
    }

    #[inline]
    pub fn get(&self, rank: u32) -> Option<&T> {
        Some(&self.kept[self.place(rank)?].1)
    }

    #[inline]
    pub fn get_mut(&mut self, rank: u32) -> Option<&mut T> {
        let place = self.place(rank)?;
        Some(&mut self.kept[place].1)
    }

    /// The value of a rank, which is made if there is none.
    #[inline]
    pub fn get_or_make(&mut self, rank: u32, make: impl FnOnce() -> T) -> &mut T {
        let place = match self.place(rank) {
            Some(place) => place,
            None => self.add(rank, make()),
        };
        &mut self.kept[place].1
    }

    #[cold]
    fn add(&mut self, rank: u32, value: T) -> usize {
        let needed = rank as usize + 1;
        if self.places.len() < needed {
            self.places.resize(needed, 0);
        }
        self.kept.push((rank, value));
        self.places[rank as usize] = self.kept.len() as u32;
        self.kept.len() - 1
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.kept.iter().map(|(rank, value)| (*rank, value))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.kept.iter_mut().map(|(rank, value)| (*rank, value))
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.kept.iter_mut().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_found_in_any_order() {
        let mut kept = ByRank::default();
        assert_eq!(kept.get(3), None);
        for rank in [7, 0, 3] {
            *kept.get_or_make(rank, || 10) += rank;
        }
        *kept.get_or_make(0, || 99) += 1;
        assert_eq!(
            (kept.get(7), kept.get(0), kept.get(5)),
            (Some(&17), Some(&11), None)
        );
        kept.values_mut().for_each(|value| *value += 1);
        let all: Vec<(u32, u32)> = kept.iter().map(|(rank, value)| (rank, *value)).collect();
        assert_eq!(all, [(7, 18), (0, 12), (3, 14)]);
    }
}
