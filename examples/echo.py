#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The echo client in Python, by ctypes alone: echo.py FILE HOST:PORT TEXT.

What weft_dial() gives is a descriptor of the kernel, so socket.socket(fileno=...) takes it, and
asyncio, ssl and http.client work on that."""
import ctypes
import socket
import sys


class Config(ctypes.Structure):
    """struct weft_config of <weft/node.h>; what is not set is zero and means the default."""
    _fields_ = [("size", ctypes.c_size_t), ("file", ctypes.c_char_p), ("text", ctypes.c_char_p), ("text_len", ctypes.c_size_t),
                ("private_key", ctypes.c_void_p), ("addresses", ctypes.c_void_p), ("addresses_n", ctypes.c_size_t),
                ("peers", ctypes.c_void_p), ("peers_n", ctypes.c_size_t), ("listen_port", ctypes.c_uint16), ("mtu", ctypes.c_uint16),
                ("log", ctypes.c_void_p), ("log_ctx", ctypes.c_void_p), ("log_level", ctypes.c_int),
                ("state_dir", ctypes.c_char_p), ("workers", ctypes.c_uint), ("flags", ctypes.c_uint)]


class Detail(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("code", ctypes.c_int), ("os_errno", ctypes.c_int),
                ("line", ctypes.c_uint32), ("column", ctypes.c_uint32), ("text", ctypes.c_char * 512)]


class DialOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("timeout_ms", ctypes.c_int64), ("flags", ctypes.c_uint),
                ("local", ctypes.c_char_p), ("backlog", ctypes.c_int), ("cancel", ctypes.c_void_p)]


class Node:
    """A started node; use it in a with statement."""

    def __init__(self, file, library="libweft.so.0"):
        self.lib = ctypes.CDLL(library)
        self.lib.weft_node_free.restype = None
        self.handle = ctypes.c_void_p()
        config = Config(size=ctypes.sizeof(Config), file=file.encode())
        self.call("weft_node_new", ctypes.byref(config), ctypes.byref(self.handle))
        self.call("weft_node_start", self.handle)

    def call(self, name, *args):
        why = Detail(size=ctypes.sizeof(Detail))
        if getattr(self.lib, name)(*args, ctypes.byref(why)):
            raise OSError(why.os_errno, why.text.decode())

    def dial(self, network, address, timeout_ms=10000):
        fd = ctypes.c_int()
        options = DialOptions(size=ctypes.sizeof(DialOptions), timeout_ms=timeout_ms)
        self.call("weft_dial", self.handle, network.encode(), address.encode(), ctypes.byref(options), ctypes.byref(fd))
        return socket.socket(fileno=fd.value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.weft_node_free(self.handle)


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: echo.py FILE HOST:PORT TEXT")
    with Node(sys.argv[1]) as node, node.dial("tcp", sys.argv[2]) as s:
        s.sendall(sys.argv[3].encode())
        s.shutdown(socket.SHUT_WR)
        with s.makefile() as answer:
            print(answer.read())


if __name__ == "__main__":
    main()
