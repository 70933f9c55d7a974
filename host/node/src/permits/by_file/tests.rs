#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

struct Bed {
    _dir: tempfile::TempDir,
    tree: Tree,
}

fn bed() -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    Bed { _dir: dir, tree }
}

fn hour() -> Option<u64> {
    Some(u64::try_from((since_boot() + Duration::from_secs(3600)).as_millis()).unwrap())
}

/// Asks, and answers what is asked as told.
async fn asked(tree: &Tree, answer: impl Fn(&Question) -> Answer) -> Result<Permit, NoPermit> {
    let asking = ByFile::new(tree, "op");
    let answering = async {
        let questions = Questions::of(tree);
        loop {
            let mut notices = questions.notices().unwrap();
            if let Some(question) = questions.open().unwrap() {
                questions.answer(&answer(&question)).unwrap();
            }
            notices.next().await.unwrap();
        }
    };
    tokio::select! {
        permit = asking.ask(Act::Unit { unit: "a.service".to_owned() }) => permit,
        () = answering => Err(NoPermit::NotNow("nobody asks".to_owned())),
    }
}

fn granted(question: &Question) -> Answer {
    Answer { id: question.id.clone(), until: hour(), refused: None, ends: false }
}

#[tokio::test]
async fn an_answer_gives_a_permit_that_ends() {
    let bed = bed();
    let permit = asked(&bed.tree, granted).await.unwrap();
    assert!(permit.holds() && permit.ends().is_some());
}

#[tokio::test]
async fn a_folder_that_somebody_removes_meanwhile_loses_no_question() {
    let bed = bed();
    let asking = ByFile::new(&bed.tree, "op");
    let asked = asking.ask(Act::Write);
    tokio::pin!(asked);
    let at = bed._dir.path().join("var/lib/tread/permits");
    for _ in 0..3 {
        assert!(futures::future::poll_immediate(&mut asked).await.is_none());
        std::fs::remove_dir_all(&at).unwrap();
        let waits = tokio::time::timeout(Duration::from_secs(60), async {
            while !at.join("question").exists() {
                let soon = tokio::time::timeout(Duration::from_millis(10), &mut asked);
                assert!(soon.await.is_err(), "nobody answered yet");
            }
        });
        waits.await.unwrap();
    }
    let questions = Questions::of(&bed.tree);
    questions.answer(&granted(&questions.open().unwrap().unwrap())).unwrap();
    assert!(asked.await.is_ok());
}

#[tokio::test]
async fn a_question_of_which_nobody_waits_for_the_answer_any_more_is_gone() {
    let bed = bed();
    let (asking, questions) = (ByFile::new(&bed.tree, "op"), Questions::of(&bed.tree));
    let mut asked = asking.ask(Act::Write);
    assert!(futures::future::poll_immediate(&mut asked).await.is_none());
    assert!(questions.open().unwrap().is_some());
    drop(asked);
    assert_eq!(questions.open().unwrap(), None);
    // What somebody else asks meanwhile is not.
    let mut asked = asking.ask(Act::Write);
    assert!(futures::future::poll_immediate(&mut asked).await.is_none());
    let others = Question { id: "others".to_owned(), ..questions.open().unwrap().unwrap() };
    put(&folder(&bed.tree).unwrap(), QUESTION, &others).unwrap();
    drop(asked);
    assert_eq!(questions.open().unwrap(), Some(others));
}

#[tokio::test]
async fn a_refusal_says_why() {
    let bed = bed();
    let refused = |it: &Question| Answer { refused: Some("not now".to_owned()), ..granted(it) };
    let not_now = || "not now".to_owned();
    assert_eq!(asked(&bed.tree, refused).await.unwrap_err(), NoPermit::NotNow(not_now()));
    let for_ever = |it: &Question| Answer { ends: true, ..refused(it) };
    assert_eq!(asked(&bed.tree, for_ever).await.unwrap_err(), NoPermit::Never(not_now()));
    // As an agent of an earlier version answers.
    let text = r#"{"id": "one", "refused": "not now"}"#;
    let answer: Answer = serde_json::from_str(text).unwrap();
    assert_eq!(permit(answer).unwrap_err(), NoPermit::NotNow(not_now()));
}

#[tokio::test]
async fn a_permit_without_an_end_is_none() {
    let bed = bed();
    let endless = |it: &Question| Answer { until: None, ..granted(it) };
    assert!(asked(&bed.tree, endless).await.unwrap_err().to_string().contains("when it ends"));
}

#[tokio::test]
async fn an_answer_to_another_question_is_not_taken() {
    let bed = bed();
    let other = |it: &Question| Answer { id: "older".to_owned(), ..granted(it) };
    let waiting = tokio::time::timeout(Duration::from_millis(100), asked(&bed.tree, other));
    assert!(waiting.await.is_err(), "it still waits");
    // What was asked before is not answered for whoever asks next.
    assert!(asked(&bed.tree, granted).await.is_ok());
}

#[tokio::test]
async fn folders_in_the_place_of_question_and_answer_are_put_aside() {
    let bed = bed();
    let at = bed._dir.path().join("var/lib/tread/permits");
    for name in ["question", "question.next", "answer", "answer.next"] {
        std::fs::create_dir_all(at.join(name).join("in it")).unwrap();
    }
    let permit = asked(&bed.tree, granted).await;
    assert!(permit.is_ok(), "{permit:?}");
    for name in ["question", "question.next", "answer", "answer.next"] {
        assert!(at.join(format!("{name}.aside/in it")).is_dir(), "{name}");
    }
}
