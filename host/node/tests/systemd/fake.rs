//! A systemd that answers as it is told, and a logind that refuses all, on a bus of their
//! own.

use crate::PATIENCE;
use futures::StreamExt;
use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tread_node::systemd::{Limits, Manager};
use zbus::message::Type;
use zbus::{Connection, Message, MessageStream, ObjectPath, Variant};

const CONFIG: &str = r#"<busconfig>
  <type>custom</type>
  <listen>unix:path=SOCKET</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
    <allow user="*"/>
  </policy>
</busconfig>"#;

const MANAGER: &str = "/org/freedesktop/systemd1";
const UNIT: &str = "/org/freedesktop/systemd1/unit/a";
const JOB: &str = "/org/freedesktop/systemd1/job/7";

/// A bus without anybody on it.
pub(crate) struct Bus {
    daemon: Child,
    pub(crate) address: String,
    _dir: TempDir,
}

impl Bus {
    pub(crate) async fn start() -> Bus {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("bus");
        let config = dir.path().join("bus.conf");
        std::fs::write(&config, CONFIG.replace("SOCKET", socket.to_str().unwrap())).unwrap();
        let daemon = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .arg("--nofork")
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon is needed. On Debian: apt-get install dbus");
        let address = format!("unix:path={}", socket.display());
        let bus = Bus { daemon, address, _dir: dir };
        let connected = async {
            while bus.connect().await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, connected).await.expect("the bus does not answer");
        bus
    }

    async fn connect(&self) -> zbus::Result<Connection> {
        zbus::connection::Builder::address(self.address.as_str()).build().await
    }

    pub(crate) fn manager(&self) -> Manager {
        let limits =
            Limits { well_for: Duration::from_millis(50), answer: Duration::from_secs(30) };
        Manager::new(&self.address, limits)
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// When a job's end is signalled: before or after its name, or never.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum JobEnds {
    Before,
    After,
    Never,
}

/// How the fake is to answer, and what it was asked.
pub(crate) struct Fake {
    pub(crate) result: &'static str,
    pub(crate) ends: JobEnds,
    /// How the unit is when its job was asked for.
    pub(crate) then: &'static str,
    pub(crate) asked: Vec<String>,
}

impl Fake {
    pub(crate) async fn serve(self, bus: &Bus) -> Arc<Mutex<Fake>> {
        let fake = Arc::new(Mutex::new(self));
        let connection = bus.connect().await.unwrap();
        let mut calls = MessageStream::from(&connection);
        for name in ["org.freedesktop.systemd1", "org.freedesktop.login1"] {
            connection.request_name(name).await.unwrap();
        }
        let served = Arc::clone(&fake);
        tokio::spawn(async move {
            while let Some(Ok(message)) = calls.next().await {
                if message.message_type() == Type::MethodCall {
                    answer(&connection, &served, &message).await;
                }
            }
        });
        fake
    }

    fn job_was_asked_for(&self) -> bool {
        self.asked.iter().any(|it| it.ends_with("Unit") && it != "LoadUnit")
    }

    fn properties(&self) -> HashMap<&'static str, Variant<'static>> {
        let active = if self.job_was_asked_for() { self.then } else { "active" };
        HashMap::from([
            ("Id", Variant::from("a.service")),
            ("LoadState", Variant::from("loaded")),
            ("ActiveState", Variant::from(active)),
            ("SubState", Variant::from("running")),
            ("CanReload", Variant::from(true)),
            ("CanStart", Variant::from(true)),
        ])
    }
}

async fn answer(connection: &Connection, fake: &Mutex<Fake>, message: &Message) {
    let header = message.header();
    let method = header.member().unwrap().to_string();
    let (ends, result, properties) = {
        let mut fake = fake.lock().unwrap();
        fake.asked.push(method.clone());
        (fake.ends, fake.result, fake.properties())
    };
    let path = |text| ObjectPath::try_from(text).unwrap();
    let end = || {
        let body = (7_u32, path(JOB), "a.service", result);
        let interface = "org.freedesktop.systemd1.Manager";
        async move {
            connection.emit_signal(None::<&str>, MANAGER, interface, "JobRemoved", &body).await
        }
    };
    match method.as_str() {
        "LoadUnit" => connection.reply(&header, &path(UNIT)).await.unwrap(),
        "GetAll" => connection.reply(&header, &properties).await.unwrap(),
        "ReloadUnit" | "RestartUnit" => {
            if ends == JobEnds::Before {
                end().await.unwrap();
            }
            connection.reply(&header, &path(JOB)).await.unwrap();
            if ends == JobEnds::After {
                end().await.unwrap();
            }
        }
        "Subscribe" | "CancelJob" => connection.reply(&header, &()).await.unwrap(),
        _ => {
            let refused = "org.freedesktop.DBus.Error.AccessDenied";
            connection.reply_error(&header, refused, &"not today").await.unwrap();
        }
    }
}
