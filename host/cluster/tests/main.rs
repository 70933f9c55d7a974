//! What is tested against a real API server, and with it: in one binary, since
//! each would build its own clients for all kinds.

mod admission;
mod api_server;
mod boot_images;
mod definitions;
mod http;
mod leadership;
mod manifests;
mod plans;
mod registry;
mod rules;
mod support;
mod watching;
