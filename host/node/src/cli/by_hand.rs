//! What is left by hand of operations that were given up.

use super::elsewhere::below;
use super::system::RootArgs;
use crate::drift::see;
use crate::journal::{ByHand, STATE};
use crate::tree::{PathError, Tree};

/// What nobody saw to yet.
pub(super) fn left(tree: &Tree) -> Result<Vec<ByHand>, PathError> {
    let mut all = ByHand::read(tree)?;
    all.retain(|it| !see(tree, &it.path).is_ok_and(|there| it.is_mended(&there)));
    Ok(all)
}

/// The same, as it is shown: of the tree of another system with commands that are about it.
pub(super) fn lines(left: &[ByHand], root: &RootArgs) -> Vec<String> {
    let below = |text: String| root.path().map_or(text.clone(), |root| below(&text, root));
    let one_line = tread_model::text::one_line;
    let line = |it: &ByHand| format!("by hand: {}: {}", one_line(&it.path), one_line(&it.why));
    let mut lines: Vec<String> = left.iter().map(line).map(below).collect();
    if !left.is_empty() {
        let forget = below(format!("rm '{STATE}/given-up'"));
        lines
            .push(format!("what was seen to is not listed any more; to forget the rest: {forget}"));
    }
    lines
}
