"""Connects two network namespaces by a link that delivers each packet later.

    python3 relay.py DELAY_MS NAMESPACE NAMESPACE

Each gets a device eth0 with a large MTU, so that few packets carry much: this process moves them.
"""
import ctypes
import fcntl
import os
import queue
import struct
import subprocess
import sys
import threading
import time

libc = ctypes.CDLL(None)
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000


def open_link(name):
    """A new eth0 of the namespace: what it sends is read, and what is written it receives."""
    with open("/proc/self/ns/net") as here, open("/run/netns/" + name) as there:
        libc.setns(there.fileno(), 0)
        link = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(link, TUNSETIFF, struct.pack("16sH", b"eth0", IFF_TUN | IFF_NO_PI))
        libc.setns(here.fileno(), 0)
    subprocess.run(["ip", "-n", name, "link", "set", "eth0", "mtu", "65000", "txqueuelen", "1000"], check=True)
    return link


def move(source, target, delay):
    """Moves packets, in their order."""
    moving = queue.SimpleQueue()

    def deliver():
        while True:
            due, packet = moving.get()
            time.sleep(max(0, due - time.monotonic()))
            try:
                os.write(target, packet)
            except OSError:
                pass  # the other end is not up yet, or gone: a link loses packets then

    threading.Thread(target=deliver, daemon=True).start()
    while True:
        packet = os.read(source, 65536)
        moving.put((time.monotonic() + delay, packet))


links = [open_link(name) for name in sys.argv[2:]]
seconds = float(sys.argv[1]) / 1e3
threading.Thread(target=move, args=(links[1], links[0], seconds), daemon=True).start()
move(links[0], links[1], seconds)
