//! What is tested against a real API server: definitions, watches and leases, in one
//! binary, since each would build its own clients for all kinds.

mod api_server;
mod definitions;
mod leadership;
mod rules;
mod support;
mod watching;
