//! What a policy answers.

/// How much an answer disturbs a node, from the least to the most.
///
/// ```
/// use tread_guest_sdk::Effect;
/// assert!(Effect::Restart < Effect::Reboot);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// The files are written; nothing else happens.
    None,
    /// A service re-reads its configuration and goes on running; `daemon-reload`
    /// and updating the CA trust count as this too.
    Reload,
    /// A service stops and starts.
    Restart,
    /// The node's pods are moved elsewhere first.
    Drain,
    /// The node is drained and boots.
    Reboot,
    /// The change is not applied at all.
    Refuse,
}

/// What has to be done so that a change takes effect. Unit names are complete:
/// `crio.service`, not `crio`.
///
/// ```
/// use tread_guest_sdk::{Action, Verdict};
/// let verdict = Verdict::act(
///     vec![Action::Drain, Action::restart("crio.service")],
///     "containers stop while their runtime restarts",
/// );
/// assert_eq!(verdict.actions().len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Ask a unit to re-read its configuration.
    Reload(String),
    /// Stop and start a unit.
    Restart(String),
    /// Let systemd re-read its units. tread adds it by itself where a unit or
    /// a file in a unit directory changes.
    DaemonReload,
    /// Move the node's pods elsewhere before anything is written.
    Drain,
    /// Boot the node; it is drained first.
    Reboot,
    /// Boot the node without draining it: for policies in the admin layer only.
    RebootUndrained,
}

impl Action {
    /// A [`Action::Reload`] of `unit`.
    ///
    /// ```
    /// use tread_guest_sdk::Action;
    /// assert_eq!(Action::reload("crio.service"), Action::Reload("crio.service".into()));
    /// ```
    pub fn reload(unit: impl Into<String>) -> Action {
        Action::Reload(unit.into())
    }

    /// A [`Action::Restart`] of `unit`.
    ///
    /// ```
    /// use tread_guest_sdk::Action;
    /// assert_eq!(Action::restart("crio.service"), Action::Restart("crio.service".into()));
    /// ```
    pub fn restart(unit: impl Into<String>) -> Action {
        Action::Restart(unit.into())
    }

    /// How much this disturbs a node.
    ///
    /// ```
    /// use tread_guest_sdk::{Action, Effect};
    /// assert_eq!(Action::DaemonReload.effect(), Effect::Reload);
    /// ```
    pub fn effect(&self) -> Effect {
        match self {
            Action::Reload(_) | Action::DaemonReload => Effect::Reload,
            // Updating the trust store disturbs nobody, though it is a unit's start.
            Action::Restart(unit) if unit == "coreos-update-ca-trust.service" => Effect::Reload,
            Action::Restart(_) => Effect::Restart,
            Action::Drain => Effect::Drain,
            Action::Reboot | Action::RebootUndrained => Effect::Reboot,
        }
    }
}

/// The answer in a [`Verdict`].
///
/// ```
/// use tread_guest_sdk::{Answer, Verdict};
/// assert_eq!(Verdict::nothing("read at every use").answer(), &Answer::Act(vec![]));
/// assert_eq!(Verdict::refuse("it would not start").answer(), &Answer::Refuse);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// No opinion. If nobody has one, the node reboots.
    Abstain,
    /// These actions make the change take effect. None at all: writing the
    /// files is enough.
    Act(Vec<Action>),
    /// The change must not be applied.
    Refuse,
}

/// A policy's answer for one change, and why.
///
/// The reason is one sentence for a tired admin: what happens and why that is
/// enough, or what to do instead. Never quote the contents of a file in it: it
/// is shown in the cluster.
///
/// ```
/// use tread_guest_sdk::{Action, Effect, Verdict};
///
/// let verdict = Verdict::restart("chronyd.service", "chronyd reads its sources only when it starts");
/// assert_eq!(verdict.actions(), [Action::restart("chronyd.service")]);
/// assert_eq!(verdict.effect(), Some(Effect::Restart));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    answer: Answer,
    reason: String,
}

impl Verdict {
    /// No opinion: what other policies say decides, or else a reboot.
    ///
    /// ```
    /// use tread_guest_sdk::Verdict;
    /// assert_eq!(Verdict::abstain().effect(), None);
    /// ```
    pub fn abstain() -> Verdict {
        Verdict { answer: Answer::Abstain, reason: String::new() }
    }

    /// As [`Verdict::abstain`], with what stands in the plan if nobody else has an
    /// opinion either.
    ///
    /// ```
    /// use tread_guest_sdk::{Answer, Verdict};
    /// let verdict = Verdict::abstain_because("only changes of servers are known here");
    /// assert_eq!(verdict.answer(), &Answer::Abstain);
    /// ```
    pub fn abstain_because(reason: impl Into<String>) -> Verdict {
        Verdict { answer: Answer::Abstain, reason: reason.into() }
    }

    /// Writing the files is enough.
    ///
    /// ```
    /// use tread_guest_sdk::{Effect, Verdict};
    /// let verdict = Verdict::nothing("sshd reads the keys at every login");
    /// assert_eq!(verdict.effect(), Some(Effect::None));
    /// ```
    pub fn nothing(reason: impl Into<String>) -> Verdict {
        Verdict::act(Vec::new(), reason)
    }

    /// `unit` re-reads its configuration.
    ///
    /// ```
    /// use tread_guest_sdk::{Effect, Verdict};
    /// let verdict = Verdict::reload("crio.service", "CRI-O reads its mirrors again when it is reloaded");
    /// assert_eq!(verdict.effect(), Some(Effect::Reload));
    /// ```
    pub fn reload(unit: impl Into<String>, reason: impl Into<String>) -> Verdict {
        Verdict::act(vec![Action::Reload(unit.into())], reason)
    }

    /// `unit` stops and starts.
    ///
    /// ```
    /// use tread_guest_sdk::{Effect, Verdict};
    /// let verdict = Verdict::restart("kubelet.service", "the kubelet reads this only when it starts");
    /// assert_eq!(verdict.effect(), Some(Effect::Restart));
    /// ```
    pub fn restart(unit: impl Into<String>, reason: impl Into<String>) -> Verdict {
        Verdict::act(vec![Action::Restart(unit.into())], reason)
    }

    /// The node's pods are moved elsewhere, then the files are written. Add
    /// what makes them take effect with [`Verdict::and`].
    ///
    /// ```
    /// use tread_guest_sdk::{Action, Verdict};
    /// let verdict = Verdict::drain("an image that pods use may not be found any more")
    ///     .and(Action::reload("crio.service"));
    /// assert_eq!(verdict.actions(), [Action::Drain, Action::reload("crio.service")]);
    /// ```
    pub fn drain(reason: impl Into<String>) -> Verdict {
        Verdict::act(vec![Action::Drain], reason)
    }

    /// The node is drained and boots.
    ///
    /// ```
    /// use tread_guest_sdk::{Effect, Verdict};
    /// let verdict = Verdict::reboot("kernel modules are loaded at boot");
    /// assert_eq!(verdict.effect(), Some(Effect::Reboot));
    /// ```
    pub fn reboot(reason: impl Into<String>) -> Verdict {
        Verdict::act(vec![Action::Reboot], reason)
    }

    /// The change must not be applied; the reason says what to do instead.
    ///
    /// ```
    /// use tread_guest_sdk::{Effect, Verdict};
    /// let verdict = Verdict::refuse("line 3 is no TOML, CRI-O would not start; correct it");
    /// assert_eq!(verdict.effect(), Some(Effect::Refuse));
    /// ```
    pub fn refuse(reason: impl Into<String>) -> Verdict {
        Verdict { answer: Answer::Refuse, reason: reason.into() }
    }

    /// All of `actions`. tread orders them and does each once.
    ///
    /// ```
    /// use tread_guest_sdk::{Action, Verdict};
    /// let verdict = Verdict::act(
    ///     vec![Action::restart("a.service"), Action::restart("b.service")],
    ///     "both read the file when they start",
    /// );
    /// assert_eq!(verdict.actions().len(), 2);
    /// ```
    pub fn act(actions: Vec<Action>, reason: impl Into<String>) -> Verdict {
        Verdict { answer: Answer::Act(actions), reason: reason.into() }
    }

    /// Adds an action; the verdict becomes one that acts if it abstained, and
    /// stays what it is if it refuses.
    ///
    /// ```
    /// use tread_guest_sdk::{Action, Verdict};
    /// let verdict = Verdict::reload("a.service", "both read the file").and(Action::reload("b.service"));
    /// assert_eq!(verdict.actions().len(), 2);
    /// ```
    #[must_use]
    pub fn and(mut self, action: Action) -> Verdict {
        match &mut self.answer {
            Answer::Act(actions) => actions.push(action),
            Answer::Abstain => self.answer = Answer::Act(vec![action]),
            Answer::Refuse => {}
        }
        self
    }

    /// The answer.
    ///
    /// ```
    /// use tread_guest_sdk::{Answer, Verdict};
    /// assert_eq!(Verdict::abstain().answer(), &Answer::Abstain);
    /// ```
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// The actions; none if the verdict does not act.
    ///
    /// ```
    /// use tread_guest_sdk::Verdict;
    /// assert!(Verdict::refuse("the file is broken").actions().is_empty());
    /// ```
    pub fn actions(&self) -> &[Action] {
        match &self.answer {
            Answer::Act(actions) => actions,
            Answer::Abstain | Answer::Refuse => &[],
        }
    }

    /// Why.
    ///
    /// ```
    /// use tread_guest_sdk::Verdict;
    /// assert_eq!(Verdict::nothing("read at every login").reason(), "read at every login");
    /// ```
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// How much this disturbs a node; none for a verdict that abstains.
    ///
    /// ```
    /// use tread_guest_sdk::{Action, Effect, Verdict};
    /// let verdict = Verdict::drain("the runtime restarts").and(Action::restart("crio.service"));
    /// assert_eq!(verdict.effect(), Some(Effect::Drain));
    /// ```
    pub fn effect(&self) -> Option<Effect> {
        match &self.answer {
            Answer::Abstain => None,
            Answer::Act(actions) => {
                Some(actions.iter().map(Action::effect).max().unwrap_or(Effect::None))
            }
            Answer::Refuse => Some(Effect::Refuse),
        }
    }

    /// The answer and the reason.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn into_parts(self) -> (Answer, String) {
        (self.answer, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updating_the_ca_trust_counts_as_a_reload() {
        assert_eq!(Action::restart("coreos-update-ca-trust.service").effect(), Effect::Reload);
    }

    #[test]
    fn a_refusal_takes_no_actions() {
        let verdict = Verdict::refuse("broken").and(Action::Reboot);
        assert_eq!(verdict.answer(), &Answer::Refuse);
    }

    #[test]
    fn the_effect_is_that_of_the_most_disruptive_action() {
        let verdict = Verdict::reload("a.service", "x").and(Action::Reboot).and(Action::Drain);
        assert_eq!(verdict.effect(), Some(Effect::Reboot));
    }
}
