//! Every state that can be reached, breadth first: the laws in each, and from each a way to the
//! end without a fault.
//!
//! It is our own and not the crate stateright, whose `eventually` forgets what a cycle never
//! meets, and which shrinks states by symmetry only depth first. Each protocol with crashes is
//! full of cycles.

use crate::bounds::Bounds;
use crate::state::World;
use crate::steps::Steps;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use tread_model::protocol::Guards;

/// What a search found.
pub(crate) enum Found {
    /// All laws hold.
    Nothing { states: usize, steps: usize },
    /// A law is broken, or the end is out of reach: how it comes to that.
    Broken { law: String, trace: Vec<String> },
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Nothing { states, steps } => write!(f, "{states} states, {steps} steps"),
            Found::Broken { law, trace } => write!(f, "broken: {law}\n  {}", trace.join("\n  ")),
        }
    }
}

/// Tells states apart: 128 bits of two sums.
#[derive(Default)]
struct Mixed(u64, u64);

impl Mixed {
    fn mix(&mut self, word: u64) {
        let fold = |at: u64, by: u64| {
            let wide = u128::from(at ^ word).wrapping_mul(u128::from(by));
            (wide as u64) ^ ((wide >> 64) as u64)
        };
        let one = fold(self.0 ^ 0x9e37_79b9_7f4a_7c15, 0xa076_1d64_78bd_642f);
        let other = fold(self.1 ^ 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3);
        (self.0, self.1) = (one ^ other.rotate_left(17), other.wrapping_add(word.rotate_left(32)));
    }
}

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }
    fn write_u8(&mut self, it: u8) {
        self.mix(u64::from(it) + 1);
    }
    fn write_i8(&mut self, it: i8) {
        self.mix((i64::from(it) + 0x1000).unsigned_abs());
    }
    fn write_isize(&mut self, it: isize) {
        self.mix((it as u64) ^ 0x2000);
    }
    fn write_usize(&mut self, it: usize) {
        self.mix((it as u64) ^ 0x4000);
    }
}

/// What is a digest already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, it: u64) {
        self.0 ^= it;
    }
}

type Key = (u64, u64);

fn key(world: &World) -> Key {
    let mut mixed = Mixed::default();
    world.hash(&mut mixed);
    (mixed.0, mixed.1)
}

/// A search under way.
struct Search<'b> {
    steps: Steps<'b>,
    known: HashMap<Key, u32, BuildHasherDefault<AsItIs>>,
    parents: Vec<u32>,
    /// Without a fault: from, to.
    fair: Vec<(u32, u32)>,
    ends: Vec<u32>,
}

/// Explores all of it; stops at the first law that is broken.
pub(crate) fn explore<G: Guards>(bounds: &Bounds) -> Found {
    let steps = Steps { bounds, traced: false, found: Vec::new() };
    let (known, parents) = (HashMap::default(), Vec::new());
    let mut search = Search { steps, known, parents, fair: Vec::new(), ends: Vec::new() };
    let start = bounds.start().small();
    search.known.insert(key(&start), 0);
    search.parents.push(0);
    let (mut level, mut at, mut count) = (vec![start], 0, 0);
    while !level.is_empty() {
        let mut next = Vec::new();
        for world in level {
            if let Err(law) = world.keeps_the_laws(bounds) {
                return search.broken::<G>(at, law.to_owned());
            }
            if world.is_at_its_end() {
                search.ends.push(at);
            }
            if let Err((step, law)) = search.steps.of::<G>(&world) {
                return search.broken::<G>(at, format!("{law}: {step}"));
            }
            count += search.steps.found.len();
            for step in std::mem::take(&mut search.steps.found) {
                search.comes(at, step.world.small(), step.fair, &mut next);
            }
            at += 1;
        }
        level = next;
    }
    match search.cannot_end() {
        Some(at) => search.broken::<G>(at, "the end is out of reach".to_owned()),
        None => Found::Nothing { states: search.parents.len(), steps: count },
    }
}

impl Search<'_> {
    fn comes(&mut self, from: u32, world: World, fair: bool, next: &mut Vec<World>) {
        let new = u32::try_from(self.parents.len()).unwrap();
        let to = match self.known.entry(key(&world)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(vacant) => {
                vacant.insert(new);
                self.parents.push(from);
                next.push(world);
                new
            }
        };
        if fair {
            self.fair.push((from, to));
        }
    }

    /// A state from which no way without a fault leads to the end.
    fn cannot_end(&mut self) -> Option<u32> {
        self.fair.sort_unstable_by_key(|(_, to)| *to);
        let mut good = vec![false; self.parents.len()];
        let mut open = self.ends.clone();
        self.ends.iter().for_each(|at| good[*at as usize] = true);
        while let Some(at) = open.pop() {
            let first = self.fair.partition_point(|(_, to)| *to < at);
            for (from, _) in self.fair[first..].iter().take_while(|(_, to)| *to == at) {
                if !std::mem::replace(&mut good[*from as usize], true) {
                    open.push(*from);
                }
            }
        }
        good.iter().position(|good| !good).map(|at| u32::try_from(at).unwrap())
    }

    /// How it comes to a state.
    fn broken<G: Guards>(mut self, at: u32, law: String) -> Found {
        let mut path = vec![at];
        while let Some(last) = path.last().filter(|last| **last != 0) {
            path.push(self.parents[*last as usize]);
        }
        path.reverse();
        self.steps.traced = true;
        let mut world = self.steps.bounds.start().small();
        let mut trace = Vec::new();
        for to in &path[1..] {
            self.steps.of::<G>(&world).unwrap();
            let found = std::mem::take(&mut self.steps.found);
            let (what, next) = found
                .into_iter()
                .map(|step| (step.what, step.world.small()))
                .find(|(_, next)| self.known.get(&key(next)) == Some(to))
                .unwrap();
            trace.push(what);
            world = next;
        }
        trace.push(format!("{world:?}"));
        Found::Broken { law, trace }
    }
}
