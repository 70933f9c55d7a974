//! What others reach: ports, warnings and manifests, against a real API server, in
//! one binary, since each would build its own clients for all kinds.

mod admission;
mod http;
mod installations;
mod manifests;
mod support;
