//! How a command reads what is named, prints, and ends. It knows no policy and no
//! cluster.

pub mod exit;
pub mod inputs;
pub mod outputs;
pub mod print;
pub mod sentence;
pub mod table;
