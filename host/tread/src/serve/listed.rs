//! What `/v1` serves.

use tread_cluster::boot_images::Known as BootImagesKnown;
use tread_cluster::index::{Kept, Object};
use tread_cluster::listed;
use tread_cluster::plans::Previewer;
use tread_front::http::{Items, Lists};
use tread_kube::watching::parsed::Parsed;

/// The plans as they were made, and the policies as they stand in the cluster.
pub(super) struct Listed {
    pub(super) previewer: Previewer,
    pub(super) boot_images: BootImagesKnown,
    pub(super) policies: Kept<String, Object>,
}

impl Lists for Listed {
    fn plans(&self) -> Items {
        Box::new(self.previewer.plans().into_iter().filter_map(|plan| json(&*plan)))
    }

    fn plan(&self, name: &str) -> Option<Vec<u8>> {
        let plans = self.previewer.plans();
        json(&**plans.iter().find(|plan| plan.name == name)?)
    }

    fn boot_images(&self) -> Items {
        let Some(known) = self.boot_images.now() else { return Box::new(std::iter::empty()) };
        let all = (0..known.1.resources.len())
            .filter_map(move |at| known.1.resources.get(at).map(|it| json(&it.shown)));
        Box::new(all.flatten())
    }

    fn policies(&self) -> Items {
        let all = self.policies.now().unwrap_or_default();
        let all: Vec<Object> = all.values().cloned().collect();
        let listed = |it: Object| json(&listed::policy(Parsed::clone(&it)).value);
        Box::new(all.into_iter().filter_map(listed))
    }
}

fn json(of: &impl serde::Serialize) -> Option<Vec<u8>> {
    serde_json::to_vec(of).ok()
}
