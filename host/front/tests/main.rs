//! What others reach: ports, warnings and manifests, against a real API server, in
//! one binary, since each would build its own clients for all kinds.

mod admission;
mod agents;
mod agents_memory;
mod http;
mod installations;
mod limits;
mod machines;
mod manifests;
mod support;
