"""Messages between two ranks: ``send`` and ``recv`` with tags, which do not block.

The library's messages come in the order in which they were sent, block, and have no tags. So there is a sending thread
for each destination, and a receiving thread for each source; both start when they are needed. Ahead of a tensor goes a
header with its tag, its size and its type. A message that comes before a receive of its tag is kept.
"""

from __future__ import annotations

import collections
import ctypes
import queue
import struct
import threading
from typing import Any, NamedTuple, Optional

import torch

from ._elements import U8
from ._errors import again
from ._layout import read, shown
from ._work import Message, Named

HEADER = struct.Struct("<qq112s")
"""Tag, bytes, and the tensor as it is shown in a message."""


_LEFT = "the group was left before the message came"


class _Post(NamedTuple):
    """A receive that waits for its message."""

    tag: int
    tensor: torch.Tensor
    work: Message


class _Kept(NamedTuple):
    """A message without a receive so far."""

    sent: str
    data: torch.Tensor


class Mail:
    """The messages of one group."""

    def __init__(self, world: Any, rank: int, named: Named) -> None:
        self._world = world
        self._rank = rank
        self._named = named
        self._starting = threading.Lock()
        self._to: dict[int, _Sender] = {}
        self._from: dict[int, _Receiver] = {}

    def send(self, tensor: torch.Tensor, to: int, tag: int) -> Message:
        """Sends a tensor. The tensor must not be written until the returned work is done."""
        call = f"send of {shown(tensor)} to rank {to} with tag {tag}"
        work = Message(call, tensor, self._named)
        whole = tensor.detach().cpu().contiguous() if tensor.is_cuda else read(tensor)
        if to == self._rank:
            data = _bytes(whole).clone()
            self._receiver(to).deliver(tag, _Kept(shown(tensor), data))
            work.finish(None)
            return work
        with self._starting:
            sender = self._to.get(to)
            if sender is None:
                sender = self._to[to] = _Sender(self._world, to)
        sender.put(tag, whole, work)
        return work

    def recv(self, tensor: torch.Tensor, source: int, tag: int) -> Message:
        """Receives the next message with that tag from that rank into a tensor."""
        call = f"recv of {shown(tensor)} from rank {source} with tag {tag}"
        work = Message(call, tensor, self._named)
        landed = tensor
        if tensor.is_cuda:
            landed = torch.empty(tensor.shape, dtype=tensor.dtype)
            work.copy = lambda: tensor.detach().copy_(landed)
        self._receiver(source).post(_Post(tag, landed, work))
        return work

    def _receiver(self, source: int) -> _Receiver:
        with self._starting:
            receiver = self._from.get(source)
            if receiver is None:
                own = source == self._rank
                receiver = self._from[source] = _Receiver(None if own else self._world, source)
            return receiver

    def close(self) -> bool:
        """Ends the threads when all messages are sent. Returns whether no thread still waits in a receive."""
        for sender in self._to.values():
            sender.close()
        return all([receiver.close() for receiver in self._from.values()])


class _Sender:
    """The thread that sends to one rank."""

    def __init__(self, world: Any, to: int) -> None:
        self._world = world
        self._rank = to
        self._jobs: queue.SimpleQueue[Optional[tuple[int, torch.Tensor, Message]]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"roundelay send {to}", daemon=True)
        self._thread.start()

    def put(self, tag: int, tensor: torch.Tensor, work: Message) -> None:
        self._jobs.put((tag, tensor, work))

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            tag, tensor, work = job
            size = tensor.numel() * tensor.element_size()
            header = ctypes.create_string_buffer(HEADER.pack(tag, size, shown(tensor).encode()[:112]), HEADER.size)
            error: Optional[Exception] = None
            try:
                self._world.send(ctypes.addressof(header), HEADER.size, U8, self._rank)
                if size:
                    self._world.send(tensor.data_ptr(), size, U8, self._rank)
            except Exception as raised:
                error = work.named(work.call, raised)
            work.finish(error)
            del job, tensor, work

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()


class _Receiver:
    """The thread that receives from one rank, the messages that have come, and the waiting receives.

    A rank that sends to itself needs no thread.
    """

    def __init__(self, world: Any, source: int) -> None:
        self._world = world
        self._rank = source
        self._posts: list[_Post] = []
        self._kept: dict[int, collections.deque[_Kept]] = {}
        self._closed = False
        self._receiving = False
        """Whether the thread is in the middle of a receive, or about to be."""
        self._failed: Optional[Exception] = None
        self._changed = threading.Condition()
        self._thread: Optional[threading.Thread] = None
        if world is not None:
            self._thread = threading.Thread(target=self._run, name=f"roundelay recv {source}", daemon=True)
            self._thread.start()

    def post(self, post: _Post) -> None:
        """Takes a kept message, or adds a receive that waits for a message."""
        with self._changed:
            kept = self._kept.get(post.tag)
            message = kept.popleft() if kept else None
            failed = self._failed
            if message is None and failed is None:
                self._posts.append(post)
                self._changed.notify()
                return
        if message is not None:
            _hand(post, message)
        elif failed is not None:
            _refuse(post.work, failed)

    def deliver(self, tag: int, message: _Kept) -> None:
        """Gives a complete message to its receive, or keeps it."""
        with self._changed:
            post = self._taken(tag)
            if post is None:
                self._kept.setdefault(tag, collections.deque()).append(message)
        if post is not None:
            _hand(post, message)

    def _taken(self, tag: int) -> Optional[_Post]:
        """Removes and returns the first receive that waits for the tag."""
        for at, post in enumerate(self._posts):
            if post.tag == tag:
                return self._posts.pop(at)
        return None

    def _run(self) -> None:
        header = ctypes.create_string_buffer(HEADER.size)
        while True:
            with self._changed:
                self._receiving = False
                self._changed.wait_for(lambda: self._posts or self._closed)
                self._receiving = not self._closed
            if not self._receiving:
                self._fail(None, RuntimeError(_LEFT))
                return
            post: Optional[_Post] = None
            try:
                self._world.recv(ctypes.addressof(header), HEADER.size, U8, self._rank)
                tag, size, text = HEADER.unpack(header.raw)
                sent = text.rstrip(b"\0").decode(errors="replace")
                with self._changed:
                    post = self._taken(tag)
                if post is not None and post.tensor.is_contiguous() and _fits(post.tensor, sent, size):
                    if size:
                        self._world.recv(post.tensor.data_ptr(), size, U8, self._rank)
                    post.work.finish(None)
                    continue
                data = torch.empty(size, dtype=torch.uint8)
                if size:
                    self._world.recv(data.data_ptr(), size, U8, self._rank)
            except Exception as error:
                self._fail(post, error)
                return
            if post is not None:
                _hand(post, _Kept(sent, data))
            else:
                self.deliver(tag, _Kept(sent, data))

    def _fail(self, post: Optional[_Post], error: Exception) -> None:
        with self._changed:
            self._failed = error
            posts, self._posts = self._posts, []
        for waiting in ([post] if post is not None else []) + posts:
            _refuse(waiting.work, error)

    def close(self) -> bool:
        """Ends the thread. Returns whether it was not in the middle of a receive."""
        with self._changed:
            self._closed = True
            if self._receiving:
                return False
            self._changed.notify()
        if self._thread is None:
            self._fail(None, RuntimeError(_LEFT))
        else:
            self._thread.join()
        return True


def _refuse(work: Message, error: Exception) -> None:
    """Ends a receive with an error that other receives end with, too."""
    work.finish(work.named(work.call, again(error)))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a contiguous tensor."""
    return tensor.detach().reshape(-1).view(torch.uint8)


def _fits(tensor: torch.Tensor, sent: str, size: int) -> bool:
    """Whether a tensor takes a message: its element type and its number of elements are those of the message."""
    return tensor.numel() * tensor.element_size() == size and sent.split("[")[0] == shown(tensor).split("[")[0]


def _hand(post: _Post, message: _Kept) -> None:
    """Copies a message to the tensor of its receive."""
    error: Optional[Exception] = None
    if _fits(post.tensor, message.sent, message.data.numel()):
        with torch.no_grad():
            post.tensor.copy_(message.data.view(post.tensor.dtype).view(post.tensor.shape))
    else:
        error = ValueError(
            f"the message is {message.sent}, the tensor {shown(post.tensor)}: give one of its type with as many "
            "elements; the message is gone, the next receive gets the next one"
        )
        post.work.named(post.work.call, error)
    post.work.finish(error)
