"""What the devices compute is compared to the bit here, too."""

from tests.devices.conftest import _one_thread  # noqa: F401 - a fixture for all tests of this folder
