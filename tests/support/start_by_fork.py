"""Runs a command as a fork of `starter.py`: its socket, then the command.

This process has the streams, the folder and the environment of the command, and ends as it ends.
"""

import array
import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket

asking = socket(AF_UNIX, SOCK_SEQPACKET)
asking.connect(sys.argv[1])
# pathlib would take longer to import than all the rest.
request = marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ)))  # noqa: PTH109
asking.sendmsg([request], [(SOL_SOCKET, SCM_RIGHTS, array.array("i", [0, 1, 2]))])
code = marshal.loads(asking.recv(100))
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
