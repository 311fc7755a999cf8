"""What a user sets besides the program: its health, the device, the compiler, flags, names."""

import re

from .phrases import Phrase
from .sides import VERSIONS, Pair

_LISTED_FLAGS = 2
# Some versions of libtpu print a number for the device's name: it names no other device.
_SCRAMBLED = re.compile(r"[0-9a-f]{8,}\b")
_STATUS = {"failed": "failed", "partial": "is partial"}


def health(pair: Pair) -> list[Phrase]:
    """Whether one side failed, ran out of memory or is known in part only."""
    a, b = pair.a.dump, pair.b.dump
    told = []
    if a["oom"] != b["oom"]:
        told.append(
            "XLA runs out of memory now" if b["oom"] else "XLA no longer runs out of memory"
        )
    if a["status"] != b["status"]:
        told += [f"the dump before {_STATUS[a['status']]}"] if a["status"] in _STATUS else []
        told += [f"this dump {_STATUS[b['status']]}"] if b["status"] in _STATUS else []
    estimated = [side["origin"] == "estimated" for side in (a, b)]
    if pair.has_modules and estimated[0] != estimated[1]:
        told.append("figures are estimated" if estimated[1] else "figures were estimated before")
    return [Phrase("health", text) for text in told]


def device(pair: Pair) -> list[Phrase]:
    """Another device, or another number of them."""
    a, b = pair.a.dump, pair.b.dump
    names = (a["device_kind"], b["device_kind"])
    # Another reader may have another name for one device.
    is_other = pair.differs("device_kind") and not pair.differs("reader_version")
    if is_other and not any(map(_SCRAMBLED.match, names)):
        return [Phrase("device", f"device {a['device_kind']} → {b['device_kind']}")]
    if pair.differs("num_partitions"):
        return [Phrase("device", f"{a['num_partitions']} → {b['num_partitions']} partitions")]
    return []


def compiler_and_flags(pair: Pair) -> list[Phrase]:
    """Another compiler, else the flags that differ.

    Another compiler has other defaults, so its flags are only counted.
    """
    told = []
    if pair.differs("compiler"):
        told.append(f"compiler {pair.a.dump['compiler']} → {pair.b.dump['compiler']}")
    told += _versions(pair)
    if told:
        count = len(pair.flags)
        counted = f" ({count} {'flag' if count == 1 else 'flags'})" if count else ""
        return [Phrase("compiler", f"{', '.join(told)}{counted}", told[0])]
    if not pair.flags:
        return []
    listed = [
        f"{flag.name} {'unset' if flag.a is None else flag.a} → "
        f"{'unset' if flag.b is None else flag.b}"
        for flag in pair.flags[:_LISTED_FLAGS]
    ]
    names = [flag.name for flag in pair.flags]
    if len(names) == 1:
        return [Phrase("flag", f"flag {listed[0]}")]
    text = f"{len(names)} flags: {', '.join(listed)}"
    more = ", …" if len(names) > _LISTED_FLAGS else ""
    return [Phrase("flag", f"{text}{more}", f"{len(names)} flags: {listed[0]}, …")]


def _versions(pair: Pair) -> list[str]:
    """The versions that the runs are labelled with, where they differ."""
    told: list[str] = []
    for key in VERSIONS:
        a, b = pair.a.versions.get(key), pair.b.versions.get(key)
        if None in (a, b) or a == b or (key == "libtpu" and pair.differs("compiler")):
            continue
        # jaxlib mostly has the version of jax.
        if key == "jaxlib" and told == [f"jax {a} → {b}"]:
            continue
        told.append(f"{key} {a} → {b}")
    return told


def renamed(pair: Pair) -> list[Phrase]:
    """Another name of what is known to be the same program, or to take the same arguments."""
    a, b = pair.a.dump, pair.b.dump
    is_one = a["run_id"] != b["run_id"] and a["platform"] == b["platform"]
    is_one = is_one and any(
        a[key] is not None and a[key] == b[key]
        for key in ("program_id", "entry_signature", "skeleton_id")
    )
    if not is_one:
        return []
    names = [a[key] for key in ("workload", "module_name") if a[key] != b[key]]
    return [Phrase("renamed", f"renamed from {'/'.join(names)}")] if names else []
