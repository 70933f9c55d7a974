//! Kubernetes: the custom resources of tread, and the controllers that read and
//! write them.

pub mod api;
pub mod policies;
