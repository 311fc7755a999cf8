"""limits.toml: what it sets, and what is said of a wrong one."""

import pytest

from memhouse.queries.checking.limits_file import parse_limits
from memhouse.queries.checking.thresholds import Limits, Threshold, parse_growth

ONE_PERCENT = Limits((parse_growth("1%"),))


def test_a_file_without_settings_leaves_the_default():
    policy = parse_limits("", ONE_PERCENT)
    assert policy.limits("any") == ONE_PERCENT
    assert policy.baseline is None


def test_growth_for_all_workloads():
    policy = parse_limits('max_growth = "2%"', ONE_PERCENT)
    assert policy.limits("any").max_growth == (Threshold(2, True, "2%"),)


def test_several_growths_must_each_hold():
    policy = parse_limits('max_growth = ["2%", "64MiB"]', ONE_PERCENT)
    assert [t.of(2**30) for t in policy.limits("any").max_growth] == [0.02 * 2**30, 64 * 2**20]


def test_no_growths_is_no_limit():
    assert parse_limits("max_growth = []", ONE_PERCENT).limits("any").max_growth == ()


def test_a_workload_has_its_own_limits():
    policy = parse_limits(
        'max_growth = "2%"\nmax_bytes = "15.75GiB"\n'
        '[workload.llama-v5e]\nmax_growth = "10%"\n'
        '[workload."big/one"]\nmax_bytes = "31GiB"\n',
        ONE_PERCENT,
    )
    assert policy.limits("llama-v5e").max_growth[0].text == "10%"
    # What a workload does not set stays as it is for all.
    assert policy.limits("llama-v5e").max_bytes[0].of(0) == 15.75 * 2**30
    assert policy.limits("big/one").max_growth[0].text == "2%"
    assert policy.limits("big/one").max_bytes[0].of(0) == 31 * 2**30
    assert policy.limits("any").max_bytes[0].of(0) == 15.75 * 2**30


def test_a_part_of_the_device():
    (limit,) = parse_limits('max_bytes = "95% of device"', ONE_PERCENT).limits("any").max_bytes
    assert limit.is_percent
    assert limit.of(80 * 2**30) == 76 * 2**30


def test_all_settings():
    policy = parse_limits(
        'baseline = "develop"\nmax_creep = "5%"\nmax_padding = "10%"\n'
        'max_scoped_bytes = "16MiB"\nlost_donation = "1MiB"\nnew = "warn"\ngone = "pass"\n',
        ONE_PERCENT,
    )
    limits = policy.limits("any")
    assert policy.baseline == "develop"
    assert limits.max_creep == (parse_growth("5%"),)
    assert limits.max_padding == (parse_growth("10%"),)
    assert limits.max_scoped_bytes == (parse_growth("16MiB"),)
    assert limits.lost_donation == (parse_growth("1MiB"),)
    assert (limits.new, limits.gone) == ("warn", "pass")


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("max_growth = ", "Invalid value"),
        ("max_growth = 2%", "line 1"),
        ('max_grwoth = "2%"', "line 1: max_grwoth: unknown; did you mean max_growth?"),
        (
            "\n# all\nsize = 1",
            "line 3: size: unknown; use one of max_growth, max_creep, max_bytes,",
        ),
        ('max_growth = "fast"', "line 1: max_growth: 'fast' is neither a percentage such as 2%"),
        ('max_growth = ["1%", "fast"]', "'fast' is neither a percentage"),
        ('max_bytes = "huge"', "max_bytes: 'huge' is neither a part such as '95% of device'"),
        ('max_bytes = "95%"', "'95%' of what? write '95% of device', or a size such as 15GiB"),
        ('max_scoped_bytes = "5%"', "max_scoped_bytes: '5%' is not a size such as 64MiB"),
        ("max_growth = true", "'True' is neither"),
        ('gone = "no"', "line 1: gone: 'no' is none of 'pass', 'warn', 'fail'"),
        ("baseline = 3", "line 1: baseline: input should be a valid string"),
        ('workload = "llama"', "[workload.NAME] is a table for each workload"),
        ('[workload]\nllama = "2%"', "[workload.NAME] is a table for each workload"),
        (
            'max_growth = "1%"\n[workload.llama]\nmax_byte = "2GiB"',
            "line 3: max_byte: unknown; did you mean max_bytes?",
        ),
        ('[workload.llama.v5e]\nmax_growth = "2%"', "line 1: v5e: unknown; use one of"),
        ('[workload.llama]\nbaseline = "main"', "line 2: baseline: unknown; use one of"),
        (
            'new = "no"\nmax_size = 3',
            "line 1: new: 'no' is none of 'pass', 'warn', 'fail'; line 2: max_size: unknown",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_line_key_and_reason(toml, message):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared below.
        parse_limits(toml, ONE_PERCENT)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "pydantic" not in str(raised.value)
