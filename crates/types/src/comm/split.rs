//! MPI_Comm_split: computes this rank's group from the colors and keys of all ranks.

/// Color and key of one process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Its color; negative means it wants no communicator.
    pub color: i32,
    /// Its key.
    pub key: i32,
}

/// The old ranks of those with this color, ordered by key, then by old rank. `choices` is in the
/// order of old ranks.
pub fn members(choices: &[Choice], color: i32) -> Vec<u32> {
    if color < 0 {
        return Vec::new();
    }
    let mut found: Vec<u32> = (0..choices.len() as u32)
        .filter(|&r| choices[r as usize].color == color)
        .collect();
    found.sort_by_key(|&r| choices[r as usize].key);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn every_rank_is_in_the_group_of_its_color_once(answers in prop::collection::vec((-1i32..3, -2i32..3), 0..40)) {
            let choices: Vec<Choice> = answers.iter().map(|&(color, key)| Choice { color, key }).collect();
            let mut seen = vec![0; choices.len()];
            for color in 0..3 {
                let group = members(&choices, color);
                for pair in group.windows(2) {
                    let order = |r: u32| (choices[r as usize].key, r);
                    prop_assert!(order(pair[0]) < order(pair[1]));
                }
                for r in group {
                    prop_assert_eq!(choices[r as usize].color, color);
                    seen[r as usize] += 1;
                }
            }
            for (r, n) in seen.iter().enumerate() {
                prop_assert_eq!(*n, (choices[r].color >= 0) as i32);
            }
        }
    }

    #[test]
    fn nobody_without_a_color() {
        let choices = [Choice {
            color: -32766,
            key: 0,
        }; 3];
        assert!(members(&choices, -32766).is_empty());
    }
}
