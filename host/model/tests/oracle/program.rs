//! The program that asks both libraries: see tests/oracle/mirrors.

use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Program {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

#[derive(Deserialize)]
struct Answer {
    error: String,
    text: String,
    entries: Option<Vec<Entry>>,
    search: Option<Vec<String>>,
    pulls: Option<Vec<Value>>,
}

/// What the runtime's library knows of a scope.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Entry {
    prefix: String,
    location: String,
    insecure: bool,
    blocked: bool,
    mirror_by_digest_only: bool,
    mirrors: Option<Vec<Mirror>>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Mirror {
    location: String,
    insecure: bool,
    pull_from_mirror: String,
}

impl Entry {
    /// With each mirror once: a file that names one is rendered over, and asking the
    /// same place again changes nothing.
    fn with_each_mirror_once(mut self) -> Entry {
        let mut once: Vec<Mirror> = Vec::new();
        for mirror in self.mirrors.take().unwrap_or_default() {
            let is_there = |it: &Mirror| {
                it.location == mirror.location && it.pull_from_mirror == mirror.pull_from_mirror
            };
            if !once.iter().any(is_there) {
                once.push(mirror);
            }
        }
        self.mirrors = Some(once);
        self
    }
}

/// What the runtime's library makes of a file.
#[derive(Debug, PartialEq)]
pub(crate) struct Made {
    pub(crate) entries: Vec<Entry>,
    pub(crate) search: Vec<String>,
    /// What becomes of each name that was asked for.
    pub(crate) pulls: Vec<Value>,
}

impl Program {
    pub(crate) fn start(path: &str) -> Program {
        let mut command = Command::new(path);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        let questions = child.stdin.take();
        Program { child, questions, answers }
    }

    fn ask(&mut self, question: &Value) -> Result<Answer, String> {
        let questions = self.questions.as_mut().expect("its input");
        questions.write_all(format!("{question}\n").as_bytes()).expect("it reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        let answer: Answer = serde_json::from_str(&answer).expect("an answer");
        if answer.error.is_empty() { Ok(answer) } else { Err(answer.error) }
    }

    /// The file that OpenShift renders; the error says why it renders none.
    pub(crate) fn render(
        &mut self,
        template: &str,
        objects: &[Value],
        insecure: &[String],
        blocked: &[String],
    ) -> Result<String, String> {
        let side = json!({
            "template": template, "objects": objects, "insecure": insecure, "blocked": blocked,
        });
        Ok(self.ask(&json!({"render": side}))?.text)
    }

    /// What the runtime makes of a file; the error says why it does not load it.
    pub(crate) fn read(&mut self, text: &str, names: &[String]) -> Result<Made, String> {
        let answer = self.ask(&json!({"read": {"text": text, "names": names}}))?;
        let entries = answer.entries.unwrap_or_default().into_iter();
        Ok(Made {
            entries: entries.map(Entry::with_each_mirror_once).collect(),
            search: answer.search.unwrap_or_default(),
            pulls: answer.pulls.unwrap_or_default(),
        })
    }
}

/// The program ends when its input does, and removes what it wrote.
impl Drop for Program {
    fn drop(&mut self) {
        self.questions.take();
        let _ = self.child.wait();
    }
}
