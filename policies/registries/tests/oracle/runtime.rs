//! A program that asks one release of the library.

use crate::judge::{self, Needed};
use crate::node::{Node, Pair};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Runtime {
    name: String,
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// What the library makes of a node's files: errors where it does not load them.
#[derive(Debug, Deserialize)]
pub(crate) struct Made {
    pub(crate) registries: String,
    pub(crate) lookaside: String,
    pub(crate) policy: String,
    /// For each name the places that are asked, in order.
    pub(crate) pulls: Vec<Option<Vec<Source>>>,
    pub(crate) helpers: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) insecure: bool,
    pub(crate) namespace: String,
}

impl Runtime {
    /// Starts `NAME=PATH`.
    pub(crate) fn start(argument: &str) -> Runtime {
        let (name, path) = argument.split_once('=').unwrap();
        let mut command = Command::new(path);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let questions = child.stdin.take();
        Runtime { name: name.to_string(), child, questions, answers }
    }

    fn ask(&mut self, node: &Node, names: &BTreeSet<String>) -> Made {
        let mut question = node.question(names).to_string();
        question.push('\n');
        let questions = self.questions.as_mut().unwrap();
        questions.write_all(question.as_bytes()).unwrap();
        questions.flush().unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    /// What a change needs, by this release.
    pub(crate) fn judge(&mut self, pair: &Pair) -> Needed {
        let before = self.ask(&pair.before, &pair.names);
        let after = self.ask(&pair.after, &pair.names);
        judge::needed(&self.name, pair, &before, &after)
    }
}

/// The program ends when its input does, and removes what it wrote.
impl Drop for Runtime {
    fn drop(&mut self) {
        self.questions.take();
        self.child.wait().unwrap();
    }
}
