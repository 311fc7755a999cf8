"""Where texts of a page may break: dates stay whole, paths break after a slash, all is escaped."""

from memhouse.queries.reporting.line_breaks import unbroken


def test_a_date_stays_on_one_line():
    assert unbroken("in 2026-10-07") == 'in <span class="short">2026-10-07</span>'


def test_a_long_path_breaks_after_its_slashes():
    assert unbroken("jit(train_step)/transpose(jvp())/dot_general") == (
        "jit(train_step)/<wbr>transpose(jvp())/<wbr>dot_general"
    )
    assert unbroken("jvp()/add") == "jvp()/add"


def test_a_hostile_name_stays_text():
    told = unbroken("</script><b onclick='x()'>2026-10-07/a-long-name")
    assert told.startswith("&lt;/<wbr>script&gt;&lt;b onclick=&#x27;x()&#x27;&gt;")
    assert told.count('<span class="short">2026-10-07</span>/<wbr>') == 1
