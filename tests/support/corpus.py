"""Packs the sample of `benchmarks/corpus`: `python -m tests.support.corpus OUT`.

OUT is where `benchmarks/corpus_table.py` compiled the programs.
"""

import io
import re
import sys
import tarfile
from pathlib import Path

import zstandard

from .dumps import DATA

ARCHIVE = DATA / "corpus.tar.zst"
PROGRAMS = (
    "new-cpu/jax_md_nve",
    "new-cpu/keras_images",
    "new-cpu/nnx_lora",
    "new-7x/haiku_lstm",
    "new-v5e/jax_experts",
    "new-v5e/pallas_splash",
    "old-cpu/haiku_lstm",
    "old-v5e/jax_decode",
    "tensorflow-cpu/tensorflow_lstm",
    "torch-cpu/torch_images",
)
# Where the packages and the programs lay.
_FOLDER = re.compile(rb'"/[^"\n]*?/(?=lib/python\d[^"\n]*?"|corpus/\w+\.py")')


def main(out: Path) -> None:
    """Write the archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for program in PROGRAMS:
            texts = sorted((out / "dumps" / program).glob("*.txt"))
            for path in [out / "facts" / f"{program}.json", *texts]:
                text = _FOLDER.sub(b'"', path.read_bytes())
                entry = tarfile.TarInfo(path.relative_to(out).as_posix())
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text))
    ARCHIVE.write_bytes(zstandard.ZstdCompressor(level=19).compress(packed.getvalue()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
