"""A filter of system calls (seccomp), for what sandboxes and containers refuse."""

import ctypes
import struct


def refuse(*calls):
    """From here on these system calls, by their numbers, are refused to this process and its
    children (EPERM, by seccomp)."""
    # load the number; one comparison for each call, which leads to the refusal behind them; else
    # allowed
    tests = [(0x15, len(calls) - i, 0, number) for i, number in enumerate(calls)]
    words = [(0x20, 0, 0, 0), *tests, (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)]
    rules = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *w) for w in words))
    program = ctypes.create_string_buffer(struct.pack("=H6xQ", len(words), ctypes.addressof(rules)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
