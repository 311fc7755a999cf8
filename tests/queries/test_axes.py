"""Which dimension is which, by the attributes that XLA prints."""

import pytest

from memhouse.advice.dimensions import RESULT, links

DOT = {
    "lhs_batch_dims": "{0}",
    "lhs_contracting_dims": "{2}",
    "rhs_batch_dims": "{0}",
    "rhs_contracting_dims": "{1}",
}
GATHER = {"offset_dims": "{1}", "collapsed_slice_dims": "{0}", "index_vector_dim": "1"}
SCATTER = {"update_window_dims": "{1}", "inserted_window_dims": "{0}", "index_vector_dim": "1"}
BATCHED = {"size": "8", "stride": "7", "lhs_dilate": "8"}


def convolution(window):
    text = " ".join(f"{name}={value}" for name, value in window.items())
    return {"window": f"{{{text}}}", "dim_labels": "0bf_0io->0bf"}


# Of sides with the sizes 8, 9, …: which have one letter are linked. A result stands last.
CASES = [
    ("broadcast", {"dimensions": "{1}"}, ["b", "ab"], [(3,), (2, 3)]),
    ("broadcast", {"dimensions": "{}"}, ["", "ab"], [(), (2, 3)]),
    ("transpose", {"dimensions": "{2,0,1}"}, ["abc", "cab"], [(4, 4, 4), (4, 4, 4)]),
    ("reduce", {"dimensions": "{0,2}"}, ["abc", "b"], [(4, 4, 4), (4,)]),
    ("dot", DOT, ["bmk", "bkn", "bmn"], [(8, 8, 8), (8, 8, 8), (8, 8, 8)]),
    ("gather", GATHER, ["ab", "cd", "cb"], [(9, 8), (8, 1), (8, 8)]),
    ("gather", GATHER, ["ab", "cd", "ce"], [(9, 8), (8, 1), (8, 4)]),
    ("scatter", SCATTER, ["ab", "cd", "cb"], [(9, 8), (8, 1), (8, 8)]),
    # A batch dimension, one that is added up, one that only the kernel has, and a true window.
    ("convolution", convolution(BATCHED), ["xbf", "xfo", "xbo"], [(8, 2, 2), (8, 2, 2), (8, 2, 2)]),
    (
        "convolution",
        convolution({"size": "8"}),
        ["xbf", "xfo", "ybo"],
        [(8, 2, 2), (8, 2, 2), (1, 2, 2)],
    ),
    (
        "convolution",
        convolution({"size": "8"}),
        ["xbf", "yfo", "ybo"],
        [(1, 2, 2), (8, 2, 2), (8, 2, 2)],
    ),
    (
        "convolution",
        convolution({"size": "3"}),
        ["xbf", "yfo", "xbo"],
        [(8, 2, 2), (3, 2, 2), (8, 2, 2)],
    ),
]


@pytest.mark.parametrize(("opcode", "values", "letters", "sizes"), CASES)
def test_the_same_letter_is_the_same_dimension(opcode, values, letters, sizes):
    sides = [*range(len(letters) - 1), 2 if opcode == "scatter" else RESULT]
    found = links(opcode, values, dict(zip(sides, sizes, strict=True)))
    of = dict(zip(sides, letters, strict=True))
    size = dict(zip(sides, sizes, strict=True))
    same = found.alike + [
        (one, other)
        for one, other in found.windows
        if size[one[0]][one[1]] == size[other[0]][other[1]]
    ]
    letter = {(side, axis): each for side, text in of.items() for axis, each in enumerate(text)}
    joined = {axis: axis for axis in letter}
    for one, other in same:
        assert letter[one] == letter[other]
        old, new = joined[one], joined[other]
        joined = {axis: new if at == old else at for axis, at in joined.items()}
    assert len({*joined.values()}) == len({*letter.values()})


def test_a_strided_window_links_nothing_along_what_it_slides_over():
    sizes = {0: (224, 2, 2), 1: (7, 2, 2), RESULT: (112, 2, 2)}
    found = links("convolution", convolution({"size": "7", "stride": "2"}), sizes)
    along = {(0, 0), (1, 0), (RESULT, 0)}
    assert [pair for pair in found.alike + found.windows if along & {*pair}] == []


def test_groups_of_features_are_so_many_times_those_of_the_kernel():
    values = {"dim_labels": "bf_io->bf", "feature_group_count": "4"}
    found = links("convolution", values, {0: (2, 8), 1: (2, 8), RESULT: (2, 8)})
    assert found.groups == [((0, 1), (1, 0))]
