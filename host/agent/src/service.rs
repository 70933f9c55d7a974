//! Asking the service, by the token and the authority that stand in files.

use http::header::{self, HeaderValue};
use http::{Request, StatusCode, Uri};
use kube::client::Body;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use tread_model::text::one_line_within;

/// More than any config has.
const MOST: u64 = 64 << 20;

/// Where the service is, and how it and this agent know each other.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `https://tread-agents.tread-system.svc:8444`
    pub url: Uri,
    /// The file with the token of the agent's pod, for the audience of agents.
    pub token: PathBuf,
    /// The file with the authorities of the service's certificate: nobody else is believed.
    pub authority: PathBuf,
}

/// Why the service was not asked, or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum Unheard {
    /// The URL is none.
    #[error("{0} is no address of the service: it has to be https://HOST:PORT")]
    Url(Uri),
    /// A file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason, in words.
        why: String,
    },
    /// No answer came.
    #[error("{url} does not answer: {why}")]
    Unanswered {
        /// The service.
        url: Uri,
        /// The reason, in words.
        why: String,
    },
    /// It is not answered.
    #[error("{url} answers {status}: {why}")]
    Refused {
        /// The service.
        url: Uri,
        /// The HTTP status.
        status: StatusCode,
        /// Its words.
        why: String,
    },
}

/// The service. The files are read anew for each question, since they are exchanged.
pub(crate) struct Service {
    settings: Settings,
    /// The client, and the authorities that it believes.
    client: Mutex<Option<(Vec<u8>, Client)>>,
}

impl Service {
    pub(crate) fn new(settings: Settings) -> Result<Service, Unheard> {
        let is_https = settings.url.scheme_str() == Some("https");
        match is_https && settings.url.host().is_some() && settings.url.path() == "/" {
            true => Ok(Service { settings, client: Mutex::default() }),
            false => Err(Unheard::Url(settings.url)),
        }
    }

    /// What it answers to a question.
    pub(crate) async fn ask<Q: Serialize>(
        &self,
        path: &str,
        question: &Q,
        within: Duration,
    ) -> Result<Vec<u8>, Unheard> {
        let url = || self.settings.url.clone();
        let unanswered = |why: String| Unheard::Unanswered { url: url(), why };
        let client = self.client()?;
        let body = serde_json::to_vec(question).map_err(|error| unanswered(error.to_string()))?;
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, self.bearer()?)
            .body(Body::from(body))
            .map_err(|error| unanswered(error.to_string()))?;
        let answered = async {
            let answer = client.send(request).await.map_err(|error| unanswered(words(&error)))?;
            let (status, length) = (answer.status(), length(answer.headers()));
            if length.is_none_or(|length| length > MOST) {
                return Err(unanswered("it does not say how long its answer is".to_owned()));
            }
            let bytes = answer.into_body().collect_bytes().await;
            let bytes = bytes.map_err(|error| unanswered(words(&error)))?;
            match status.is_success() {
                true => Ok(bytes.to_vec()),
                false => Err(Unheard::Refused { url: url(), status, why: sentence(&bytes) }),
            }
        };
        let late = |_| unanswered(format!("no answer within {} s", within.as_secs()));
        timeout(within, answered).await.map_err(late)?
    }

    fn bearer(&self) -> Result<HeaderValue, Unheard> {
        let path = &self.settings.token;
        let token = read(path)?;
        let token = std::str::from_utf8(&token).map(str::trim).unwrap_or_default();
        let value = HeaderValue::try_from(format!("Bearer {token}")).ok();
        let mut value = value.filter(|_| !token.is_empty()).ok_or_else(|| Unheard::File {
            path: path.clone(),
            why: "it holds no token".to_owned(),
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// The client, made anew where the authorities are others by now.
    fn client(&self) -> Result<Client, Unheard> {
        let path = &self.settings.authority;
        let pem = read(path)?;
        let mut kept = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, client)) = &*kept
            && *known == pem
        {
            return Ok(client.clone());
        }
        let failed = |why: String| Unheard::File { path: path.clone(), why };
        let all: Result<Vec<Vec<u8>>, _> = CertificateDer::pem_slice_iter(&pem)
            .map(|certificate| certificate.map(|it| it.as_ref().to_vec()))
            .collect();
        let all = all.map_err(|error| failed(error.to_string()))?;
        if all.is_empty() {
            return Err(failed("it holds no certificate".to_owned()));
        }
        let mut config = Config::new(self.settings.url.clone());
        config.root_cert = Some(all);
        let client = tread_kube::client::client(config).map_err(|error| failed(words(&error)))?;
        *kept = Some((pem, client.clone()));
        Ok(client)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Unheard> {
    std::fs::read(path)
        .map_err(|error| Unheard::File { path: path.to_owned(), why: error.to_string() })
}

fn length(headers: &http::HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// An error with its causes, in a line.
fn words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    // A cause that was told within the error is not told again.
    texts.dedup_by(|later, before| before.contains(later.as_str()));
    one_line_within(&texts.join(": "), 1024).0
}

/// The sentence of a refusal.
fn sentence(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Said {
        error: String,
    }
    let said = serde_json::from_slice::<Said>(body).map(|said| said.error);
    one_line_within(&said.unwrap_or_else(|_| "without a word".to_owned()), 1024).0
}
