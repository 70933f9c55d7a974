//! Stopping in order: what writes ends first, then the Lease is given up, then
//! nobody is answered any more.

use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Whether this process is to stop. Clones share it.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Stops at SIGTERM and SIGINT; a second signal ends the process at once.
    pub fn on_signals() -> io::Result<Shutdown> {
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(async move {
            let mut next = async || {
                tokio::select! {
                    _ = term.recv() => "SIGTERM",
                    _ = int.recv() => "SIGINT",
                }
            };
            let name = next().await;
            tracing::info!("{name}: stops; another signal ends it at once");
            stop.send_replace(true);
            let name = next().await;
            tracing::warn!("{name}: ends at once");
            std::process::exit(1);
        });
        Ok(Shutdown(stopped))
    }

    /// Waits until it begins.
    pub async fn begins(&self) {
        // Whoever sends lives as long as the runtime.
        let _ = self.0.clone().wait_for(|stop| *stop).await;
    }

    /// The same, for whoever needs a future of its own.
    pub fn begun(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let shutdown = self.clone();
        async move { shutdown.begins().await }
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }
}
