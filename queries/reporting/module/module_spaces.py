"""The memory spaces of a module: what is told of each in a report."""

from dataclasses import dataclass

from ....schema.stores.base import Store
from ...catalogue import statement

_MAIN = {"tpu": "HBM", "gpu": "device memory"}


@dataclass(frozen=True)
class Space:
    """A memory space. Sizes and times that are not known are None.

    name: what people call it; peak_bytes, peak_time: how full it gets, and when first;
    allocated_bytes: the sum of its allocations; device_memory_bytes: what a program may use of
    the device, of the main memory only; schedule_length: how many positions the schedule has.
    """

    memory_space: int
    name: str
    peak_bytes: int | None
    peak_time: int | None
    allocated_bytes: int | None
    device_memory_bytes: int | None
    schedule_length: int | None
    is_estimated: bool


def module_spaces(store: Store, module_id: int, dump_id: int) -> dict[int, Space]:
    """The memory spaces of a module by number; the dump says which device it is for."""
    found = store.rows(statement("report_spaces"), [module_id, dump_id]).to_pylist()
    return {
        row["memory_space"]: Space(
            row["memory_space"],
            _name(row["memory_space"], row["space_name"], row["platform"]),
            row["peak_bytes"],
            row["peak_time"],
            row["allocated_bytes"],
            row["device_memory_bytes"],
            row["schedule_length"],
            row["origin"] == "estimated",
        )
        for row in found
    }


def main_memory(platform: str | None) -> str:
    """What people call memory space 0 of a platform."""
    return _MAIN.get(platform or "", "memory")


def _name(number: int, space_name: str | None, platform: str | None) -> str:
    if number == 0:
        return main_memory(platform)
    return space_name or f"memory space {number}"
