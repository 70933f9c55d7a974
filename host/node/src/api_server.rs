//! Whether the node reaches an API server: a config that cuts it off is gone back from.
//!
//! A proxy on the node may answer although nobody is behind it. So where the kubelet's
//! kubeconfig says by which authority its API server is known, whoever answers has to prove
//! that it is one: by a TLS handshake with a certificate of that authority.

mod address;
mod kubeconfig;
mod look_up;

pub(crate) use address::is_address;

use crate::tree::Tree;
use address::host;
use kubeconfig::{Authority, of_kubelet};
use look_up::connect;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tread_model::text::one_line_within;

/// How long it may take to answer once.
const ANSWER: Duration = Duration::from_secs(5);
/// As much as is told of why it does not, in bytes.
const MOST_WHY: usize = 400;
/// How long to wait before it is asked again.
const AGAIN: Duration = Duration::from_secs(5);

/// The API server that a node was told to reach, or its kubelet's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// `HOST:PORT`.
    pub(crate) address: String,
    /// The name that its certificate has to have.
    name: String,
    authority: Authority,
}

impl Server {
    /// The one at this address.
    pub(crate) fn at(tree: &Tree, address: &str) -> Server {
        let (address, name) = (address.to_owned(), host(address).to_owned());
        match of_kubelet(tree) {
            Ok(Some(own)) if own.address == address => {
                Server { address, name: own.name, authority: own.authority }
            }
            Ok(Some(own)) => Server { address, name, authority: own.authority },
            Ok(None) => Server { address, name, authority: Authority::Unknown },
            Err(why) => Server { address, name, authority: Authority::Unreadable(why) },
        }
    }

    /// The one at this address, else the kubelet's own; nothing where there is neither. Where
    /// it cannot be told which is the kubelet's: why not.
    pub(crate) fn of(tree: &Tree, address: Option<&str>) -> Result<Option<Server>, String> {
        if let Some(address) = address {
            return Ok(Some(Server::at(tree, address)));
        }
        let own = of_kubelet(tree)?;
        Ok(own.map(|own| Server { address: own.address, name: own.name, authority: own.authority }))
    }

    /// Whether it has to prove who it is.
    pub(crate) fn is_known(&self) -> bool {
        self.authority != Authority::Unknown
    }

    /// Whether it answers, else why it does not. Where its authority is not known any answer
    /// counts, also that of a server that expects TLS: what is asked then is whether the
    /// network still leads there.
    pub(crate) async fn answers(&self) -> Result<(), String> {
        let asked = async {
            match &self.authority {
                Authority::Known(authority) => self.proves_itself(authority).await,
                Authority::Unknown => {
                    let said = says_anything(&self.address).await;
                    said.map_err(|error| error.to_string()).map(drop)
                }
                Authority::Unreadable(why) => Err(why.clone()),
            }
        };
        let silent = || Err(format!("it did not answer within {} s", ANSWER.as_secs()));
        let answers = timeout(ANSWER, asked).await.unwrap_or_else(|_| silent());
        // Whoever answers in its place chooses what stands in a certificate.
        answers.map_err(|why| one_line_within(&why, MOST_WHY).0)
    }

    async fn proves_itself(&self, authority: &[u8]) -> Result<(), String> {
        let trusting = trusting(authority)
            .ok_or("what the kubelet's kubeconfig names as its authority has no certificate")?;
        let name = ServerName::try_from(self.name.clone())
            .map_err(|_| format!("`{}` is no name that a certificate has", self.name))?;
        let stream = connect(&self.address).await.map_err(|error| error.to_string())?;
        let shaken = TlsConnector::from(Arc::new(trusting)).connect(name, stream).await;
        shaken.map(drop).map_err(|error| self.refused(&error))
    }

    /// Why a handshake failed.
    fn refused(&self, error: &io::Error) -> String {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match tls {
            Some(rustls::Error::InvalidCertificate(why)) => format!(
                "its certificate does not prove that it is {} by the authority of the kubelet's kubeconfig: {why}",
                self.name
            ),
            Some(error) => format!("it does not speak TLS as expected: {error}"),
            None => error.to_string(),
        }
    }
}

/// Whether a server answers within a time, else why it did not at last: looked up each time it
/// is asked, since what it is known by may be written anew meanwhile.
pub(crate) async fn answers_within(
    limit: Duration,
    server: impl Fn() -> Result<Server, String>,
) -> Result<(), String> {
    let deadline = Instant::now() + limit;
    loop {
        let why = match server() {
            Ok(server) => match server.answers().await {
                Ok(()) => return Ok(()),
                Err(why) => why,
            },
            Err(why) => why,
        };
        if Instant::now() + AGAIN >= deadline {
            return Err(why);
        }
        sleep(AGAIN).await;
    }
}

/// Trusts nobody but an authority; nothing where that has no certificate.
fn trusting(authority: &[u8]) -> Option<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(authority).flatten();
    let (added, _) = roots.add_parsable_certificates(certificates);
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().ok().filter(|_| added > 0)?;
    Some(builder.with_root_certificates(roots).with_no_client_auth())
}

async fn says_anything(address: &str) -> io::Result<u8> {
    let mut stream = connect(address).await?;
    stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await?;
    stream.read_u8().await
}

#[cfg(test)]
mod tests;
