"""Reports and the command that makes them."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments import report
from experiments.jobs import TaskSettings
from experiments.methods import METHODS
from experiments.reproduce import Plan, reproduce
from experiments.tables import markdown_table, print_table, spread, summary, text_table
from semprola.errors import FormatError, SemprolaError

typer_testing = pytest.importorskip("typer.testing")
typer = pytest.importorskip("typer")


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A small results file: two methods, two seeds, a few steps."""
    from dataclasses import replace

    from experiments import reproduce as module

    with pytest.MonkeyPatch.context() as patch:
        known = module.best_known
        patch.setattr(
            module,
            "best_known",
            lambda *names: (known(*names)[0], replace(known(*names)[1], steps=4, evaluate_every=2)),
        )
        plan = Plan(TaskSettings(), net="wide", methods=("fil", "spl"), seeds=2, known=True, quiet=True)
        return reproduce(plan, tmp_path_factory.mktemp("out"))


def test_mean_and_deviation(content: dict[str, Any]) -> None:
    rows = summary(content["results"], "simple-path")
    assert [row[0] for row in rows] == ["FIL", "SPL"]
    tests = [result["test"] for result in content["results"] if result["method"] == "spl"]
    assert rows[1][1][0] == spread([test["exact"] for test in tests])
    assert rows[1][1][2] == "100.0 ± 0.0"
    assert rows[1][3] == "37.6 / 88.5 / 100.0"
    assert rows[1][4] == 2
    assert spread([1.0, 2.0, 3.0]) == "2.0 ± 1.0"


def test_tables_have_a_line_for_each_method(content: dict[str, Any]) -> None:
    rows = summary(content["results"], "simple-path")
    assert len(markdown_table(rows).splitlines()) == 4
    text = text_table(rows, "title")
    assert len(text.splitlines()) == 5
    assert max(map(len, text.splitlines())) <= 80
    assert "paper" not in text_table(summary(content["results"], "simple-path", paper=False))


@pytest.mark.parametrize("low", [11.11, 5.0])
def test_wide_figures_fit_a_terminal(capsys: pytest.CaptureFixture[str], low: float) -> None:
    """With spreads of 10 and more, names are cut and figures are not."""
    pytest.importorskip("rich")
    test = {"exact": 21.11, "hamming": 99.9, "consistent": 100.0, "hamming_decoder": {"hamming": 99.9}}
    other = {"exact": low, "hamming": 78.7 + low, "consistent": 81.1, "hamming_decoder": {"hamming": 78.7 + low}}
    results = [{"method": method, "test": figures} for method in METHODS for figures in (test, other)]
    rows = summary(results, "simple-path")
    print_table(rows)
    shown = capsys.readouterr().out
    for text in (shown, text_table(rows)):
        assert "…" not in text
        assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
        assert spread([21.11, low]).replace(" ", "") in text
        assert "37.6/88.5/100.0" in text


def test_a_decoder_that_is_behind_is_counted(content: dict[str, Any]) -> None:
    results = copy.deepcopy(content["results"])
    for result in results:
        for part in ("valid", "test"):
            result[part]["hamming_decoder"] = {**result[part], "gain": 0.0, "gain_error": 0.0}
    decoder = results[0]["test"]["hamming_decoder"]
    decoder.update(hamming=decoder["hamming"] - 0.1, gain=-0.1, gain_error=0.25)
    text = report.markdown_report({**content, "results": results})
    assert f"behind the mode in 1 of {len(results)} runs, by at most 0.10 points (0.4 standard errors). If used" in text
    del decoder["gain"]
    text = report.markdown_report({**content, "results": results})
    assert "by at most 0.10 points. If used" in text
    results[1]["test"]["hamming_decoder"].update(gain=-0.1, gain_error=0.2)
    assert "Both layers" not in report.overview([{**content, "results": results[:2]}])  # of FIL
    text = report.markdown_report({**content, "results": results})
    assert f"(0.5 standard errors, in the {len(results) - 1} runs that recorded them)" in text


def test_html_is_one_file(content: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    page = report.html_report(content)
    assert page.count("data:image/png;base64,") == 3
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "37.6 / 88.5 / 100.0" in page
    assert content["command"] in page


def test_what_a_search_saw_is_shown(content: dict[str, Any]) -> None:
    seen = {"exact": 12.34, "hamming": 80.0, "consistent": 100.0, "nll": 1.5}
    tried = [
        {"method": "spl", "settings": {"gate": gate, "lr": 0.005}, "seeds": 1, "valid": seen, "chosen": gate == []}
        for gate in ([], [128, 64])
    ]
    text = report.markdown_report({**content, "search": tried})
    assert "- SPL: **gate linear, lr 0.005: 12.3 / 80.0 / 100.0, nll 1.500**; gate 128 → 64, lr 0.005: 12.3" in text
    assert "<b>gate linear, lr 0.005: 12.3 / 80.0 / 100.0, nll 1.500</b>" in report.html_report(
        {**content, "search": tried}
    )
    assert "<details>" not in report.markdown_report({**content, "search": []})


def test_what_the_table_has_no_column_for(content: dict[str, Any]) -> None:
    text = report.markdown_report(content)
    assert "- FIL: dropout 0.2, lr 0.001, up to 4 steps\n- SPL: m 1, k 1, gate linear, dropout 0.2" in text
    assert "SPL decoded greedily, as in the released code: " in text
    assert re.search(
        r'`decode\("hamming"\)` is behind the mode in \d of 4 runs.*\. If used only where it leads .*: in \d\.',
        text,
    )


def test_nothing_names_the_machine(content: dict[str, Any]) -> None:
    text = json.dumps(content)
    assert str(Path.home()) not in text or str(Path.home()) == "/"
    assert "/tmp/" not in text
    assert content["command"].startswith("python -m experiments simple-path --setting paper --split published")


def test_the_page_is_rewritten_between_its_markers(content: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "simple-path-a.json").write_text(json.dumps(content))
    (tmp_path / "results" / "other.json").write_text("{}")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    for _ in range(2):
        assert report.update_page(tmp_path / "results", page) == 1
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert text.count("### Simple paths") == 1
    seen = [result["test"]["exact"] for result in content["results"] if result["method"] == "spl"]
    assert f"| {content['title']} | " in text
    assert f" | – | – | {spread(seen)} | – |" in text
    assert re.search(r"Both layers, all tables below\. By Hamming score, .* in \d of 2 runs", text)
    page.write_text("no markers")
    with pytest.raises(FormatError, match="expected one line"):
        report.update_page(tmp_path / "results", page)
    (tmp_path / "results" / "simple-path-b.json").write_text("{}")
    with pytest.raises(FormatError, match=r"b\.json: not a results file"):
        report.update_page(tmp_path / "results", page)


def test_the_docs_show_the_results_of_the_repository(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    page = root / "docs" / "record_paths.md"
    copy = tmp_path / "record_paths.md"
    copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    report.update_page(root / "results", copy)
    again = "run: python -m experiments.report results docs/record_paths.md"
    assert copy.read_text(encoding="utf-8") == page.read_text(encoding="utf-8"), again


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(TaskSettings("chess")), "no experiment 'chess'"),
        (Plan(TaskSettings(), net="deep"), "no network 'deep'"),
        (Plan(TaskSettings(), seeds=0), "at least one seed"),
        (Plan(TaskSettings(), search_seeds=0), "a search needs at least one seed"),
        (Plan(TaskSettings(), choose="luck"), "no choice by 'luck': choose from exact, likelihood"),
        (Plan(TaskSettings(), methods=("fil", "svm")), "no such method: svm"),
        (Plan(TaskSettings(), methods=()), "no such method: none"),
        (Plan(TaskSettings(source="web")), "no source 'web'"),
        (Plan(TaskSettings(setting="hard")), "no setting 'hard'"),
        (Plan(TaskSettings(multiplicity=True)), r"multiplicity \(one row per person\) is for preference: leave it out"),
        (Plan(TaskSettings("preference", turned=True)), "are for simple-path: leave them out"),
        (Plan(TaskSettings("preference", ends="first")), "are for simple-path: leave them out"),
    ],
)
def test_plans_that_make_no_sense(plan: Plan, message: str, tmp_path: Path) -> None:
    with pytest.raises(SemprolaError, match=message):
        reproduce(plan, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_command_is_one_that_runs() -> None:
    plan = Plan(TaskSettings("preference", "given", "graph", "file", 3, True), "wide", METHODS[:2], 7, True)
    assert plan.command == (
        "python -m experiments preference --setting given --split graph --source file --net wide --seeds 7 "
        "--multiplicity --data-seed 3 --methods fil,semantic-loss --known"
    )
    assert (
        Plan(TaskSettings(turned=True), "wide").name == "simple-path-paper-published-wide-generated-turned-small-search"
    )
    assert "--seeds 5 --turned --grid small" in Plan(TaskSettings(turned=True)).command
    plan = Plan(TaskSettings("preference"), seeds=3, search_seeds=2, methods=("spl",), choose="likelihood")
    words = "--net paper --seeds 3 --methods spl --grid small --search-seeds 2 --choose likelihood"
    assert plan.command.endswith(words)
    assert plan.name == "preference-paper-published-paper-generated-small-search-by-likelihood"


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments import reproduce as module
    from experiments.__main__ import compare
    from experiments.methods import ModelSettings
    from experiments.trainer import TrainSettings

    known = ModelSettings(hidden=(8,)), TrainSettings(steps=2, evaluate_every=2)
    monkeypatch.setattr(module, "best_known", lambda *names: known)
    words = ["preference", "--known", "--seeds", "1", "--methods", "spl", "--out", str(tmp_path)]
    application = typer.Typer()
    application.command()(compare)
    answer = typer_testing.CliRunner().invoke(application, words)
    assert answer.exit_code == 0, answer.output
    assert "20.8 / 72.4 / 100.0" in answer.output
    assert {path.suffix for path in tmp_path.iterdir()} == {"", ".json", ".md", ".html"}
    answer = typer_testing.CliRunner().invoke(application, [*words, "--json", "--no-resume"])
    assert json.loads(answer.stdout)["results"][0]["test"]["consistent"] == 100.0


def test_a_quick_look_is_cut_to_the_time(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = Plan(TaskSettings("preference"), methods=("fil", "spl"), seeds=1, known=True, seconds=1.0)
    content = reproduce(plan, tmp_path)
    assert {result["method"] for result in content["results"]} == {"fil", "spl"}
    assert all(2 <= result["training"]["steps"] < 2000 for result in content["results"])
    said = capfd.readouterr().err
    assert "a quick look: about 1 s for these steps: FIL " in said or "a quick look: about 0 s" in said
    assert plan.name.endswith("-quick")
    assert plan.command.endswith("--quick")


def test_bad_input_is_one_line_and_status_two(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments", "chess", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert done.stderr == "error: no experiment 'chess': choose from simple-path, preference\n"
