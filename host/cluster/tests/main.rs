//! What is tested against a real API server, and with it: in one binary, since
//! each would build its own clients for all kinds.

mod boot_images;
mod installations;
mod plans;
mod registry;
