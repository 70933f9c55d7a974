//! Comparing two node configs.

#[cfg(test)]
mod build;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tables;
