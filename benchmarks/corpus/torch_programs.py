"""Programs of PyTorch/XLA on CPU, compiled as they run; the last step is what is kept."""

from typing import Any

import torch
import torch_xla

from .registry import Place, Ran, program


def train(model: Any, optimizer: Any, *batch: Any) -> Ran:
    """Three training steps of a model; roles are not compared, as arguments have no names."""
    device = torch_xla.device()
    model = model.to(device)
    x, y = (tensor.to(device) for tensor in batch)
    chosen = optimizer(model.parameters())

    def run() -> None:
        for _ in range(3):
            chosen.zero_grad()
            logits = model(x)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), y.flatten())
            loss.backward()
            chosen.step()
            torch_xla.sync()

    return Ran(run, r"SyncTensorsGraph\.\d+", [])


@program("cpu", environments=("torch",))
def torch_images(place: Place) -> Ran:
    """A convolutional network with batch normalisation, and momentum."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(64, 128, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(128 * 13 * 13, 10),
    )
    return train(
        model,
        lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9),
        torch.zeros(32, 3, 32, 32),
        torch.zeros(32, dtype=torch.long),
    )


class Decoder(torch.nn.Module):
    """A decoder of a few layers."""

    def __init__(self, layers: int, width: int, words: int) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(words, width)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(
                width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.words = torch.nn.Linear(width, words)

    def forward(self, tokens: Any) -> Any:
        """The logits of the next tokens."""
        x = self.embed(tokens)
        mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.words(x)


@program("cpu", environments=("torch",))
def torch_transformer(place: Place) -> Ran:
    """A decoder of four layers, with AdamW."""
    tokens = torch.zeros(8, 64, dtype=torch.long)
    return train(Decoder(4, 128, 4096), torch.optim.AdamW, tokens, tokens)
