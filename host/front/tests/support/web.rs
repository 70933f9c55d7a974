//! HTTP by hand, to send what no client would.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tread_test_bed::eventually;

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

/// Sends these bytes until the answer is another one than 503: on a busy machine the other side does
/// not do everything in time, and says so.
pub async fn insist(to: SocketAddr, bytes: &[u8]) -> Answer {
    let ask = async || send(to, bytes).await.filter(|answer| answer.status != 503);
    eventually("an answer that is no 503", ask).await
}

/// GET, with a token.
pub async fn get(to: SocketAddr, path: &str, token: Option<&str>) -> Answer {
    send(to, asks(path, token).as_bytes()).await.unwrap()
}

/// The same until the answer is another one than 503: that it is known who asks, say.
pub async fn known(to: SocketAddr, path: &str, token: Option<&str>) -> Answer {
    insist(to, asks(path, token).as_bytes()).await
}

fn asks(path: &str, token: Option<&str>) -> String {
    let authorization =
        token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    format!("GET {path} HTTP/1.1\r\nHost: tread\r\nConnection: close\r\n{authorization}\r\n")
}
