"""The playground in a real browser: headless Chromium, driven by Playwright.

The Chromium is that of the system (Debian's package, say), or the one that SEMPROLA_CHROMIUM names. With
SEMPROLA_SCREENSHOTS set to a folder, some tests leave pictures there.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from playground_server import PATIENCE, Server

import semprola as sp

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'semprola[dev]'")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
expect = playwright.expect
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOSTILE = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    candidates = (os.environ.get("SEMPROLA_CHROMIUM", ""), *NAMES)
    path = next((found for name in candidates if name and (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("Chromium is not installed: try `apt-get install chromium`, or set SEMPROLA_CHROMIUM")
    with playwright.sync_playwright() as driver:
        try:
            launched = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        except playwright.Error as error:
            pytest.skip(f"{path} does not start: {str(error).splitlines()[0]}")
        expect.set_options(timeout=1000 * PATIENCE)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server("--timeout", "3")
    yield made
    made.stop()


Opener = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, server: Server) -> Iterator[Opener]:
    """Opens pages, and fails the test if one of them complains."""
    contexts, complaints = [], []

    def open_page(fragment: str = "", url: str | None = None, complaints_allowed: bool = False, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        context.set_default_timeout(1000 * PATIENCE)
        contexts.append(context)
        page = context.new_page()
        if not complaints_allowed:
            page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((url or server.url) + fragment)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints


def slider(page: Any, label: str) -> Any:
    return page.get_by_label(f"Belief that {label} holds", exact=True)


def row(page: Any, label: str) -> Any:
    return page.locator("#label-rows tr").filter(has=page.locator("th", has_text=re.compile(f"^{re.escape(label)}$")))


def fix(page: Any, label: str, value: str) -> None:
    page.get_by_role("group", name=f"Evidence for {label}", exact=True).get_by_label(value, exact=True).check()


def picture(page: Any, name: str) -> None:
    folder = os.environ.get("SEMPROLA_SCREENSHOTS")
    if folder:
        page.wait_for_timeout(400)
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)


def write(page: Any, text: str) -> None:
    page.get_by_label("Rules, one per line").fill(text)


# rules --------------------------------------------------------------------------------------------------------------


def test_first_look(opened: Opener) -> None:
    page = opened()
    expect(page.locator("#fact-models")).to_have_text("5")
    expect(page.locator("#alone .verdict")).to_have_text("Breaks 3 rules")
    expect(page.locator("#circuit svg .gate.sum").first).to_be_attached()
    picture(page, "hierarchy-light")


def test_typing_compiles(opened: Opener) -> None:
    page = opened()
    text = page.get_by_label("Rules, one per line")
    text.fill("")
    expect(page.locator("#error")).to_contain_text("Type a rule")
    text.press_sequentially("rain -> wet")
    expect(page.locator("#fact-models")).to_have_text("3")
    expect(page.locator("#label-rows tr")).to_have_count(2)
    expect(page.locator("#status")).to_contain_text("Compiled in")
    page.get_by_role("button", name="Random valid state").click()
    expect(page.locator("#sample-out")).to_have_text(re.compile("^(rain, wet|wet|no label)$"))


def test_nothing_is_typed_before_the_page_is_ready(opened: Opener) -> None:
    page = opened("#")
    waiting: list[Any] = []
    page.route("**/api/about", lambda route: waiting.append(route))
    page.reload(wait_until="domcontentloaded")
    text = page.get_by_label("Rules, one per line")
    expect(text).not_to_be_editable()  # what is typed now would be replaced by the first example
    expect(page.locator("#structure")).to_be_disabled()
    while not waiting:
        page.wait_for_timeout(50)
    waiting[0].continue_()
    expect(text).to_be_editable()
    expect(page.locator("#structure")).to_be_enabled()
    text.fill("rain -> wet")
    expect(page.locator("#fact-models")).to_have_text("3")


def test_error_with_a_caret(opened: Opener) -> None:
    page = opened()
    write(page, "cat -> animal\ndog -> & animal")
    error = page.locator("#error")
    expect(error).to_contain_text("Line 2, column 8: expected a formula, found '&'")
    expect(error.locator("pre")).to_have_text("dog -> & animal\n       ^")
    expect(page.locator("#backdrop mark")).to_have_text("&")
    expect(page.locator("#text")).to_have_attribute("aria-invalid", "true")
    expect(error).to_have_attribute("role", "alert")
    picture(page, "error-light")
    write(page, "cat -> animal\ndog -> animal")
    expect(error).to_be_empty()
    expect(page.locator("#fact-models")).to_have_text("5")


def test_contradiction_is_told(opened: Opener) -> None:
    page = opened()
    write(page, "a\na -> b\n~b")
    expect(page.locator("#error")).to_contain_text("contradict")


def test_too_large_a_constraint(opened: Opener) -> None:
    """It ends with a message, and the page goes on."""
    rng = random.Random(0)
    names = [f"v{i}" for i in range(150)]
    clauses = [" | ".join(rng.choice(["", "~"]) + name for name in rng.sample(names, 3)) for _ in range(400)]
    page = opened()
    write(page, " ^ ".join(f"({clause})" for clause in clauses))  # one rule: it cannot be split
    expect(page.locator("#status")).to_contain_text(re.compile("(Compiling|Starting)…"))
    expect(page.locator("#error")).to_contain_text("too large for the playground")
    write(page, "a | b")
    expect(page.locator("#fact-models")).to_have_text("3")


@pytest.fixture
def patient() -> Iterator[Server]:
    """A server whose searches have time even on a busy machine."""
    made = Server("--timeout", "30")
    yield made
    made.stop()


def test_rules_that_are_split(patient: Server, opened: Opener) -> None:
    """Rooks that do not attack each other: each line is a rule, and one circuit of them has millions of nodes."""
    board = [[f"r{r}.c{c}" for c in range(16)] for r in range(16)]
    lines = [*board, *map(list, zip(*board, strict=True))]
    page = opened(url=patient.url)
    write(page, "\n".join(f"exactly(1, {', '.join(line)})" for line in lines))
    expect(page.locator("#pooled")).to_contain_text("No single circuit: answers are pooled from")
    expect(page.locator("#fact-models")).to_contain_text("≤")
    expect(page.locator("#circuit-box th").first).to_have_text("circuit")
    expect(page.locator("#states dt").first).to_contain_text("Mode")
    expect(page.locator("#top li").first).to_contain_text("r0 c")
    expect(page.locator("#spl .entropy")).to_be_empty()
    picture(page, "split-light")
    write(page, "a | b")
    expect(page.locator("#pooled")).to_be_hidden()
    expect(page.locator("#spl .entropy")).to_contain_text("bits")


def test_labels_are_text_not_markup(opened: Opener) -> None:
    page = opened()
    escaped = HOSTILE.replace('"', '\\"')
    write(page, f'"{escaped}" -> b')
    expect(page.locator("#label-rows th").first).to_have_text(HOSTILE)
    write(page, 'one_hot("<i>r</i>.<u>a</u>", "<i>r</i>.b", "s.<u>a</u>", s.b)')
    expect(page.locator("#spl .cells tbody th").first).to_have_text("<i>r</i>")
    expect(page.locator("#circuit svg text", has_text="<i>r</i>.b").first).to_be_attached()
    assert page.locator("main i, main u, main img, main script").count() == 0
    write(page, "<b>bold</b> -> c")
    expect(page.locator("#error pre")).to_contain_text("<b>bold</b>")
    assert page.title() == "semprola playground"
    assert page.locator("#error b").count() == 0


# beliefs and evidence -----------------------------------------------------------------------------------------------


def test_sliders_move_everything(opened: Opener) -> None:
    page = opened("#rules=cat+->+animal&beliefs=90.20")
    expect(page.locator("#alone .broken li")).to_have_text(re.compile("cat -> animal.*cat = 1, animal = 0"))
    expect(row(page, "cat").locator(".alone")).to_have_class(re.compile("bad"))
    expect(row(page, "cat").locator(".marginal .number")).to_have_text("64\u202f%")
    slider(page, "animal").fill("80")
    expect(page.locator("#alone .verdict")).to_have_text("Obeys all rules")
    expect(row(page, "cat").locator(".marginal .number")).to_have_text("88\u202f%")
    expect(page.locator("#top li")).to_have_count(3)
    expect(page.locator("#spl .entropy")).to_contain_text("bits")


def test_evidence_moves_the_rest(opened: Opener) -> None:
    page = opened("#rules=cat+->+animal&beliefs=50.50")
    expect(row(page, "animal").locator(".marginal .number")).to_have_text("67\u202f%")
    fix(page, "cat", "1")
    expect(row(page, "animal").locator(".marginal .number")).to_have_text("100\u202f%")
    fix(page, "animal", "0")
    expect(page.locator("#impossible")).to_have_text(
        "No valid state has this evidence: cat = 1 and animal = 0 cannot hold together."
    )
    page.get_by_role("button", name="Clear all evidence").click()
    expect(page.locator("#impossible")).to_be_hidden()
    expect(row(page, "animal").locator(".marginal .number")).to_have_text("67\u202f%")


# what must not mislead ----------------------------------------------------------------------------------------------


def test_states_with_further_labels_are_told_apart(opened: Opener) -> None:
    page = opened("#rules=toll+->+a1:b1%0Atoll+|+ferry&structure=grid:3")
    expect(page.locator("#top li")).to_have_count(5)
    texts = page.locator("#top li > span:last-child").all_inner_texts()
    assert len(set(texts)) == 5
    assert all(re.fullmatch("a1 →.*→ c3; (toll|ferry|toll, ferry)", text) for text in texts), texts


def test_an_example_can_be_undone(opened: Opener) -> None:
    page = opened()
    write(page, "my -> own")
    slider(page, "own").fill("23")
    expect(page.locator("#fact-models")).to_have_text("3")
    expect(page.locator("#undo")).to_be_hidden()
    page.get_by_role("button", name="Ranking").click()
    expect(page.locator("#fact-models")).to_have_text("12")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#text")).to_have_value("my -> own")
    expect(slider(page, "own")).to_have_value("23")
    expect(page.locator("#undo")).to_be_hidden()


def test_old_answers_fade_while_new_rules_compile(opened: Opener) -> None:
    page = opened("#rules=a+->+b")
    expect(page.locator("#fact-models")).to_have_text("3")
    waiting: list[Any] = []
    page.route("**/api/describe", lambda route: waiting.append(route))
    write(page, "a & b")
    expect(page.locator("#predictions")).to_have_css("opacity", "0.45")
    while not waiting:
        page.wait_for_timeout(50)
    waiting[0].continue_()
    expect(page.locator("#fact-models")).to_have_text("1")
    expect(page.locator("#predictions")).to_have_css("opacity", "1")


def test_evidence_that_contradicts_can_be_freed(opened: Opener) -> None:
    page = opened("#rules=cat+->+animal%0Adog&beliefs=50.50.50&evidence=101")
    expect(page.locator("#spl")).to_contain_text("There is nothing to predict")
    expect(page.locator("#top-title")).to_be_hidden()
    picture(page, "contradiction-light")
    page.get_by_role("button", name="Free the labels that clash").click()
    expect(page.locator("#nothing")).to_be_hidden()
    expect(page.locator("#top li")).not_to_have_count(0)
    group = page.get_by_role("group", name="Evidence for dog", exact=True)
    expect(group.get_by_label("1", exact=True)).to_be_checked()  # it had no part in it


def test_a_size_that_does_not_exist_is_told(opened: Opener) -> None:
    page = opened("#rules=&structure=grid:3")
    size, note = page.get_by_label("Size"), page.locator("#size-note")
    expect(note).to_have_text("from 2 to 6")
    size.fill("9")
    expect(note).to_have_text("9 is not from 2 to 6")
    expect(size).to_have_value("6")
    size.fill("2")
    expect(note).to_have_text("from 2 to 6")


def test_tall_circuits_are_shown_whole(opened: Opener) -> None:
    page = opened("#rules=" + "+%26+".join(f"(x{i}+->+x{i + 1})" for i in range(24)))
    expect(page.locator("#circuit svg .gate")).not_to_have_count(0)
    sizes = page.evaluate("(box => [box.scrollHeight, box.clientHeight])(document.querySelector('#circuit-box'))")
    assert sizes[0] <= sizes[1] + 1


def test_the_page_can_be_copied_as_python(opened: Opener) -> None:
    page = opened("#rules=cat+->+animal&beliefs=90.20&evidence=1-", permissions=["clipboard-read", "clipboard-write"])
    expect(page.locator("#fact-models")).to_have_text("3")
    page.get_by_role("button", name="Copy as Python").click()
    expect(page.locator("#python")).to_have_text("Copied")
    text = page.evaluate("navigator.clipboard.readText()")
    assert text == page.locator("#python-text").inner_text()
    names: dict[str, Any] = {}
    exec(text, names)
    assert names["p"].mean.tolist() == [1.0, 1.0]
    slider(page, "cat").fill("10")
    expect(page.locator("#python-text")).to_be_hidden()


def test_a_messy_list_is_reviewed_and_mended(opened: Opener) -> None:
    page = opened("#rules=cat+->+pet%0Apet+->+animal%0Acat+->+animal%0Acat%0Ano:+~animal")
    expect(page.locator("#error")).to_contain_text("contradict")
    page.get_by_text("Review of the rules").click()
    report, rules = page.locator("#report"), page.get_by_role("list", name="Rules to drop or keep")
    expect(report).to_contain_text("2 contradictions: these rules cannot hold together")
    expect(rules.locator("li")).to_have_count(5)
    rules.get_by_label("no: ~animal").uncheck()
    expect(page.locator("#text")).to_have_value(re.compile("# dropped: no: ~animal$"))
    expect(page.locator("#fact-models")).to_have_text("1")
    expect(report).to_contain_text("cat -> animal line 3  follows from cat -> pet line 1; pet -> animal line 2")
    report.get_by_role("button", name="line 3").click()
    expect(page.locator("#text")).to_have_value(re.compile("\n# dropped: cat -> animal\ncat\n"))
    expect(report).not_to_contain_text("follows from")
    rules.get_by_label("no: ~animal").check()
    expect(page.locator("#text")).to_have_value(re.compile("\nno: ~animal$"))
    picture(page, "review-light")


def test_a_table_is_dropped_and_rules_are_learnt_from_it(opened: Opener, tmp_path: Path) -> None:
    path = tmp_path / "seen.csv"
    path.write_text("cat,animal,plant\n" + "1,1,0\n0,1,0\n0,0,1\n,0,\n" * 40 + "1,0,0\n")
    page = opened("#rules=cat+->+plant")
    expect(page.locator("#fact-models")).to_have_text("3")
    page.locator("#table-file").set_input_files(str(path))
    expect(page.locator("#report")).to_contain_text("41 of 161 rows break the rules")
    page.get_by_role("list", name="Rules to drop or keep").get_by_label("cat -> plant").uncheck()
    expect(page.locator("#review-note")).to_contain_text("there is no rule left")
    path.write_text(path.read_text().removesuffix("1,0,0\n"))
    page.locator("#table-file").set_input_files(str(path))
    page.get_by_role("button", name="Learn rules from it").click()
    learnt = page.locator("#learnt li", has_text="cat -> animal")
    learnt.get_by_role("button", name="Accept").click()
    expect(page.locator("#text")).to_have_value("# dropped: cat -> plant\ncat -> animal")
    expect(learnt).to_have_count(0)
    expect(page.locator("#report")).to_contain_text("0 of 160 rows break the rules")
    path.write_bytes(b"x" * 300_000)
    page.locator("#table-file").set_input_files(str(path))
    expect(page.locator("#review-note")).to_have_text("seen.csv is too large for the page: use semprola check")
    page.get_by_role("button", name="Remove the table").click()
    expect(page.locator("#report")).not_to_contain_text("rows")


def test_an_example_takes_the_review_of_the_last_one_with_it(opened: Opener) -> None:
    page = opened()
    page.get_by_role("button", name="Messy rules").click()
    rules = page.get_by_role("list", name="Rules to drop or keep")
    expect(rules.locator("li")).to_have_count(10)
    boxes = rules.locator("label").evaluate_all(
        "all => all.map(l => [...l.children].map(e => e.getBoundingClientRect()).map(b => b.top + b.height / 2))"
    )
    assert all(abs(box - text) < 3 for box, text in boxes)  # each box stands beside its rule
    page.get_by_role("button", name="Path on a grid").click()
    expect(page.locator("#fact-models")).to_have_text("184")
    expect(rules.locator("li")).to_have_count(0)
    expect(page.locator("#report")).to_be_empty()
    expect(page.locator("#review-note")).to_be_empty()


def test_a_long_list_of_labels_scrolls_beside_the_predictions(opened: Opener) -> None:
    page = opened("#rules=&structure=grid:6", viewport={"width": 1440, "height": 900})
    expect(page.locator("#fact-models")).to_have_text("1,262,816")
    box = page.locator("#labels .list").bounding_box()
    assert box["height"] <= 0.85 * 900
    assert page.locator("#labels .list").evaluate("e => e.scrollHeight > e.clientHeight")


@pytest.mark.parametrize("width", [1440, 390])
def test_words_are_explained(opened: Opener, width: int) -> None:
    page = opened(viewport={"width": width, "height": 800})
    expect(page.locator("#fact-models")).to_have_text("5")
    words = page.locator(".term:visible")
    assert {"Mode", "Hamming", "Evidence", "Belief"} <= {*words.all_inner_texts()}
    for place in range(words.count()):
        words.nth(place).focus()
        shown = words.nth(place).evaluate("e => getComputedStyle(e, '::after').display")
        assert shown == "block"
        assert page.evaluate(CUT_OFF) == []
    heights = page.evaluate("[...document.querySelectorAll('.evidence label')].map(e => e.offsetHeight)")
    assert min(heights) >= (40 if width == 390 else 24)


# examples -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "models", "selector", "count"),
    [
        ("Path on a grid", "184", "#spl svg.grid .edge", 24),
        ("Ranking", "12", "#spl .cells button", 16),
        ("Sudoku 4 × 4", "288", "#spl .board button", 64),
        ("Roster", "26", "#spl .cells button", 12),
    ],
)
def test_examples_are_drawn(opened: Opener, title: str, models: str, selector: str, count: int) -> None:
    page = opened()
    page.get_by_role("button", name=title).click()
    expect(page.locator("#fact-models")).to_have_text(models)
    expect(page.locator(selector)).to_have_count(count)
    expect(page.locator("#alone .verdict")).to_contain_text("Breaks")
    picture(page, f"{title.split()[0].lower()}-light")


def test_edges_of_the_grid_can_be_pressed(opened: Opener) -> None:
    page = opened("#rules=&structure=grid:3")
    edge = page.locator("#spl .edge").first
    expect(edge).to_have_attribute("aria-label", re.compile("^a1:b1: 50 ?"))
    edge.click(force=True)
    expect(edge).to_have_attribute("aria-label", re.compile("^a1:b1: 100.*fixed to 1"))
    expect(page.locator("#spl .edge").nth(1)).to_have_attribute("aria-label", re.compile("^a1:a2: 0 ?"))


def test_large_circuits_are_summarised(opened: Opener) -> None:
    page = opened("#rules=&structure=grid:6")
    expect(page.locator("#fact-models")).to_have_text("1,262,816")
    expect(page.locator("#circuit .layers tbody tr")).not_to_have_count(0)
    assert page.locator("#circuit svg").count() == 0


# the address --------------------------------------------------------------------------------------------------------


def test_the_address_is_the_state(opened: Opener) -> None:
    page = opened()
    write(page, 'a -> b\n"x y" | b')
    slider(page, "b").fill("23")
    fix(page, "x y", "1")
    expect(page).to_have_url(re.compile(r"beliefs=50\.23\.50.*evidence=--1"))
    again = opened(url=page.url)
    expect(again.locator("#text")).to_have_value('a -> b\n"x y" | b')
    expect(slider(again, "b")).to_have_value("23")
    group = again.get_by_role("group", name="Evidence for x y", exact=True)
    expect(group.get_by_label("1", exact=True)).to_be_checked()


def test_a_pasted_address_is_loaded(opened: Opener, server: Server) -> None:
    page = opened()
    expect(page.locator("#fact-models")).to_have_text("5")
    page.evaluate("location.hash = 'rules=p+%7C+q&beliefs=80.10'")
    expect(page.locator("#fact-models")).to_have_text("3")
    expect(slider(page, "q")).to_have_value("10")


@pytest.mark.parametrize(
    "fragment", ["#%%%", "#rules=a&beliefs=x.y", "#rules=a&structure=torus:9", "#beliefs=1.2", "#rules=a&evidence=777"]
)
def test_damaged_addresses_do_no_harm(opened: Opener, fragment: str) -> None:
    page = opened(fragment)
    expect(page.locator("#fact-models")).not_to_be_empty()


def test_copy_link(opened: Opener) -> None:
    page = opened("#rules=a+%7C+b", permissions=["clipboard-read", "clipboard-write"])
    expect(page.locator("#fact-models")).to_have_text("3")
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#share")).to_have_text("Copied")
    assert "rules=a+%7C+b" in page.evaluate("navigator.clipboard.readText()")


# screens and keyboards ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screen(opened: Opener, scheme: str) -> None:
    page = opened(viewport={"width": 375, "height": 700}, color_scheme=scheme)
    expect(page.locator("#fact-models")).to_have_text("5")
    for example, models in {"Hierarchy": 5, "Path on a grid": 184, "Ranking": 12, "Sudoku 4 × 4": 288}.items():
        page.get_by_role("button", name=example).click()
        expect(page.locator("#fact-models")).to_have_text(str(models))
        expect(page.locator("#alone .verdict")).to_contain_text("Breaks")
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        assert not page.evaluate(TOO_SMALL), "too small to press"
        picture(page, f"narrow-{example.split()[0].lower()}-{scheme}")


TOO_SMALL = """() => [...document.querySelectorAll("button, select, textarea, summary")]
  .filter((e) => e.offsetParent && e.getBoundingClientRect().height < 24).map((e) => e.outerHTML.slice(0, 80))"""


def test_nothing_is_cut_off_at_any_width(opened: Opener) -> None:
    page = opened()
    write(page, "one_hot(a_rather_long_label_name, another_rather_long_label_name)\ncat -> animal")
    expect(page.locator("#label-rows tr")).to_have_count(4)
    for width in (320, 375, 600, 768, 999, 1000, 1100, 1280, 1366, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(CUT_OFF) == [], width


CUT_OFF = """() => {
  const wide = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
  const parts = [...document.querySelectorAll("section, .card, #labels table, #labels td, #labels fieldset")];
  return wide.concat(parts.filter((e) => {
    const [inner, outer] = [e.getBoundingClientRect(), e.closest("section").getBoundingClientRect()];
    return inner.width && (inner.right > outer.right + 1 || inner.left < outer.left - 1);
  }).map((e) => `${e.tagName} ${e.id} ${e.className}`));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(opened: Opener, scheme: str) -> None:
    """Text stands out from its ground by at least 4.5 : 1 (WCAG AA)."""
    page = opened(color_scheme=scheme)
    write(page, "cat -> ")
    expect(page.locator("#error pre")).to_be_visible()
    write(page, "cat -> animal\ndog -> animal\n~(cat & dog)\nkitten -> cat")
    expect(page.locator("#alone .broken li")).to_have_count(3)
    ratios = page.evaluate(CONTRAST)
    assert len(ratios) > 40
    poor = [entry for entry in ratios if entry[1] < 4.5]
    assert not poor
    picture(page, f"hierarchy-{scheme}")


CONTRAST = """() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    const unseen = "svg, .hidden, .skip, #backdrop, textarea, noscript";
    if (!walker.currentNode.data.trim() || !e.checkVisibility() || e.closest(unseen)) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))];
    found.push([walker.currentNode.data.trim().slice(0, 40), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]);
  }
  return found;
}"""


def test_dark_mode(opened: Opener) -> None:
    light, dark = opened(color_scheme="light"), opened(color_scheme="dark")
    grounds = [page.evaluate("getComputedStyle(document.body).backgroundColor") for page in (light, dark)]
    assert grounds == ["rgb(244, 246, 249)", "rgb(18, 23, 30)"]


def test_everything_by_keyboard(opened: Opener) -> None:
    """Only keys: jump to the rules, type, reach a slider and the evidence, press an edge."""
    page = opened()
    expect(page.locator("#fact-models")).to_have_text("5")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the predictions")).to_be_focused()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "text":
            break
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("a -> b")
    expect(page.locator("#fact-models")).to_have_text("3")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "range":
            break
    page.keyboard.press("ArrowRight")
    expect(slider(page, "a")).to_have_value("51")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("group", name="Evidence for a", exact=True).get_by_label("1", exact=True)).to_be_checked()
    expect(row(page, "b").locator(".marginal .number")).to_have_text("100\u202f%")


def test_edges_by_keyboard(opened: Opener) -> None:
    page = opened("#rules=&structure=grid:3")
    edge = page.locator("#spl .edge").first
    expect(edge).to_have_attribute("tabindex", "0")
    edge.focus()
    page.keyboard.press("Enter")
    expect(edge).to_have_attribute("aria-label", re.compile("fixed to 1"))
    page.keyboard.press(" ")
    expect(edge).to_have_attribute("aria-label", re.compile("fixed to 0"))


CONTROLS = "button|slider|radio|combobox|textbox|spinbutton"


def test_every_control_has_a_name(opened: Opener) -> None:
    page = opened()
    for title, models in {"Hierarchy": 5, "Path on a grid": 184, "Sudoku 4 × 4": 288, "Roster": 26}.items():
        page.get_by_role("button", name=title).click()
        expect(page.locator("#fact-models")).to_have_text(str(models))
        snapshot = page.locator("body").aria_snapshot()
        nameless = re.findall(rf"^\s*- (?:{CONTROLS})(?::.*)?$", snapshot, re.MULTILINE)
        assert not nameless
    for name in ("Rules", "Labels", "Predictions", "Circuit"):
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()


# trained models -----------------------------------------------------------------------------------------------------


def test_model_and_row_of_data(opened: Opener, tmp_path: Path) -> None:
    """A model folder and a table: pick a row, change a value, paste a line, fix a label."""
    pytest.importorskip("safetensors")
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), sp.ConstraintLayer("(cat -> animal) & (dog -> animal)"))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[4.0, 0.0], [0.0, 0.0], [0.0, 4.0]]))
        net[0].bias.copy_(torch.tensor([-2.0, -1.0, -2.0]))
    sp.save(net, tmp_path / "animals")
    (tmp_path / "rows.csv").write_text("1,2,cat,animal,dog\n0,0,0,0,0\n1,0,1,1,0\n")
    waiting: list[Any] = []
    server = Server("--model", str(tmp_path / "animals"), "--data", str(tmp_path / "rows.csv"))
    try:
        page = opened(url=server.url)
        expect(page.locator("#status")).to_have_text("Model animals.")
        expect(page.locator("#row-source")).to_have_text("of rows.csv")
        expect(row(page, "cat").locator(".truth")).to_have_text("0")
        page.get_by_label("Row", exact=True).fill("2")
        expect(row(page, "cat").locator(".truth")).to_have_text("1")
        expect(page.get_by_role("group", name="Row of data").get_by_label("1", exact=True)).to_have_value("1")
        expect(row(page, "cat").locator(".mode")).to_have_text("1")
        picture(page, "model-light")
        fix(page, "cat", "0")
        expect(row(page, "cat").locator(".mode")).to_have_text("0")
        page.get_by_label("Paste values").fill("0, 2")
        expect(row(page, "dog").locator(".mode")).to_have_text("1")
        page.get_by_label("Paste values").fill("0, 2, 3")
        expect(page.locator("#row-error")).to_have_text("There are 3 values; the model needs 2.")
        page.get_by_role("group", name="Row of data").get_by_label("1", exact=True).fill("much")
        expect(page.locator("#row-error")).to_contain_text("expected a number")
        page.get_by_label("Open").select_option("my rules")
        expect(page.locator("#model-row")).to_be_hidden()
        write(page, "p | q")
        expect(page.locator("#fact-models")).to_have_text("3")
        page.route("**/api/describe", lambda route: waiting.append(route))
        page.get_by_label("Open").select_option("model animals")
        while not waiting:
            page.wait_for_timeout(50)
        expect(page.locator("#model-row")).to_be_hidden()  # its inputs are not known yet
        expect(page.locator("#model-rules")).to_be_hidden()
        waiting[0].continue_()
        expect(page.locator("#model-row")).to_be_visible()
        page.close()
    finally:
        server.stop()


# tabs and restarts --------------------------------------------------------------------------------------------------


def test_two_tabs_at_once(opened: Opener) -> None:
    one, two = opened("#rules=a+%7C+b"), opened("#rules=a+%26+b+%26+c")
    expect(one.locator("#fact-models")).to_have_text("3")
    expect(two.locator("#fact-models")).to_have_text("1")
    for value in ("30", "60", "90"):
        slider(one, "a").fill(value)
        slider(two, "c").fill(value)
    write(two, "p <-> q")
    expect(two.locator("#fact-models")).to_have_text("2")
    expect(row(one, "a").locator(".marginal .number")).to_have_text("95\u202f%")
    expect(one.locator("#fact-models")).to_have_text("3")


def test_server_killed_and_restarted(opened: Opener) -> None:
    """The page says so, keeps what was set, and goes on when the server is back."""
    first = Server()
    page = opened("#rules=a+->+b&beliefs=70.40", url=first.url, complaints_allowed=True)
    expect(page.locator("#fact-models")).to_have_text("3")
    first.stop(signal.SIGKILL)
    slider(page, "b").fill("90")
    expect(page.locator("#offline")).to_be_visible()
    picture(page, "offline-light")
    second = Server(port=first.port)
    try:
        expect(page.locator("#offline")).to_be_hidden()
        expect(slider(page, "b")).to_have_value("90")
        expect(row(page, "a").locator(".marginal .number")).to_have_text("68\u202f%")
        write(page, "a & b")
        expect(page.locator("#fact-models")).to_have_text("1")
    finally:
        second.stop()
