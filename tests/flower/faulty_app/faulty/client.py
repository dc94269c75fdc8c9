from fedwave.flower import client_app
from tests.flower.bad_replies import fail_as_planned
from tests.flower.toy import device_of

app = client_app(device_of, report_mods=[fail_as_planned], upload_mods=[fail_as_planned])
