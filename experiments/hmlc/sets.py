"""The data sets by name: their files, and what the published experiments use for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from experiments.data.files import PublishedFile
from semprola.errors import SemprolaError

_SOURCE = "https://raw.githubusercontent.com/EGiunchiglia/C-HMCNN/06d35feab7067756e288c3b0f3e570a8fb7c99d5/HMC_data/"


@dataclass(frozen=True)
class HmlcSet:
    """One data set.

    Args:
        name: what the paper calls it, in small letters; `-go` for the Gene Ontology version.
        width: of the two hidden layers of the network.
        published_epochs: what the released code of C-HMCNN trains for.
        published_lr: its learning rate.
        files: train, valid and test; or train and test, where validation rows are drawn from those of train.
    """

    name: str
    width: int
    published_epochs: int
    published_lr: float
    files: tuple[PublishedFile, ...]

    @property
    def is_go(self) -> bool:
        """Whether the labels are the Gene Ontology, which is a DAG."""
        return self.name.endswith("-go")


def find_set(name: str) -> HmlcSet:
    """The set of that name.

    Raises:
        SemprolaError: there is none.

    Example:
        >>> find_set("enron").width
        1000
    """
    if name not in SETS:
        raise SemprolaError(f"no data set {name!r}: choose from {', '.join(SETS)}")
    return SETS[name]


def _file(path: str, sha256: str) -> PublishedFile:
    folder = "hmc_go" if "_GO" in path else "hmc"
    return PublishedFile(f"{folder}/{Path(path).name}", _SOURCE + path, sha256)


_ALL = (
    HmlcSet(
        "cellcycle",
        width=500,
        published_epochs=106,
        published_lr=1e-4,
        files=(
            _file(
                "datasets_FUN/cellcycle_FUN/cellcycle_FUN.train.arff",
                "4c97ccf6f15b49392b3bda7fec1f601ed921746ef0b78d6fcd4c85a0424dfd66",
            ),
            _file(
                "datasets_FUN/cellcycle_FUN/cellcycle_FUN.valid.arff",
                "8914f37522a484ce1790625e4993d89eed73ce4f6d667711c691a389e3a4f982",
            ),
            _file(
                "datasets_FUN/cellcycle_FUN/cellcycle_FUN.test.arff",
                "2dd7798e23375743b2e31e0236d9a6cb7a73351a777efe381946105417fd1299",
            ),
        ),
    ),
    HmlcSet(
        "derisi",
        width=500,
        published_epochs=67,
        published_lr=1e-4,
        files=(
            _file(
                "datasets_FUN/derisi_FUN/derisi_FUN.train.arff",
                "b690141953247c3e78a6a65840ae6bcdbff5630c34ab7cef04b703f8844ab847",
            ),
            _file(
                "datasets_FUN/derisi_FUN/derisi_FUN.valid.arff",
                "7e68397a67cb574c28789fb64ecbd6e431a6fdeaa7ee64e0bd1cd6b4e855c424",
            ),
            _file(
                "datasets_FUN/derisi_FUN/derisi_FUN.test.arff",
                "8507f5c56bedb86b737632972e22385859aa9f6cd2788c899eb0f5bb0bae9ba0",
            ),
        ),
    ),
    HmlcSet(
        "eisen",
        width=500,
        published_epochs=110,
        published_lr=1e-4,
        files=(
            _file(
                "datasets_FUN/eisen_FUN/eisen_FUN.train.arff",
                "6c92516517f6bb041ae1058fc948444bc3117e0c3b394743d33765122da89fbb",
            ),
            _file(
                "datasets_FUN/eisen_FUN/eisen_FUN.valid.arff",
                "f60f30c2806818ea840bb65fe8758a0da6cd257c0827b43661f77fab5ccaf091",
            ),
            _file(
                "datasets_FUN/eisen_FUN/eisen_FUN.test.arff",
                "bb55674c313f9916f5b3ee675d6bc0e7463216f927035de28a539187cdc31dc1",
            ),
        ),
    ),
    HmlcSet(
        "expr",
        width=1250,
        published_epochs=20,
        published_lr=1e-4,
        files=(
            _file(
                "datasets_FUN/expr_FUN/expr_FUN.train.arff",
                "100314a68323f03a5fa348d57fbf08b62ddff414a0d4c28881157024750b8134",
            ),
            _file(
                "datasets_FUN/expr_FUN/expr_FUN.valid.arff",
                "345aeb499a813118b5da6e43ea51a759f787fa5772f2907f0f789068c0ad82c7",
            ),
            _file(
                "datasets_FUN/expr_FUN/expr_FUN.test.arff",
                "1e7c095a3ce32efa3a81357fd79102e55f282bfa3a4aab40a9c810e5fc4fde0d",
            ),
        ),
    ),
    HmlcSet(
        "gasch1",
        width=1000,
        published_epochs=42,
        published_lr=1e-4,
        files=(
            _file(
                "datasets_FUN/gasch1_FUN/gasch1_FUN.train.arff",
                "bc4615eb1cc93e5db3c757410f81dffce3eb3e39fd98924de4b78f568c344618",
            ),
            _file(
                "datasets_FUN/gasch1_FUN/gasch1_FUN.valid.arff",
                "07b42428dca0b88731f35d7461a23502410eb648aee12b770fa82d90eb31337d",
            ),
            _file(
                "datasets_FUN/gasch1_FUN/gasch1_FUN.test.arff",
                "cab4d135b93adea14c65364d38d302fd3d09b287fc0cba1d58acc2b2f63307b7",
            ),
        ),
    ),
    HmlcSet(
        "gasch2",
        width=500,
        published_epochs=123,
        published_lr=1e-4,
        files=(
            _file(
                "datasets_FUN/gasch2_FUN/gasch2_FUN.train.arff",
                "2a793028d1b3e4b686612f88be26a175933e56ed03616a611d1912d586ef4fc4",
            ),
            _file(
                "datasets_FUN/gasch2_FUN/gasch2_FUN.valid.arff",
                "ad1afe188bc646606d6565bb1ff0427fa3a17cf99f5ba3f09ddfab2616dded9d",
            ),
            _file(
                "datasets_FUN/gasch2_FUN/gasch2_FUN.test.arff",
                "4a0a993d2a03fb391f49a4d282622f55b00ca59d9b2aded242ee5c69f3cedee7",
            ),
        ),
    ),
    HmlcSet(
        "seq",
        width=2000,
        published_epochs=13,
        published_lr=1e-4,
        files=(
            _file(
                "datasets_FUN/seq_FUN/seq_FUN.train.arff",
                "619ada644b8c3e5c7d2aef0a56bf24797e4c844954ec5bc75f7b984521ba475c",
            ),
            _file(
                "datasets_FUN/seq_FUN/seq_FUN.valid.arff",
                "564effba89ad5c3a7d3992e841cf9d9165648b075815113ec31b5c16e91cd4bd",
            ),
            _file(
                "datasets_FUN/seq_FUN/seq_FUN.test.arff",
                "1336093a2b6712000f04db55cd36bc3fc0d799a0551f173f5b47a04191c29dd9",
            ),
        ),
    ),
    HmlcSet(
        "spo",
        width=250,
        published_epochs=115,
        published_lr=1e-4,
        files=(
            _file(
                "datasets_FUN/spo_FUN/spo_FUN.train.arff",
                "8049c3a620b8fcbbbe3f195ccca7dafb36372fce418d9bfe49d6ffadd4bcf6ca",
            ),
            _file(
                "datasets_FUN/spo_FUN/spo_FUN.valid.arff",
                "5ab7eaab567b80144299761abec833aa1a4a1115a347819362d06a149b43b0cf",
            ),
            _file(
                "datasets_FUN/spo_FUN/spo_FUN.test.arff",
                "18a9be63b28d636e767b5886121dee5ddc8ae5a61a05098408d1b8991419f284",
            ),
        ),
    ),
    HmlcSet(
        "diatoms",
        width=2000,
        published_epochs=474,
        published_lr=1e-5,
        files=(
            _file(
                "others/Diatoms_train.arff",
                "19baf9a53db0d3e636481c3b80d0f6532ddb9586f829e22c9cb326effc917e36",
            ),
            _file(
                "others/Diatoms_test.arff",
                "04c4ae6e90297e3da1771615f0ac2a535a0ea5bd4c0625d43052b5130e2f6a09",
            ),
        ),
    ),
    HmlcSet(
        "enron",
        width=1000,
        published_epochs=133,
        published_lr=1e-5,
        files=(
            _file(
                "others/Enron_corr_trainvalid.arff",
                "8265622b84c9ebe6603b64ad5ce82d78ed8709bd66793b80f14f0018d5ef51bf",
            ),
            _file(
                "others/Enron_corr_test.arff",
                "1ae0864a6574b14a5e1b9d614d38ae66ede8c0a253774161dfdf42ebe6d49d11",
            ),
        ),
    ),
    HmlcSet(
        "imclef07a",
        width=1000,
        published_epochs=592,
        published_lr=1e-5,
        files=(
            _file(
                "others/ImCLEF07A_Train.arff",
                "fe240039db5272579924897bcac6c0c38b6cb117277aa49281a2ec936b01e7c9",
            ),
            _file(
                "others/ImCLEF07A_Test.arff",
                "e95c33e0bc8a23be9b093bc34268404c47f304739bd73eceda58f8cbc42a90fb",
            ),
        ),
    ),
    HmlcSet(
        "imclef07d",
        width=1000,
        published_epochs=588,
        published_lr=1e-5,
        files=(
            _file(
                "others/ImCLEF07D_Train.arff",
                "ca6eaafd72bfdf4c78d8cee708d589e3139da206ae07e9ff9b74e67fe4900a09",
            ),
            _file(
                "others/ImCLEF07D_Test.arff",
                "404870af634965a267609e1139a844bf984ad886ced7a928826a85475ba4e595",
            ),
        ),
    ),
    HmlcSet(
        "cellcycle-go",
        width=1000,
        published_epochs=62,
        published_lr=1e-4,
        files=(
            _file(
                "datasets_GO/cellcycle_GO/cellcycle_GO.train.arff",
                "84b1e37e1b8db8361d77808fcd2fd565ea42fc1f4a26401a314f9d28d48a56be",
            ),
            _file(
                "datasets_GO/cellcycle_GO/cellcycle_GO.valid.arff",
                "d0a95ce316e388231a3dd4261a39a0765aa27e7c232fe2cc302415798cd77dec",
            ),
            _file(
                "datasets_GO/cellcycle_GO/cellcycle_GO.test.arff",
                "7fc5630e627e18b77f6531f7f4c8072813f6099872039e85091ba1ca4a9161ef",
            ),
        ),
    ),
)

SETS = {entry.name: entry for entry in _ALL}

TWELVE = tuple(name for name, entry in SETS.items() if not entry.is_go)
"""The sets of the paper."""

FUN = TWELVE[:8]
"""Functions of yeast genes: the sets with a validation file."""
