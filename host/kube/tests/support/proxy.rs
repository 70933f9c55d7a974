//! A way to the API server that can be cut.

use kube::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tread_test_bed::Access;

/// What goes through the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Open,
    /// Nothing comes back, and nothing is closed: as from a silent network.
    Silent,
    /// Requests arrive, answers do not.
    Deaf,
}

pub struct Proxy {
    way: watch::Sender<Way>,
    port: u16,
    pub connections: Arc<AtomicUsize>,
}

impl Proxy {
    pub async fn start(server: &str) -> Proxy {
        let server = server.trim_start_matches("https://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (way, watch) = watch::channel(Way::Open);
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (server, watch) = (server.clone(), watch.clone());
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect(&server).await else { return };
                    let (near_read, near_write) = near.into_split();
                    let (far_read, far_write) = far.into_split();
                    tokio::select! {
                        () = copy(near_read, far_write, watch.clone(), |way| way != Way::Silent) => {}
                        () = copy(far_read, near_write, watch, |way| way == Way::Open) => {}
                    }
                });
            }
        });
        Proxy { way, port, connections }
    }

    pub fn set(&self, way: Way) {
        self.way.send_replace(way);
    }

    /// A client whose requests go this way.
    pub async fn client(&self, access: &Access) -> Client {
        let mut config = access.client_config().await.unwrap();
        config.cluster_url = format!("https://127.0.0.1:{}", self.port).parse().unwrap();
        Client::try_from(config).unwrap()
    }
}

async fn copy(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut way: watch::Receiver<Way>,
    open: fn(Way) -> bool,
) {
    let mut buffer = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if way.wait_for(|way| open(*way)).await.is_err() {
            return;
        }
        if to.write_all(buffer.get(..read).unwrap_or_default()).await.is_err() {
            return;
        }
    }
}
