//! Values of the contract in linear memory, as the canonical ABI lays them out.

use super::{Action, Answer, Says};
use std::fmt::Write as _;
use tread_model::description::{Declarations, Description};

/// A piece of memory that is filled from its start.
pub struct Memory {
    base: u32,
    bytes: Vec<u8>,
}

/// Address and length.
type List = (u32, u32);

impl Memory {
    pub fn new(base: u32) -> Memory {
        Memory { base, bytes: Vec::new() }
    }

    pub fn base(&self) -> u32 {
        self.base
    }

    pub fn end(&self) -> u32 {
        (self.base + self.bytes.len() as u32).next_multiple_of(16)
    }

    /// As a string of WebAssembly text.
    pub fn text(&self) -> String {
        self.bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "\\{byte:02x}").unwrap();
            text
        })
    }

    fn put(&mut self, bytes: &[u8]) -> u32 {
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
        let at = self.base + self.bytes.len() as u32;
        self.bytes.extend(bytes);
        at
    }

    fn blob(&mut self, bytes: &[u8]) -> List {
        (self.put(bytes), bytes.len() as u32)
    }

    fn words(&mut self, words: &[u32]) -> u32 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(&bytes)
    }

    pub fn description(&mut self, description: &Description) -> u32 {
        let mut fields = Vec::new();
        for text in [&description.name, &description.version, &description.summary] {
            let (at, len) = self.blob(text.as_bytes());
            fields.extend([at, len]);
        }
        let mut claims = Vec::new();
        for claim in &description.claims {
            let (at, len) = self.blob(claim.changes.as_bytes());
            let flags = [claim.least as u8, claim.most as u8, u8::from(claim.with_unchanged), 0];
            claims.extend([at, len, u32::from_le_bytes(flags)]);
        }
        fields.extend([self.words(&claims), description.claims.len() as u32]);
        match &description.settings {
            None => fields.extend([0; 5]),
            Some(settings) => {
                fields.push(1);
                for text in [&settings.defaults, &settings.schema] {
                    let (at, len) = self.blob(text.as_bytes());
                    fields.extend([at, len]);
                }
            }
        }
        self.words(&fields)
    }

    pub fn declarations(&mut self, declarations: &Declarations) -> u32 {
        let mut list = Vec::new();
        for reason in &declarations.reasons {
            let (at, len) = self.blob(reason.as_bytes());
            list.extend([at, len]);
        }
        let at = self.words(&list);
        let needs = u32::from(declarations.needs_secrets);
        self.words(&[needs, at, declarations.reasons.len() as u32])
    }

    pub fn settings_result(&mut self, errors: &[&str]) -> u32 {
        let mut list = Vec::new();
        for error in errors {
            let (at, len) = self.blob(error.as_bytes());
            list.extend([at, len]);
        }
        let at = self.words(&list);
        self.words(&[u32::from(!errors.is_empty()), at, errors.len() as u32])
    }

    pub fn verdicts(&mut self, verdicts: &[Says]) -> u32 {
        let mut list = Vec::new();
        for Says { change, answer, reason } in verdicts {
            let (answer, (at, len)) = match answer {
                Answer::Abstain => (0, (0, 0)),
                Answer::Act(actions) => (1, self.actions(actions)),
                Answer::Refuse => (2, (0, 0)),
            };
            let reason = self.blob(reason);
            list.extend([*change, answer, at, len, reason.0, reason.1]);
        }
        let at = self.words(&list);
        self.words(&[at, verdicts.len() as u32])
    }

    fn actions(&mut self, actions: &[Action]) -> List {
        let mut list = Vec::new();
        for action in actions {
            let (kind, (at, len)) = match action {
                Action::Reload(unit) => (0, self.blob(unit.as_bytes())),
                Action::Restart(unit) => (1, self.blob(unit.as_bytes())),
                Action::DaemonReload => (2, (0, 0)),
                Action::Drain => (3, (0, 0)),
                Action::Reboot => (4, (0, 0)),
                Action::RebootUndrained => (5, (0, 0)),
            };
            list.extend([kind, at, len]);
        }
        (self.words(&list), actions.len() as u32)
    }
}
