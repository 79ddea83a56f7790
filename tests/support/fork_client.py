"""Asks a fork server for a process that has this one's folder, environment and streams, and ends as that one does.

A script for who can only start programs: it imports next to nothing, so that it starts in a few milliseconds. Signals
that ask it to end go on to the process.
"""

import _signal
import _socket
import os
import sys

passed_on = (_signal.SIGINT, _signal.SIGTERM)
_signal.pthread_sigmask(_signal.SIG_BLOCK, passed_on)
connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
connection.connect("\0" + sys.argv[1])
words = [os.fsencode(word) for word in sys.argv[2:]]
pairs = [name + b"=" + value for name, value in os.environb.items()]
message = b"\0".join([os.fsencode(os.getcwd()), str(len(words)).encode(), *words, *pairs])
streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in range(3))
connection.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
pid = connection.recv(64)
with open("/proc/self/comm", "wb") as name:
    name.write(pid)


def pass_on(number, frame):
    try:
        os.kill(int(pid), number)
    except ProcessLookupError:
        return  # it has ended


for number in passed_on:
    _signal.signal(number, pass_on)
_signal.pthread_sigmask(_signal.SIG_UNBLOCK, passed_on)
# They end when the other process ends them.
nothing = os.open(os.devnull, os.O_RDWR)
for stream in range(3):
    os.dup2(nothing, stream)
code = int(connection.recv(64))
if code < 0:
    for number in passed_on:
        _signal.signal(number, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
