//! Trees over ranks in a row: of every `fan` ranks the first leads, of every `fan` leaders the
//! first leads, and so on. What a rank leads is a run of ranks from itself on, so operations that
//! do not commute keep their order.

/// A tree of `size` ranks; rank 0 is its root.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    fan: u32,
    size: u32,
}

impl Tree {
    /// With fan-out `fan`, at least 2.
    pub fn new(fan: u32, size: u32) -> Tree {
        let fan = fan.max(2);
        Tree { fan, size }
    }

    /// Whom `r` follows; `None` for the root.
    pub fn parent(&self, r: u32) -> Option<u32> {
        if r == 0 {
            return None;
        }
        let mut group = self.fan;
        while r % group == 0 {
            group = group.saturating_mul(self.fan);
        }
        Some(r - r % group)
    }

    /// Who follows `r`, ascending.
    pub fn children(&self, r: u32) -> Vec<u32> {
        let mut children = Vec::new();
        let mut step = 1;
        while step < self.size && r % step.saturating_mul(self.fan) == 0 {
            let row = (1..self.fan).map(|j| r as u64 + j as u64 * step as u64);
            children.extend(row.take_while(|&c| c < self.size as u64).map(|c| c as u32));
            step = step.saturating_mul(self.fan);
        }
        children
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_and_children_agree_and_everybody_has_one_parent() {
        for (fan, size) in (1..6).flat_map(|f| (1..70).map(move |n| (f, n))) {
            let tree = Tree::new(fan, size);
            let mut seen = vec![0; size as usize];
            for (r, c) in (0..size).flat_map(|r| tree.children(r).into_iter().map(move |c| (r, c)))
            {
                assert_eq!(tree.parent(c), Some(r), "fan={fan} size={size} child={c}");
                seen[c as usize] += 1;
            }
            assert_eq!(tree.parent(0), None);
            assert!(seen[1..].iter().all(|&s| s == 1) && seen[0] == 0);
        }
    }
}
