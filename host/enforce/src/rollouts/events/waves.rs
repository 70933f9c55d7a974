//! Waves of nodes that get a change which drains none of them.

use tread_model::rollout::soft_limit;

/// In how many waves so many nodes are begun, if each wave begins once the one before it has
/// succeeded.
pub(super) fn waves(begun: usize, limit: usize) -> usize {
    let (mut reached, mut waves) = (0_usize, 0);
    while reached < begun {
        reached = reached.saturating_add(soft_limit(reached, limit));
        waves += 1;
    }
    waves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_node_is_a_wave_and_each_later_one_has_twice_as_many_as_came_before() {
        let of = |all: &[usize], limit| -> Vec<usize> {
            all.iter().map(|begun| waves(*begun, limit)).collect()
        };
        assert_eq!(of(&[0, 1, 2, 3, 4, 9, 10, 27], 100), [0, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(of(&[1, 2, 3, 4], 1), [1, 2, 3, 4]);
        assert_eq!(waves(2000, 100), 5 + 20, "the limit is reached after 81");
    }
}
