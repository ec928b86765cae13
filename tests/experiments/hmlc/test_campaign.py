"""Campaigns: order, resuming, files of results, tables and the page made from them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiments_hmlc_made import made_set

from experiments.hmlc import campaign, report, search_tables, tables
from experiments.hmlc.app import hmlc
from experiments.hmlc.campaign import Job, find_result, plan_jobs, variant_name, work
from experiments.hmlc.collecting import AUPRC, EXACT, Campaign, rank_sum, update_ensembles
from experiments.hmlc.measuring import LAMBDAS
from experiments.hmlc.published import ABLATION
from experiments.hmlc.sets import TWELVE
from experiments.hmlc.settings import FIGURES, Settings
from experiments.hmlc.timing import epoch_seconds, standard_cases
from experiments.hmlc.tuning import PAPER_ABLATION, ablate, best_on_validation, candidates, chosen_settings, tune
from experiments.hmlc.variants import known_jobs, work_through
from semprola.errors import FormatError, SemprolaError

SMALL = {"width": 16, "features": 8, "dropout": 0.1, "epochs": 4, "every": 2, "lr": 1e-2}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Published sets replaced by small ones, and settings to match."""
    monkeypatch.setattr(campaign, "load_raw", lambda name, data=None: made_set(name))
    for module in ("collecting", "tuning", "variants"):
        monkeypatch.setattr(f"experiments.hmlc.{module}.load_raw", lambda name, data=None: made_set(name))

    def settings(method: str, name: str) -> Settings:
        return replace(Settings(method=method), **SMALL)

    monkeypatch.setattr("experiments.hmlc.tuning.default_settings", settings)


def test_order_and_names() -> None:
    jobs = plan_jobs(["imclef07a", "enron"], ["spl", "fil"], range(2))
    assert [(job.seed, job.name, job.settings.method) for job in jobs[:5]] == [
        (0, "enron", "spl"), (0, "enron", "fil"), (0, "imclef07a", "spl"), (0, "imclef07a", "fil"), (1, "enron", "spl"),
    ]  # fmt: skip
    assert jobs[0].file == "enron_spl.json"
    assert len({job.key for job in jobs}) == len(jobs)
    assert variant_name({"units": 4, "mixing": "cross"}) == "mixingcross-units4"


def test_the_key_ignores_settings_at_their_usual_value() -> None:
    assert Job("enron", Settings(), 0).key == Job("enron", Settings(dropout=0.7), 0).key
    assert Job("enron", Settings(), 0).key != Job("enron", Settings(dropout=0.5), 0).key


@pytest.mark.usefixtures("small")
def test_variants_have_other_rules_and_an_epoch_of_their_own(tmp_path: Path) -> None:
    jobs = known_jobs("enron", "hierarchy", range(2), tmp_path)
    assert jobs == [], "no epoch is chosen yet"
    runs = work_through(["enron"], "hierarchy", range(2), tmp_path, command="x")
    assert [(run["method"], run["seed"]) for run in runs] == [(m, s) for m in ("spl", "product-spl") for s in range(2)]
    chosen = json.loads((tmp_path / "chosen_variants.json").read_text())
    for run in runs:
        assert "non-empty" not in run["rule"]
        assert run["settings"]["options"] is False
        assert set(run["train_only"]) == set(run["retrained"]) == {"exact"}
        assert run["epochs"] == {"exact": chosen[f"enron/{run['method']}/hierarchy"]["epoch"]}
        for column in ("train_only", "retrained"):
            figures = run[column]["exact"]
            assert figures["decoder"] == figures["threshold"], "with the hierarchy alone these are one decoder"
    assert work_through(["enron"], "hierarchy", range(2), tmp_path, command="y") == json.loads(json.dumps(runs))
    assert all(find_result(job, tmp_path) for job in known_jobs("enron", "hierarchy", range(2), tmp_path))
    (losses,) = work_through(["enron"], "rules", range(1), tmp_path)
    assert losses["method"] == "semantic-loss"
    assert losses["rule"] != runs[0]["rule"]
    with pytest.raises(SemprolaError, match="no variant 'x': choose from hierarchy, rules"):
        work_through(["enron"], "x", range(1), tmp_path)


@pytest.mark.usefixtures("small")
def test_runs_are_done_once_and_give_tables(tmp_path: Path) -> None:
    said: list[str] = []
    marginals = tmp_path / "marginals"
    jobs = plan_jobs(["enron"], ["spl", "hmcnn"], range(2), tuned=tmp_path)
    results = work(jobs, tmp_path, command="x", marginals=marginals, say=said.append)
    assert len(said) == 8  # two trainings each
    assert [", train rows only: " in line for line in said] == [True] * 4 + [False] * 4
    first = results[0]
    assert set(first["retrained"]) == {"exact", "hamming", "auprc"}
    assert set(first["train_only"]) == set(first["retrained"])
    assert "known" in first["retrained"]["exact"]
    assert first["provenance"]["command"] == "x"
    assert first["retrained"]["exact"]["consistent"] == 100
    again = work(jobs, tmp_path, command="y", marginals=marginals, say=said.append)
    assert said[8:] == ["4 runs are there, 0 to do"]
    assert all("later" not in run for run in results)
    assert again == json.loads(json.dumps(results))
    found = Campaign(tmp_path)
    assert found.seeds("enron", "spl") == 2
    assert len(EXACT.of(found.of("enron", "hmcnn"), "retrained")) == 2
    assert find_result(replace(jobs[0], seed=7), tmp_path) is None

    page, picture = tmp_path / "page.md", tmp_path / "images" / "hmlc.svg"
    summary = f"{report.SUMMARY_BEGIN}\nold\n{report.SUMMARY_END}"
    page.write_text(f"before\n{summary}\nbetween\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    log = tmp_path / "record.md"
    log.write_text(f"{report.BEGIN}\nold\n{report.END}\n")
    report.write_report(tmp_path, marginals, None, page, log, picture)
    assert "### Settings" in log.read_text()
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")
    first, record = text.split("between")
    paper = "| enron | 5.97 ± 0.56 | 8.18 ± 0.68 |".replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    assert paper in first
    assert "hmlc.svg" in first
    assert paper in record
    assert "(of 2)" in text  # an ensemble
    drawn = picture.read_bytes()
    assert drawn.startswith(b"<?xml")
    page.write_text(text)
    report.write_report(tmp_path, marginals, None, page, log, picture)
    assert (page.read_text(), picture.read_bytes()) == (text, drawn)  # nothing changes if nothing is new
    page.write_text("no markers")
    with pytest.raises(FormatError, match="expected a part between"):
        report.write_report(tmp_path, marginals, None, page, log, picture)


@pytest.mark.usefixtures("small")
def test_published_runs_have_fixed_epochs(tmp_path: Path) -> None:
    jobs = [Job("enron", replace(Settings(method="hmcnn-published", choose=False), **SMALL), 0)]
    (result,) = work(jobs, tmp_path, say=lambda text: None)
    assert set(result["epochs"].values()) == {4}
    assert result["train_only"] == {}


@pytest.mark.usefixtures("small")
def test_settings_are_chosen_once_on_validation_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = made_set()
    raw.y[raw.file == 2] = False  # test rows are not looked at
    monkeypatch.setattr("experiments.hmlc.tuning.load_raw", lambda name, data=None: raw)
    tried = [{}, {"lr": 1e-9}]
    said: list[str] = []
    for command in ("x", "y"):  # the second time, there is nothing to do
        tune(["enron"], ["fil"], tmp_path, tried=tried, command=command, say=said.append)
    assert len(said) == 2
    entry = json.loads((tmp_path / "chosen.json").read_text())["enron/fil"]
    assert [known["changes"] for known in entry["tried"]] == tried
    assert entry["provenance"]["command"] == "x"
    (settings,) = chosen_settings(tmp_path, "fil", "enron")
    assert settings.lr == SMALL["lr"]
    assert settings.chosen == tuple(entry["tried"][0][figure]["epoch"] for figure in ("exact", "hamming", "auprc"))
    content = json.loads((tmp_path / "chosen.json").read_text())
    changes = content["enron/fil"]["tried"][0]["changes"]
    changes["gate"] = [4]
    (tmp_path / "chosen.json").write_text(json.dumps(content))
    assert chosen_settings(tmp_path, "fil", "enron")[0].gate == (4,)
    changes["gate"] = [4, 5]
    (tmp_path / "chosen.json").write_text(json.dumps(content))
    assert "| gate 4 × 5 |" in search_tables.tried_table(tmp_path / "chosen.json")
    changes["speed"] = 1
    (tmp_path / "chosen.json").write_text(json.dumps(content))
    with pytest.raises(FormatError, match="no setting 'speed'"):
        chosen_settings(tmp_path, "fil", "enron")


def test_methods_try_as_many_settings() -> None:
    for name in TWELVE:
        assert len({len(candidates(method, name)) for method in ("hmcnn", "spl", "spl-known")}) == 1


@pytest.mark.usefixtures("small")
def test_some_methods_take_over_what_was_best_for_another(tmp_path: Path) -> None:
    with pytest.raises(SemprolaError, match="first run --methods hmcnn --tune on enron"):
        tune(["enron"], ["semantic-loss"], tmp_path)
    tried = [_tried({}, 5.0, 90.0, 0.2), _tried({"lr": 1e-3}, 4.0, 91.0, 0.3)]
    (tmp_path / "chosen.json").write_text(json.dumps({"enron/hmcnn": {"tried": tried}}))
    tune(["enron"], ["semantic-loss", "fil"], tmp_path, say=lambda text: None)
    found = json.loads((tmp_path / "chosen.json").read_text())
    assert [one["changes"] for one in found["enron/fil"]["tried"]] == [{}, {"lr": 1e-3}]
    assert [one["changes"] for one in found["enron/semantic-loss"]["tried"]] == [
        {}, {"lr": 1e-3}, {"semantic_weight": 0.5},
    ]  # fmt: skip


def test_the_better_method_on_validation_rows(tmp_path: Path) -> None:
    assert best_on_validation(tmp_path, ("spl", "product-spl"), "enron", "exact") is None
    one = [_tried({}, 5.0, 90.0, 0.2), _tried({"lr": 1e-3}, 4.0, 91.0, 0.3)]
    two = [_tried({}, 4.5, 91.5, 0.3)]
    (tmp_path / "chosen.json").write_text(
        json.dumps({"enron/spl": {"tried": one}, "enron/product-spl": {"tried": two}})
    )
    found = [best_on_validation(tmp_path, ("spl", "product-spl"), "enron", figure) for figure in FIGURES]
    assert found == ["spl", "product-spl", "spl"]  # the first of equals
    assert [Campaign(tmp_path).preferred("enron", figure) for figure in FIGURES] == found
    assert Campaign(tmp_path).preferred("spo", "exact") == "spl"


@pytest.mark.usefixtures("small")
def test_the_ablation_reads_no_test_row_and_is_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = made_set()
    raw.y[raw.file == 2] = False
    monkeypatch.setattr("experiments.hmlc.tuning.load_raw", lambda name, data=None: raw)
    path = tmp_path / "ablation.json"
    assert "Nothing yet" in search_tables.ablation_table(path)
    said: list[str] = []
    for _ in range(2):
        ablate(["enron"], tmp_path, cross=["enron"], say=said.append)
    assert len(said) == 12
    head, _, row = search_tables.ablation_table(path).splitlines()
    assert head.count("|") == 14
    assert "| m = 4, k = 2 (cross) |" in head
    assert "| m = 4, 2 gate layers |" in head
    assert "**" in row


def _tried(changes: dict[str, object], exact: float, hamming: float, auprc: float) -> dict[str, object]:
    values = {"exact": (exact, 2), "hamming": (hamming, 4), "auprc": (auprc, 3)}
    return {"changes": changes} | {name: {"value": value, "epoch": at} for name, (value, at) in values.items()}


@pytest.mark.usefixtures("small")
def test_each_figure_has_the_settings_that_are_best_for_it(tmp_path: Path) -> None:
    tried = [_tried({}, 5.0, 90.0, 0.2), _tried({"lr": 1e-3}, 4.0, 91.0, 0.3), _tried({"lr": 1e-4}, 3.0, 92.0, 0.1)]
    (tmp_path / "chosen.json").write_text(json.dumps({"enron/spl": {"tried": tried}}))
    first, second, third = chosen_settings(tmp_path, "spl", "enron")
    assert (first.lr, first.chosen) == (SMALL["lr"], (2, 0, 0))
    assert (second.lr, second.chosen) == (1e-3, (0, 0, 3))
    assert (third.lr, third.chosen) == (1e-4, (0, 4, 0))
    tried[1]["hamming"]["value"] = 93.0
    (tmp_path / "chosen.json").write_text(json.dumps({"enron/spl": {"tried": tried}}))
    first, second = chosen_settings(tmp_path, "spl", "enron")
    assert (second.lr, second.chosen) == (1e-3, (0, 4, 3))
    jobs = plan_jobs(["enron"], ["spl"], range(2), tuned=tmp_path)
    assert len(jobs) == 4
    assert plan_jobs(["enron"], ["spl"], range(2), tuned=tmp_path, figures=["exact"]) == jobs[::2]
    assert plan_jobs(["enron"], ["spl"], range(2), tuned=tmp_path, figures=["auprc", "exact"]) == jobs
    results = work(jobs, tmp_path, marginals=tmp_path / "marginals", say=lambda text: None)
    assert [set(result["retrained"]) for result in results[:2]] == [{"exact"}, {"hamming", "auprc"}]
    found = Campaign(tmp_path)
    assert found.seeds("enron", "spl") == 2
    assert len(AUPRC.of(found.of("enron", "spl"), "train_only")) == 2
    assert update_ensembles(found, tmp_path / "marginals", None)["enron/spl"]["seeds"] == [0, 1]


@pytest.mark.usefixtures("small")
def test_ensembles_are_of_runs_whose_marginals_are_at_hand(tmp_path: Path) -> None:
    kept = tmp_path / "marginals"
    jobs = plan_jobs(["enron"], ["hmcnn"], range(3), tuned=tmp_path)
    work(jobs, tmp_path, marginals=kept, say=lambda text: None)
    (kept / f"enron_hmcnn_0_{jobs[0].key}.npz").unlink()
    made = update_ensembles(Campaign(tmp_path), kept, None)
    assert made["enron/hmcnn"]["seeds"] == [1, 2]
    assert update_ensembles(Campaign(tmp_path), tmp_path / "none", None) == made  # on file, though nothing is at hand
    fewer = json.loads((tmp_path / jobs[0].file).read_text())
    fewer["runs"] = fewer["runs"][:2]
    (tmp_path / jobs[0].file).write_text(json.dumps(fewer))
    assert update_ensembles(Campaign(tmp_path), tmp_path / "none", None) == {}  # of a run that is not used any more


@pytest.mark.usefixtures("small")
def test_epochs_that_were_chosen_are_followed(tmp_path: Path) -> None:
    free = Job("enron", replace(Settings(), **SMALL), 0)
    (expected,) = work([free], tmp_path, say=lambda text: None)
    fixed = replace(free, settings=replace(free.settings, chosen=tuple(expected["epochs"].values()), epochs=99))
    (result,) = work([fixed], tmp_path, say=lambda text: None)
    for part in ("epochs", "valid", "train_only", "retrained", "known_weight"):
        assert result[part] == expected[part]
    tune(["enron"], ["spl"], tmp_path, tried=[{}], say=lambda text: None)
    (job,) = plan_jobs(["enron"], ["spl"], range(1), tuned=tmp_path)
    assert job.settings.chosen is not None
    assert job.settings.known_weight in LAMBDAS
    (variant,) = plan_jobs(["enron"], ["spl"], range(1), {"components": 2}, tmp_path)
    assert variant.settings.chosen is None


@pytest.mark.usefixtures("small")
def test_a_column_can_be_added_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(["enron"], ["spl"], tmp_path, tried=[{}], say=lambda text: None)
    both = plan_jobs(["enron"], ["spl"], range(2), tuned=tmp_path)
    expected = work(both, tmp_path / "at-once", say=lambda text: None)
    jobs = plan_jobs(["enron"], ["spl"], range(2), tuned=tmp_path, train_only=1)
    assert [job.columns for job in jobs] == [("train_only", "retrained"), ("retrained",)]
    part = work(jobs, tmp_path, say=lambda text: None)
    assert part[1]["train_only"] == part[1]["valid"] == {}
    assert find_result(both[1], tmp_path) is None
    asked: list[tuple[str, ...]] = []
    real = campaign.run
    monkeypatch.setattr(
        campaign, "run", lambda *args, **options: asked.append(options["columns"]) or real(*args, **options)
    )
    whole = work(both, tmp_path, command="later", say=lambda text: None)
    assert asked == [("train_only",)]  # what is there is not trained again
    assert "later" not in whole[0]
    assert whole[1]["provenance"] == part[1]["provenance"]
    assert whole[1]["later"]["train_only"]["command"] == "later"
    for part_of_run in ("epochs", "valid", "train_only", "retrained", "known_weight"):
        assert [run[part_of_run] for run in whole] == [run[part_of_run] for run in expected]
    assert find_result(both[1], tmp_path) is not None
    assert set(whole[1]["seconds"]) == set(expected[1]["seconds"])
    tables.print_summary(part)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.usefixtures("small")
def test_chosen_epochs_survive_a_stop_before_the_second_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job("enron", replace(Settings(), **SMALL), 0)
    (expected,) = work([job], tmp_path / "at-once", marginals=tmp_path / "one", say=lambda text: None)
    asked: list[tuple[str, ...]] = []
    real = campaign.run

    def run(*args: Any, **options: Any) -> Any:
        asked.append(options["columns"])
        if len(asked) == 2:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(campaign, "run", run)
    with pytest.raises(KeyboardInterrupt):
        work([job], tmp_path, marginals=tmp_path / "two", say=lambda text: None)
    assert find_result(job, tmp_path) is None
    (result,) = work([job], tmp_path, marginals=tmp_path / "two", say=lambda text: None)
    assert asked == [("train_only",), ("retrained",), ("retrained",)]
    for part in ("key", "settings", "epochs", "valid", "train_only", "retrained", "known_weight"):
        assert result[part] == expected[part]
    assert [path.name for path in (tmp_path / "one").iterdir()] == [path.name for path in (tmp_path / "two").iterdir()]


@pytest.mark.usefixtures("small")
def test_variants_do_not_mix_with_the_campaign(tmp_path: Path) -> None:
    jobs = plan_jobs(["enron"], ["spl"], range(1), {"components": 2}, tmp_path)
    work(jobs, tmp_path, say=lambda text: None)
    found = Campaign(tmp_path)
    assert found.seeds("enron", "spl") == 0
    assert list(found.variants) == [("enron", "spl", "components2")]
    assert update_ensembles(found, tmp_path, None) == {}
    assert "| enron | SPL | components2 |" in search_tables.variants(found)


@pytest.mark.usefixtures("small")
def test_the_gene_ontology_has_a_table(tmp_path: Path) -> None:
    assert "Not run yet" in tables.gene_ontology(Campaign(tmp_path))
    work(plan_jobs(["cellcycle-go"], ["hmcnn"], range(1), tuned=tmp_path), tmp_path, say=lambda text: None)
    page = tables.gene_ontology(Campaign(tmp_path))
    assert "| HMCNN, batch 128 |" in page
    assert "Trainings: HMCNN, batch 128 in batches of 128 for at most 4 epochs." in page


def test_rank_sum_needs_a_few_values() -> None:
    assert rank_sum([1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0, 7.0]) is None
    p = rank_sum([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert p is not None
    assert p > 0.9


def test_epochs_are_timed_by_turns(tmp_path: Path) -> None:
    assert "Not measured yet" in tables.timing_table(tmp_path / "timing.json")
    cases = {name: replace(Settings(method=name), **SMALL) for name in ("fil", "spl")}
    seconds = epoch_seconds(made_set(), cases, rounds=2)
    assert [len(values) for values in seconds.values()] == [2, 2]
    assert set(standard_cases("cellcycle")) >= {"FIL", "SPL, m = 4", "SPL, m = 4, 128 features"}


def test_an_unknown_figure_is_named() -> None:
    with pytest.raises(SemprolaError, match="no figure 'haming': choose from exact, hamming, auprc"):
        hmlc(figures="exact,haming")


def test_no_seeds_need_a_reason() -> None:
    with pytest.raises(SemprolaError, match="add --tune"):
        hmlc(seeds=0)


def test_the_grid_of_the_paper_stands_beside_the_published_one(tmp_path: Path) -> None:
    path = tmp_path / "ablation_paper.json"
    assert "Not run yet" in search_tables.paper_ablation_table(path)
    tried = [{"changes": changes, "exact": {"value": float(i)}} for i, changes in enumerate(PAPER_ABLATION[:3])]
    path.write_text(json.dumps({"enron/spl": {"tried": tried}}))
    head, _, paper, ours = search_tables.paper_ablation_table(path).splitlines()
    assert head.split(" | ")[2:5] == [f"m = 2, {gates} gate layers, k = {k}" for gates, k in ((2, 2), (2, 4), (4, 2))]
    assert paper.split(" | ")[2:5] == ["19.53", "18.52", "17.85"]
    assert ours.split(" | ")[2:6] == ["0.00", "1.00", "**2.00**", "–"]
    assert set(ABLATION) == set(TWELVE)
    assert all(len(values) == len(PAPER_ABLATION) == 12 for values in ABLATION.values())
