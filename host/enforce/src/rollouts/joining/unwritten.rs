//! What nodes are told that wait since the API server takes no write by which they would join.

use super::report::What;
use tread_kube::advice::INSTALL_AGAIN;
use tread_kube::asking::{CallOutcome, Failed};
use tread_model::text::one_line_within;

/// The word for it.
const NOT_WRITTEN: &str = "NotWritten";
/// So much is repeated of what the API server says.
const LONGEST: usize = 1024;

/// What a node is told whose own write was refused; nothing where the next try may be taken.
pub(super) fn of_node(failed: &Failed, pool: &str) -> Option<What> {
    refused(failed, |words| {
        format!(
            "the API server refuses the write by which it would join pool {pool}: {words}; check \
             spec.nodeTaints of Rollout {pool}, and spec.nodeSelector of the pool"
        )
    })
}

/// What nodes are told where tread cannot write an object of its own without which none joins.
pub(super) fn of_object(failed: &Failed, object: &str) -> Option<What> {
    refused(failed, |words| {
        format!(
            "the API server refuses to write {object} of tread's, without which no node joins: {words}"
        )
    })
}

fn refused(failed: &Failed, says: impl FnOnce(&str) -> String) -> Option<What> {
    let words = one_line_within(&failed.why, LONGEST).0;
    let says = match failed.outcome {
        CallOutcome::Refused => says(&words),
        CallOutcome::Forbidden => {
            format!(
                "{}. Where these are not the words of a webhook or an admission policy, tread lacks a \
                 right: {INSTALL_AGAIN}",
                says(&words)
            )
        }
        _ => return None,
    };
    Some(What::Waits(NOT_WRITTEN, says))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;
    use tread_kube::asking::Call;

    fn failed(code: u16, says: &str) -> Failed {
        let status = Status { code, message: says.to_owned(), ..Status::default() };
        Call::new("patch", "nodes").failed(&kube::Error::Api(Box::new(status)))
    }

    fn says(what: Option<What>) -> Option<(&'static str, String)> {
        what.map(|what| match what {
            What::Waits(word, says) => (word, says),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn a_node_whose_write_is_refused_is_told_the_api_servers_words_and_what_to_check() {
        let invalid = "Node is invalid: spec.taints[0].key: \"de dicated\"\u{1b}[31m";
        let (word, text) = says(of_node(&failed(422, invalid), "infra")).unwrap();
        assert_eq!(word, NOT_WRITTEN);
        assert!(text.contains("spec.taints[0].key: \"de dicated\""), "{text}");
        assert!(text.contains("check spec.nodeTaints of Rollout infra"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let (_, text) = says(of_node(&failed(403, "no"), "infra")).unwrap();
        assert!(text.ends_with(&format!("tread lacks a right: {INSTALL_AGAIN}")), "{text}");
        let (_, text) = says(of_object(&failed(403, "no"), "the ConfigMap x")).unwrap();
        assert!(text.contains("refuses to write the ConfigMap x of tread's"), "{text}");
        // These pass: the next try may be taken.
        for code in [404, 409, 429, 500] {
            assert_eq!(says(of_node(&failed(code, "later"), "infra")), None, "{code}");
        }
    }
}
