//! Pools go from one config to the next on a real API server: what is rendered, planned, ordered
//! and told. Agents are played, and ask what real ones ask.

mod agent;
mod clocks;
mod drains;
mod failing;
mod faults;
mod first_boot;
mod fixture;
mod joining;
mod moves;
mod outdated;
mod outside;
mod pools;
mod size;
mod tidy;
