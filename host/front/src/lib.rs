//! What others reach: the ports, the warnings at admission, and the manifests that
//! install it all.

pub mod admission;
pub mod authority;
pub mod http;
pub mod installations;
pub mod manifests;
pub mod names;
pub mod shutdown;
