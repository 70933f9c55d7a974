//! What an agent makes of the orders that it hears of.

use super::guards::{AllGuards, Guards};
use super::order::{Operation, Order, Phase, Report, Stage};

/// What an agent knows by its journal, which outlives it and every boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Local {
    /// The operation that it is in, or was in last.
    pub operation: Option<(Operation, Phase)>,
    /// The highest token of an order that it took.
    pub token: u32,
}

impl Local {
    /// What it knows once it heard of this order: late, again, or never before.
    #[must_use]
    pub fn hears(self, order: &Order) -> Local {
        self.hears_with::<AllGuards>(order)
    }

    /// The same, with only these guards.
    #[must_use]
    pub fn hears_with<G: Guards>(self, order: &Order) -> Local {
        match self.operation {
            Some((operation, phase)) if operation == order.operation => {
                self.hears_again::<G>(order, phase)
            }
            // What was begun is finished first.
            Some((_, phase)) if !phase.is_end() && phase != Phase::Waiting => self,
            _ if order.token <= self.token && G::ONCE => self,
            _ => match order.stage {
                Stage::Go => self.takes(order, Phase::Waiting),
                // It never had it, and never will.
                Stage::Withdrawn => self.takes(order, Phase::TurnedBack),
                Stage::Prepare | Stage::Closed => self,
            },
        }
    }

    fn hears_again<G: Guards>(self, order: &Order, phase: Phase) -> Local {
        match order.stage {
            _ if phase.is_end() && G::ONCE => self,
            Stage::Go if phase.is_end() => self.takes(order, Phase::Waiting),
            Stage::Withdrawn if phase == Phase::Waiting => self.takes(order, Phase::TurnedBack),
            _ => self.takes(order, phase),
        }
    }

    fn takes(self, order: &Order, phase: Phase) -> Local {
        let token = self.token.max(order.token);
        Local { operation: Some((order.operation, phase)), token }
    }

    /// What it reports.
    pub fn report(self) -> Option<Report> {
        let token = self.token;
        self.operation.map(|(operation, phase)| Report { operation, phase, token })
    }
}
