"""Hands the rows of large modules from reading processes to the writing process.

A reading process puts the rows into memory without a name in any file system and sends the
memory's descriptor; the writing process maps the memory. So the rows are copied once, and
nothing stays behind, however the processes end.
"""

import errno
import mmap
import os
import socket
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from ..schema.errors import WarehouseError

# The mapped memory of each module keeps a descriptor open, and a process may have few of them.
LARGE_BYTES = 4 << 20

_NUMBER_BYTES = 8
_TABLE = b"table"


class HandOver:
    """The writing process's end; `sending` is the end of all reading processes."""

    def __init__(self) -> None:
        self._receiving, self.sending = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._receiving.setblocking(False)
        # None where this process had no descriptor left.
        self._arrived: dict[int, mmap.mmap | None] = {}
        self._lock = threading.Lock()

    def receive(self) -> None:
        """Map all memory that was sent: few messages may wait, then senders wait too."""
        with self._lock, suppress(BlockingIOError):
            while True:
                number, descriptors, *_ = socket.recv_fds(self._receiving, _NUMBER_BYTES, 1)
                self._arrived[int.from_bytes(number)] = _mapped(descriptors)

    def take(self, number: int) -> dict[str, pa.Table]:
        """The tables that were sent under this number; their memory is freed with them.

        Raises WarehouseError if this process had too many open files to receive them.
        """
        self.receive()
        memory = self._arrived.pop(number)
        if memory is None:
            raise WarehouseError("too many open files: raise `ulimit -n`, or use --jobs 1")
        source = pa.BufferReader(pa.py_buffer(memory))
        tables = {}
        while source.tell() < source.size():
            table = pa.ipc.open_stream(source).read_all()
            name = table.schema.metadata[_TABLE].decode()
            tables[name] = table.replace_schema_metadata()
        return tables

    def close(self) -> None:
        """Close both ends."""
        self._receiving.close()
        self.sending.close()


def send(sending: socket.socket, number: int, tables: Mapping[str, pa.Table]) -> None:
    """Send the tables of a module under a number."""
    with os.fdopen(_nameless_memory(), "wb") as memory:
        for name, table in tables.items():
            schema = table.schema.with_metadata({_TABLE: name})
            with pa.ipc.new_stream(memory, schema) as stream:
                stream.write_table(table)
        memory.flush()
        socket.send_fds(sending, [number.to_bytes(_NUMBER_BYTES)], [memory.fileno()])


def _mapped(descriptors: Sequence[int]) -> mmap.mmap | None:
    """The memory of a message's descriptor, None if this process has too many open files."""
    try:
        # The system drops a descriptor for which there is no room, and a map needs another one.
        return mmap.mmap(descriptors[0], 0, access=mmap.ACCESS_READ) if descriptors else None
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        return None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _nameless_memory() -> int:
    """A descriptor of empty memory; where the system has none, of a file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("memhouse")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
