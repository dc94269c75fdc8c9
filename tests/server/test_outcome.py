"""What a round costs, added up by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose

from fedwave.server import UploadLinks
from tests.server.round_costs import COSTS


def test_a_devices_energy_is_computing_reporting_uploading_and_waiting() -> None:
    assert_allclose(COSTS.device_energy_j, [501.1, 42.2])
    assert_allclose(COSTS.energy_j, 543.3)


def test_a_device_is_busy_while_it_listens_computes_and_sends() -> None:
    assert_allclose(COSTS.busy_time_s, [10.5, 24.25])
    assert_allclose(replace(COSTS, downlink_time_s=np.array([1.0, 2.0])).busy_time_s, [11.5, 26.25])


def test_without_uploads_every_link_is_unknown() -> None:
    links = UploadLinks.without_uploads(np.array([3, 5]))
    assert links.num_samples.tolist() == [3, 5]
    for values in (links.channel_gain, links.interference_w, links.sinr, links.rate_bps):
        assert np.isnan(values).tolist() == [True, True]
