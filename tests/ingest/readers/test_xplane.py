"""XProf's profiles: their modules, and nothing of their events."""

import io

import pytest

from memhouse.ingest.readers.xplane import Device, read_xspace

from ...support.xplanes import XPLANE, device, metadata, modules_of, part, plane


class Counted(io.BytesIO):
    """Bytes that count how many of them are read."""

    taken = 0

    def read(self, size=-1):
        found = super().read(size)
        self.taken += len(found)
        return found


def read(content):
    return read_xspace(io.BytesIO(content))


def held(content):
    """The modules' names, and the bytes that each is said to have."""
    return [(name, content[at : at + size]) for name, at, size in read(content).modules]


def test_the_modules_of_a_real_session():
    found = modules_of()
    assert [name for name, _ in found] == [
        "jit_f(6)",
        "jit_broadcast_in_dim(2)",
        "jit_broadcast_in_dim(4)",
        "jit_convert_element_type(0)",
    ]
    assert [len(content) for _, content in found] == [37470, 801, 738, 323]
    # Each is an HloProto: its first field is the module, whose first field is the name.
    assert all(content[:1] == b"\x0a" for _, content in found)
    assert b"\x0a\x05jit_f" in found[0][1][:12]
    assert read(XPLANE.read_bytes()).devices == []


def test_the_events_are_not_read():
    events = plane("/host:CPU", part(3, bytes(5_000_000)), part(3, bytes(5_000_000)))
    content = events + metadata([("jit_f(1)", b"the module" * 1000)])
    raw = Counted(content)
    found = read_xspace(raw)
    assert [module.name for module in found.modules] == ["jit_f(1)"]
    # The module itself waits too.
    assert raw.taken < 200


@pytest.mark.parametrize("statistic", ["Hlo Proto", "HLO Proto"])
def test_a_statistic_is_known_by_its_name(statistic):
    content = metadata([("jit_f(-3)", b"one"), ("jit_g (4)", b"two")], statistic)
    assert held(content) == [("jit_f(-3)", b"one"), ("jit_g (4)", b"two")]
    assert held(metadata([("jit_f(3)", b"one")], "another")) == []


def test_devices_say_what_they_are():
    content = (
        device("/device:TPU:0", "TPU v5 Lite")
        + device("/device:TPU:1")
        + device("/device:GPU:0", memory=80 << 30)
        + device("/device:GPU:1", memory=2**63)
        + device("/device:CUSTOM:Megascale Trace", "no device")
    )
    assert read(content).devices == [
        Device("tpu", "TPU v5 Lite"),
        Device("tpu"),
        Device("gpu", memory_bytes=80 << 30),
        Device("gpu"),
    ]


# Of each: the byte at which it is damaged, if that can be told.
WRONG = {
    "empty": (b"", None),
    "text": (b"HloModule jit_f", 2),
    "other fields alone": (part(4, "host"), None),
    "field 0": (part(1, b"\x00\x00"), 2),
    "no field": (part(1, b"\x0f"), 2),
    "endless number": (b"\x08" + b"\xff" * 20, 1),
    "cut short": (metadata([("jit_f(1)", b"one")])[:-1], len(metadata([("jit_f(1)", b"one")])) - 1),
    "too long": (part(1, b"\x12\x7f/host"), 9),
    "long name": (plane("x" * 70_000), None),
}


def test_what_is_no_profile_is_told_with_its_byte():
    for kind, (content, byte) in WRONG.items():
        found = read(content)
        assert found.error is not None, kind
        assert byte is None or f" byte {byte}" in str(found.error), (kind, str(found.error))
        assert found.modules == []


def test_what_precedes_the_damage_stays():
    whole = metadata([("jit_f(1)", b"one")])
    found = read(whole + plane("/host:CPU", part(3, bytes(100)))[:-50])
    assert [module.name for module in found.modules] == ["jit_f(1)"]
    assert f" byte {len(whole) + 65}" in str(found.error)


def test_a_cut_plane_gives_nothing():
    content = metadata([("jit_f(1)", b"one"), ("jit_g(2)", b"two")])
    for end in range(1, len(content)):
        found = read(content[:end])
        assert found.error is not None
        assert found.modules == []
