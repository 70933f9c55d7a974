//! HTTP by hand, to send what no client would.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The sentence of a refusal.
    pub fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

/// Sends these bytes, and reads until the other side closes. None: it closed
/// without an answer.
pub async fn send(to: SocketAddr, bytes: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(to).await.unwrap();
    // The other side may close before it has all.
    let _ = stream.write_all(bytes).await;
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all).await;
    let text = String::from_utf8_lossy(&all).into_owned();
    let (headers, body) = text.split_once("\r\n\r\n")?;
    let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
    Some(Answer { status, headers: headers.to_ascii_lowercase(), body: body.to_owned() })
}

/// GET, with a token.
pub async fn get(to: SocketAddr, path: &str, token: Option<&str>) -> Answer {
    let authorization =
        token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: tread\r\nConnection: close\r\n{authorization}\r\n");
    send(to, request.as_bytes()).await.unwrap()
}
