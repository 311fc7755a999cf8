"""Thresholds of `memhouse check`: percentages, sizes, and the TOML file that sets them."""

import pytest

from memhouse.queries.thresholds import Limits, Threshold, parse_growth, parse_policy

ONE_PERCENT = Limits((parse_growth("1%"),))


@pytest.mark.parametrize(
    ("text", "base", "allowed"),
    [
        ("1%", 1000, 10),
        ("0.5%", 1000, 5),
        ("2 %", 1000, 20),
        ("0%", 1000, 0),
        ("100%", 1000, 1000),
        ("100B", 1000, 100),
        ("64KiB", 1000, 64 * 1024),
        ("1.5 MiB", 1000, 1.5 * 2**20),
        ("2GiB", 0, 2 * 2**30),
        ("1TiB", 0, 2**40),
    ],
)
def test_growth_is_a_percentage_or_a_size(text, base, allowed):
    threshold = parse_growth(text)
    assert threshold.of(base) == allowed
    assert threshold.text == text


@pytest.mark.parametrize(
    "text",
    ["", "%", "lots", "-1%", "1,5%", "64MB", "64mib", "64M", "1e3MiB", "1 2MiB", "1%%", "95% of x"],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="is neither a percentage such as 2% nor a size such as"):
        parse_growth(text)


def test_a_file_without_settings_leaves_the_default():
    policy = parse_policy("", ONE_PERCENT)
    assert policy.limits("any") == ONE_PERCENT


def test_growth_for_all_workloads():
    policy = parse_policy('max_growth = "2%"', ONE_PERCENT)
    assert policy.limits("any").max_growth == (Threshold(2, True, "2%"),)


def test_several_growths_must_each_hold():
    policy = parse_policy('max_growth = ["2%", "64MiB"]', ONE_PERCENT)
    assert [t.of(2**30) for t in policy.limits("any").max_growth] == [0.02 * 2**30, 64 * 2**20]


def test_no_growths_is_no_limit():
    assert parse_policy("max_growth = []", ONE_PERCENT).limits("any").max_growth == ()


def test_a_workload_has_its_own_limits():
    policy = parse_policy(
        'max_growth = "2%"\nmax_bytes = "15.75GiB"\n'
        '[workload.llama-v5e]\nmax_growth = "10%"\n'
        '[workload."big/one"]\nmax_bytes = "31GiB"\n',
        ONE_PERCENT,
    )
    assert policy.limits("llama-v5e").max_growth[0].text == "10%"
    # What a workload does not set stays as it is for all.
    assert policy.limits("llama-v5e").max_bytes.of(0) == 15.75 * 2**30
    assert policy.limits("big/one").max_growth[0].text == "2%"
    assert policy.limits("big/one").max_bytes.of(0) == 31 * 2**30
    assert policy.limits("any").max_bytes.of(0) == 15.75 * 2**30


def test_a_part_of_the_device():
    limit = parse_policy('max_bytes = "95% of device"', ONE_PERCENT).limits("any").max_bytes
    assert limit.is_percent
    assert limit.of(80 * 2**30) == 76 * 2**30


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("max_growth = ", "Invalid value"),
        ("max_growth = 2%", "line 1"),
        ('max_groth = "2%"', "unknown setting 'max_groth': use max_growth or max_bytes"),
        ('max_growth = "fast"', "'fast' is neither a percentage"),
        ('max_growth = ["1%", "fast"]', "'fast' is neither a percentage"),
        ('max_bytes = "huge"', "'huge' is neither"),
        ('workload = "llama"', r"\[workload.NAME\] is a table"),
        ('[workload]\nllama = "2%"', r"\[workload.NAME\] is a table"),
        ('[workload.llama]\nmax = "2%"', "unknown setting 'max'"),
        ('[workload.llama.v5e]\nmax_growth = "2%"', "unknown setting 'v5e'"),
        ("max_growth = true", "'True' is neither"),
    ],
)
def test_a_wrong_file_is_refused_with_a_reason(toml, message):
    with pytest.raises(ValueError, match=message):
        parse_policy(toml, ONE_PERCENT)


def test_a_percentage_of_nothing_says_of_what_it_may_be():
    with pytest.raises(ValueError, match="% of device"):
        parse_policy('max_bytes = "95%"', ONE_PERCENT)
