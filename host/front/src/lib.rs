//! What others reach: the ports, the warnings at admission, and the manifests that
//! install it all.

pub mod admission;
pub mod http;
pub mod installations;
pub mod manifests;
mod names;
pub mod shutdown;
