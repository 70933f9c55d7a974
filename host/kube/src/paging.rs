//! Lists in pages: what is large does not come at once.

use crate::asking::{Backoff, Call, Failed, PATIENCE, ask_again, is_busy};
use crate::metrics::Metrics;
use kube::api::ListParams;
use kube::core::ObjectList;
use std::time::Duration;

/// The API server has forgotten the state that the pages are of.
const EXPIRED: u16 = 410;

/// So often a list is begun whose rest expires each time.
const BEGUN: usize = 4;

/// How long is waited before it is begun anew, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// What is kept of all objects, so many of which come at a time. An API server that is busy is asked again
/// for a while. Where the rest of a list has expired, it is begun anew, in pages too: client-go asks for
/// the whole list then, which may be more than there is memory for.
pub async fn in_pages<K: Clone, T, Page>(
    size: u32,
    metrics: &Metrics,
    call: Call,
    params: ListParams,
    list: impl Fn(ListParams) -> Page,
    keep: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, Failed>
where
    Page: Future<Output = kube::Result<ObjectList<K>>>,
{
    let mut all = Vec::new();
    let mut next = params.clone().limit(size);
    let (mut begun, mut backoff) = (1, Backoff::new(WAITS));
    loop {
        let request = || list(next.clone());
        let page = ask_again(PATIENCE, metrics, call.clone(), request, is_busy).await;
        let page = match page {
            Err(failed)
                if failed.code == EXPIRED && next.continue_token.is_some() && begun < BEGUN =>
            {
                begun += 1;
                all.clear();
                next = params.clone().limit(size);
                backoff.wait().await;
                continue;
            }
            page => page?,
        };
        all.extend(page.items.into_iter().filter_map(&keep));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => next = params.clone().limit(size).continue_token(&token),
            None => return Ok(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt as _;
    use kube::core::Status;
    use serde_json::json;
    use std::cell::{Cell, RefCell};

    fn page(names: std::ops::Range<usize>, token: &str) -> ObjectList<ConfigMap> {
        let items: Vec<_> = names.map(|it| json!({"metadata": {"name": it.to_string()}})).collect();
        let list = json!({"kind": "ConfigMapList", "apiVersion": "v1",
            "metadata": {"continue": token}, "items": items});
        serde_json::from_value(list).unwrap()
    }

    fn expired() -> kube::Error {
        kube::Error::Api(Box::new(Status { code: EXPIRED, ..Status::default() }))
    }

    /// The names that are found, and what was asked: limits and tokens.
    async fn listed(
        answer: impl Fn(&ListParams) -> kube::Result<ObjectList<ConfigMap>>,
    ) -> (Result<Vec<String>, u16>, Vec<(Option<u32>, Option<String>)>) {
        let asked = RefCell::new(Vec::new());
        let list = async |params: ListParams| {
            asked.borrow_mut().push((params.limit, params.continue_token.clone()));
            answer(&params)
        };
        let (metrics, call) = (Metrics::new(), Call::new("list", "configmaps"));
        let name = |it: ConfigMap| Some(it.name_any());
        let found = in_pages(2, &metrics, call, ListParams::default(), list, name).await;
        (found.map_err(|failed| failed.code), asked.into_inner())
    }

    #[tokio::test]
    async fn all_pages_come_one_after_the_other() {
        let (found, asked) = listed(|params| {
            Ok(match params.continue_token.as_deref() {
                None => page(0..2, "a"),
                Some("a") => page(2..4, "b"),
                Some(_) => page(4..5, ""),
            })
        })
        .await;
        assert_eq!(found.unwrap(), ["0", "1", "2", "3", "4"]);
        let token = |it: &str| (Some(2), Some(it.to_owned()));
        assert_eq!(asked, [(Some(2), None), token("a"), token("b")]);
    }

    #[tokio::test]
    async fn a_list_whose_rest_has_expired_is_begun_anew_in_pages_and_not_without_end() {
        let expires = Cell::new(true);
        let (found, asked) = listed(|params| match &params.continue_token {
            None => Ok(page(0..2, "a")),
            Some(_) if expires.replace(false) => Err(expired()),
            Some(_) => Ok(page(2..3, "")),
        })
        .await;
        assert_eq!(found.unwrap(), ["0", "1", "2"]);
        let (first, rest) = ((Some(2), None), (Some(2), Some("a".to_owned())));
        assert_eq!(asked, [first.clone(), rest.clone(), first.clone(), rest.clone()]);
        // Where it expires each time, and where it does at once, that is an error.
        let (found, asked) = listed(|params| match &params.continue_token {
            None => Ok(page(0..2, "a")),
            Some(_) => Err(expired()),
        })
        .await;
        assert_eq!((found, asked), (Err(EXPIRED), vec![[first, rest]; BEGUN].concat()));
        let (found, asked) = listed(|_| Err(expired())).await;
        assert_eq!((found, asked.len()), (Err(EXPIRED), 1));
    }
}
