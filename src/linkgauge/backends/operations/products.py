"""How matrix products are timed. On a device, samples count only once the speed is steady."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering, ProductBuffers
from linkgauge.backends.protocol import Copy, Group, SamplingPolicy
from linkgauge.model.operations.operation import Operation, operations_of, order_of
from linkgauge.model.transfer import PRODUCT_SAMPLES

SAMPLE_SECONDS, SAMPLES_A_GATE = 0.012, 4


class ProductGroup:
    def __init__(self, group: Group, product: ProductBuffers, policy: SamplingPolicy) -> None:
        self._group, self.product, self.policy = group, product, policy
        self.most_loops = group.most_loops
        self.open, self.wait, self.close = group.open, group.wait, group.close
        self.mismatch = product.mismatch

    def arm(self, loops: int, batches: int = 1) -> None:
        self.product.spoil()
        self._group.arm(loops, batches)


def products(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    group, product = on.multiplying(copies, does)
    steps = operations_of(order_of(copies[0].size))
    if product is None or product.on_host:
        policy = SamplingPolicy(loops=1, steps=steps)
    else:
        policy = SamplingPolicy(
            SAMPLE_SECONDS, 1, SAMPLES_A_GATE, steps=steps, level=PRODUCT_SAMPLES
        )
    if product is None:
        group.policy = policy
        return group
    return ProductGroup(group, product, policy)
