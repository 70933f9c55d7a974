//! Whether the kubelet says that it is well.

use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Where the kubelet says how it is.
pub(crate) const ADDRESS: &str = "127.0.0.1:10248";
/// How long it may take to answer once.
const ANSWER: Duration = Duration::from_secs(5);

/// Whether it answers, and says that it is well.
pub(crate) async fn answers() -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(ADDRESS).await?;
        let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(4096).read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer.starts_with(b"HTTP/1.1 200"))
    };
    timeout(ANSWER, asked).await.is_ok_and(|answer| answer.is_ok_and(|well| well))
}
