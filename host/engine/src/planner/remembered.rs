//! What policies answered lately: the same change is asked about again and again, for
//! its warning, for its plans, and when somebody tries it first.
//!
//! It holds two generations. What is used is in the younger one; when that is full it
//! becomes the older one, and what nobody used meanwhile is forgotten.

use super::heard::Heard;
use super::question::Question;
use crate::policy::Policy;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How many answers a generation has, and how many bytes.
const MOST: usize = 4096;
const ROOM: usize = 2 << 20;
/// What an answer takes besides what it says.
const EACH: usize = 256;

/// What policies answered lately.
#[derive(Debug, Default)]
pub struct Remembered(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Question, Answered>,
    old: HashMap<Question, Answered>,
    /// What the younger one takes.
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Answered {
    heard: Heard,
    /// Its place in memory is taken for as long as this is held, but not its module.
    policy: Weak<Policy>,
}

impl Remembered {
    pub(super) fn get(&self, question: &Question) -> Option<Heard> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answered) = all.young.get(question) {
            return Some(answered.heard.clone());
        }
        let answered = all.old.remove(question)?;
        let heard = answered.heard.clone();
        all.put(*question, answered);
        Some(heard)
    }

    pub(super) fn put(&self, question: Question, policy: &Arc<Policy>, heard: &Heard) {
        let answered = Answered { heard: heard.clone(), policy: Arc::downgrade(policy) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(question, answered);
    }
}

impl Generations {
    fn put(&mut self, question: Question, answered: Answered) {
        let takes = answered.heard.bytes().saturating_add(EACH);
        if takes > ROOM {
            return;
        }
        if self.young.len() >= MOST || self.bytes.saturating_add(takes) > ROOM {
            self.old = std::mem::take(&mut self.young);
            self.old.retain(|_, answered| answered.policy.strong_count() > 0);
            self.bytes = 0;
        }
        if self.young.insert(question, answered).is_none() {
            self.bytes = self.bytes.saturating_add(takes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use tread_model::digest::{Digest, Sha256};
    use tread_model::plan::PolicyIdentity;
    use tread_model::verdict::{Action, Answer, Layer, Verdict};

    fn policy() -> Arc<Policy> {
        let identity = PolicyIdentity {
            policy: "a".to_owned(),
            layer: Layer::Template,
            version: String::new(),
            digest: Sha256::of(b""),
            settings_digest: Sha256::of(b""),
        };
        Arc::new(Policy::missing(identity, Vec::new(), String::new()).unwrap())
    }

    fn question(policy: &Arc<Policy>, number: usize) -> Question {
        Question::of(policy, &[Digest::of(&number.to_be_bytes())], &[])
    }

    fn says(text: &str) -> Heard {
        let verdict = Verdict { answer: Answer::Abstain, reason: text.to_owned() };
        Heard::Verdicts(vec![Some(verdict)])
    }

    fn said(heard: Option<Heard>) -> Option<String> {
        let Heard::Verdicts(verdicts) = heard? else { return None };
        Some(verdicts.into_iter().flatten().map(|verdict| verdict.reason).collect())
    }

    #[test]
    fn what_is_used_stays_and_what_is_not_makes_room() {
        let (remembered, policy) = (Remembered::default(), policy());
        for (long, count) in [(10, 4 * MOST), (10_000, 10 * ROOM / 10_000)] {
            let text = "x".repeat(long);
            for number in 0..count {
                remembered.put(question(&policy, number), &policy, &says(&text));
                assert!(remembered.get(&question(&policy, 0)).is_some(), "{number}");
                let all = remembered.0.lock().unwrap();
                assert!(all.young.len() <= MOST && all.old.len() <= MOST && all.bytes <= ROOM);
            }
            assert_eq!(said(remembered.get(&question(&policy, 1))), None);
            assert_eq!(said(remembered.get(&question(&policy, count - 1))), Some(text));
        }
        remembered.put(question(&policy, 1), &policy, &says(&"x".repeat(ROOM)));
        assert_eq!(said(remembered.get(&question(&policy, 1))), None, "it has no room at all");
    }

    #[test]
    fn what_an_answer_asks_for_takes_room_as_its_reasons_do() {
        let (remembered, policy) = (Remembered::default(), policy());
        let unit = format!("{}.service", "a".repeat(247));
        let actions = vec![Action::Restart(unit.clone()); 64];
        let verdict = Verdict { answer: Answer::Act(actions), reason: String::new() };
        let heard = Heard::Verdicts(vec![Some(verdict); 60]);
        for number in 0..300 {
            remembered.put(question(&policy, number), &policy, &heard);
        }
        let all = remembered.0.lock().unwrap();
        let held = (all.young.len() + all.old.len()) * 60 * 64 * unit.len();
        assert!(!all.young.is_empty() && held <= 2 * ROOM, "{held} bytes in units' names");
    }

    #[test]
    fn another_policy_is_never_taken_for_one_that_is_gone() {
        let remembered = Remembered::default();
        let one = policy();
        let asked = question(&one, 0);
        remembered.put(asked, &one, &says("one"));
        drop(one);
        let others: Vec<Arc<Policy>> = (0..1000).map(|_| policy()).collect();
        assert!(others.iter().all(|other| question(other, 0) != asked));
        assert!(others.iter().all(|other| remembered.get(&question(other, 0)).is_none()));
    }
}
