
#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::@TESTIMPORTS@;

@CONSTANTS@