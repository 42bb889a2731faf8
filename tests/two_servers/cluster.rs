//! Section 10 of the list: what only a cluster of database nodes can get wrong.

use anyhow::Result;
use treeline_core::Kind;

use crate::holds::{BY_A, BY_B};
use crate::parent::both_live;
use crate::race::{A, B, Race, dropped};
use crate::rows::{LEAVES, Needs, Row};

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "r_cluster_1_what_one_node_has_answered_the_other_shows",
        kinds: &[Kind::Model],
        needs: Needs::Cluster,
        tell: |race| Box::pin(r_cluster_1_what_one_node_has_answered_the_other_shows(race)),
    },
    Row {
        name: "r_cluster_2_who_makes_the_tables_at_one_node_is_waited_for_at_the_other",
        kinds: &[Kind::Metalake],
        needs: Needs::EmptyCluster,
        tell: |race| Box::pin(r_cluster_2_who_makes_the_tables_at_one_node_is_waited_for_at_the_other(race)),
    },
    Row {
        name: "r_cluster_3_a_plain_drop_takes_along_nothing_that_came_after_its_look",
        kinds: LEAVES,
        needs: Needs::Cluster,
        tell: |race| Box::pin(r_cluster_3_a_plain_drop_takes_along_nothing_that_came_after_its_look(race)),
    },
];

/// A node applies what another has committed a little after that has been answered: the later, the more it is. So this is
/// a drop of many, and B looks at once.
async fn r_cluster_1_what_one_node_has_answered_the_other_shows(race: &mut Race) -> Result<()> {
    for round in 0..race.rounds(20, 3) {
        let schema = race.make(Kind::Schema, &format!("s{round}")).await?;
        let models: Vec<_> = (0..200)
            .map(|number| schema.child(Kind::Model, race.name(&format!("x{number}"))))
            .collect();
        let creates: Vec<_> = models
            .iter()
            .map(|model| race.meanwhile(A, &model.create()))
            .collect();
        for create in creates {
            create.answers().await?.ok()?;
        }
        dropped(&race.done(A, &schema.drop()).await?, true)?;
        race.tell(B, &models[199].load()).await?.refused(404, 1003)?;
        race.done(B, &schema.create()).await?;
    }
    Ok(())
}

/// The race was over when this pair had started: one was held as it began to make the tables, the other was seen to wait
/// at its own node. Both have come through.
async fn r_cluster_2_who_makes_the_tables_at_one_node_is_waited_for_at_the_other(
    race: &mut Race,
) -> Result<()> {
    let (x, y) = (race.place("x").await?, race.place("y").await?);
    race.done(A, &x.create()).await?;
    race.done(B, &y.create()).await?;
    let facts = race.facts().await?;
    facts.is_the_only_one(&x, BY_A)?;
    facts.is_the_only_one(&y, BY_B)
}

/// A's lock keeps no child out that is created at the other node. A has looked, and must not look again as a cascade does.
async fn r_cluster_3_a_plain_drop_takes_along_nothing_that_came_after_its_look(
    race: &mut Race,
) -> Result<()> {
    let (parent, child) = race.family("p").await?;
    let a = race.hold(A, &parent.drop_plainly(), "drop.allowed").await?;
    let b = race.meanwhile(B, &child.create());
    let met = race.meet(a, b).await?;
    met.b.ok()?;
    met.a.refused(409, 1005)?;
    both_live(&race.facts().await?, &parent, &child)
}
