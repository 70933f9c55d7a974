//! Numbers that look random and are always the same.

pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64, number: usize) -> Chance {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number as u64);
        chance.next();
        chance
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True in so many of a hundred.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// A text with a character, a line or a piece of it in another place, or gone.
    pub(crate) fn spoiled(&mut self, text: &str, pieces: &[&str]) -> String {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        let at = self.below(lines.len() + 1);
        match self.below(6) {
            0 if at < lines.len() => drop(lines.remove(at)),
            1 if at < lines.len() => lines.insert(at, lines[at].clone()),
            2 if at < lines.len() => {
                let other = self.below(lines.len());
                lines.swap(at, other);
            }
            3 if at < lines.len() => {
                let mut characters: Vec<char> = lines[at].chars().collect();
                let place = self.below(characters.len() + 1);
                match self.below(3) {
                    0 if place < characters.len() => drop(characters.remove(place)),
                    _ => characters.insert(place, self.of(&SIGNS)),
                }
                lines[at] = characters.into_iter().collect();
            }
            4 if at < lines.len() => {
                let piece = self.of(pieces);
                lines[at].push_str(piece);
            }
            _ => lines.insert(at, self.of(pieces).to_string()),
        }
        lines.join("\n") + "\n"
    }
}

const SIGNS: [char; 20] = [
    '"', '\'', '[', ']', '{', '}', '=', ':', ',', '#', ' ', '\t', '\\', '\r', '-', '.', '*', '&',
    '0', 'é',
];
