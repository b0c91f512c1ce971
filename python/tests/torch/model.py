"""A small model of text, trained on a text that is here: bytes of the license, of which each predicts the next."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

WIDTH, LENGTH, BATCH = 64, 32, 8
TEXT = torch.tensor(list(Path(__file__).parents[3].joinpath("LICENSE-APACHE").read_bytes()))


class Model(nn.Module):
    """Two layers of a transformer. The norm of batches has buffers, which are broadcast."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(128, WIDTH)
        self.place = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.norm = nn.BatchNorm1d(WIDTH)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, batch_first=True) for _ in range(2))
        self.head = nn.Linear(WIDTH, 128)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        hidden = self.norm((self.embed(text) + self.place).transpose(1, 2)).transpose(1, 2)
        ahead = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        for block in self.blocks:
            hidden = block(hidden, src_mask=ahead, is_causal=True)
        return self.head(hidden)


def made() -> Model:
    """The same model at every rank and in every run."""
    torch.manual_seed(7)
    return Model()


def batch(rank: int, nranks: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The training data of a rank in a step: the text, and the next bytes."""
    starts = [((step * nranks + rank) * BATCH + at) * 29 % (len(TEXT) - LENGTH - 1) for at in range(BATCH)]
    return torch.stack([TEXT[s : s + LENGTH] for s in starts]), torch.stack([TEXT[s + 1 : s + LENGTH + 1] for s in starts])


def step(model: nn.Module, optimizer: torch.optim.Optimizer, rank: int, nranks: int, number: int) -> float:
    """One step; the loss."""
    text, following = batch(rank, nranks, number)
    loss = nn.functional.cross_entropy(model(text).flatten(0, 1), following.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
