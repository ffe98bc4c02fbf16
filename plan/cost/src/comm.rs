//! How long collectives of several ranks take, and the lane that runs them.
//!
//! # Source
//! The α–β model: Hockney, *The communication challenge for MPP*, Parallel Computing 20(3), 1994; its form for gathers and
//! reductions: Thakur, Rabenseifner and Gropp, *Optimization of Collective Communication Operations in MPICH*, IJHPCA 19(1), 2005.

use lmsc_schedule::problem::{COMPUTE, Lane, MOST};

/// The lane of collectives in the problems that this program makes: the first one after [`COMPUTE`].
pub const COMM: u8 = COMPUTE + 1;

/// The lane of collectives.
pub fn comm_lane() -> Lane {
    Lane::new("comm")
}

/// The network between ranks: nodes of several ranks each, and the links in a node and between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its name.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// Ranks in a node.
    pub node_ranks: u64,
    /// Fixed time of every collective.
    pub start_nanos: u64,
    /// Time of a hop in a node and of one between nodes: there are as many as the logarithm of the ranks, or nodes, to base 2.
    pub hop_nanos: (u64, u64),
    /// Bytes per second that a rank sends in a node, and between nodes.
    pub bytes_per_second: (u64, u64),
}

/// The networks that are known by name. Their numbers are assumed, in the size of machines of these kinds.
pub static NETWORKS: [Network; 2] = [
    Network {
        name: "dgx",
        description: "nodes of 8 on NVLink at 300 GB/s, 40 GB/s a rank between nodes",
        node_ranks: 8,
        start_nanos: 10_000,
        hop_nanos: (6_000, 12_000),
        bytes_per_second: (300_000_000_000, 40_000_000_000),
    },
    Network {
        name: "ethernet",
        description: "nodes of 8 on PCI Express at 20 GB/s, 3 GB/s a rank between nodes",
        node_ranks: 8,
        start_nanos: 20_000,
        hop_nanos: (10_000, 40_000),
        bytes_per_second: (20_000_000_000, 3_000_000_000),
    },
];

impl Network {
    /// The time that a collective takes without its bytes, α.
    pub fn alpha_nanos(&self, ranks: u64) -> u64 {
        let hops = |count: u64| u64::from(count.max(1).next_power_of_two().trailing_zeros());
        let nodes = ranks.div_ceil(self.node_ranks.max(1));
        self.start_nanos
            + self.hop_nanos.0 * hops(ranks.min(self.node_ranks))
            + self.hop_nanos.1 * hops(nodes)
    }

    /// The time of a gather, a reduction with scattered results, or an exchange of all with all, whose whole result or operand has
    /// these bytes: α + β · bytes · (n − 1) / n. A reduction whose result everyone has takes twice the second part.
    pub fn nanos(&self, bytes: u64, ranks: u64) -> u64 {
        let (within, between) = self.bytes_per_second;
        let rate = if ranks <= self.node_ranks { within } else { between };
        let moved = u128::from(bytes) * u128::from(ranks.saturating_sub(1)) / u128::from(ranks.max(1));
        let nanos = (moved * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
        self.alpha_nanos(ranks).saturating_add(nanos.min(u128::from(MOST)) as u64)
    }

    /// The bytes of a bucket whose α is at most a tenth of the time of its bytes.
    pub fn bucket_bytes(&self, ranks: u64) -> u64 {
        let (within, between) = self.bytes_per_second;
        let rate = if ranks <= self.node_ranks { within } else { between };
        (u128::from(self.alpha_nanos(ranks)) * 10 * u128::from(rate) / 1_000_000_000) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_take_alpha_and_the_bytes_of_the_other_ranks() {
        let dgx = NETWORKS[0];
        assert_eq!(
            [1, 2, 8, 16, 1024].map(|n| dgx.alpha_nanos(n)),
            [10_000, 16_000, 28_000, 40_000, 112_000]
        );
        // 8 ranks in a node: 7/8 of 2.4 GB at 300 GB/s.
        assert_eq!(dgx.nanos(2_400_000_000, 8), 28_000 + 7_000_000);
        assert_eq!(dgx.nanos(2_400_000_000, 16), 40_000 + 56_250_000);
        assert_eq!(dgx.nanos(0, 1), 10_000);
        let bucket = dgx.bucket_bytes(64);
        assert!(dgx.nanos(bucket, 64) <= 11 * dgx.alpha_nanos(64));
        let slowest = Network { bytes_per_second: (1, 1), ..dgx };
        assert_eq!(slowest.nanos(u64::MAX, 2), 16_000 + MOST);
    }
}
