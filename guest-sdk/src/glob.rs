//! Globs, as in claims.

/// Whether the whole of `name` matches `pattern`, by the rules of claims: `*`
/// and `?` stay within one path component, `**` crosses components, `[]` and
/// `{}` are as usual, upper and lower case differ.
///
/// ```
/// use tread_guest_sdk::glob;
/// assert!(glob::matches("/etc/app.d/*.conf", "/etc/app.d/10-a.conf"));
/// assert!(!glob::matches("/etc/*", "/etc/app.d/10-a.conf"));
/// assert!(glob::matches("/etc/**", "/etc/app.d/10-a.conf"));
/// ```
pub fn matches(pattern: &str, name: &str) -> bool {
    fast_glob::glob_match(pattern, name)
}
