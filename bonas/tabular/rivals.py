"""What a found network is compared with: a linear model, and the network that one would train without a search.

Both are scikit-learn's, on the same rows, with the same scaling of inputs and targets.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bonas.problems.examples import Examples, Split, unscale
from bonas.tabular.look import Answer
from bonas.tabular.prepared import Prepared

RIVALS = ("linear", "mlp")
NAMES = {  # for people
    ("linear", "regression"): "ridge regression",
    ("linear", "classification"): "logistic regression",
    ("mlp", "regression"): "default MLP, 2×64",
    ("mlp", "classification"): "default MLP, 2×64",
}
_PENALTIES = np.logspace(-3, 4, 30)  # of ridge regression, chosen by leave-one-out
_STRENGTHS = np.logspace(-3, 3, 7)  # inverse penalties of logistic regression, chosen by five folds
_EPOCHS = 1000  # early stopping ends the network's training long before


def answers(name: str, prepared: Prepared, seed: int) -> tuple[Answer, Answer]:
    """What a rival says of the rows held out, fitted on the others fold by fold, and of the test rows, fitted on all others."""
    held = [fitted(name, split, seed)(split.validation) for split in prepared.folds]
    return Answer(np.concatenate([answer.mean for answer in held])), fitted(name, prepared.whole, seed)(prepared.whole.test)


def fitted(name: str, split: Split, seed: int) -> Callable[[Examples], Answer]:
    """A rival fitted to the training rows of a split, as a function of scaled examples."""
    train = split.train
    if train.task == "regression":
        model = _regressor(name, seed).fit(train.x, train.y)
        return lambda examples: Answer(unscale(split.scaling, model.predict(examples.x)))
    kinds = max(len(train.classes), 2)
    model = _classifier(name, seed, train.y).fit(train.x, train.y)

    def chances(examples: Examples) -> Answer:
        found = np.zeros((len(examples.x), kinds))
        found[:, model.classes_] = model.predict_proba(examples.x)  # a rare class may have no row to train on
        return Answer(found)

    return chances


def _regressor(name: str, seed: int) -> Any:
    from sklearn.linear_model import RidgeCV
    from sklearn.neural_network import MLPRegressor

    if name == "linear":
        return RidgeCV(alphas=_PENALTIES)
    return MLPRegressor(hidden_layer_sizes=(64, 64), early_stopping=True, max_iter=_EPOCHS, random_state=seed)


def _classifier(name: str, seed: int, y: np.ndarray) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.neural_network import MLPClassifier

    if name == "linear":
        model = LogisticRegression(max_iter=1000)
        enough = min(np.bincount(y)[np.unique(y)]) >= 5  # rows of every class, so that each fold has some of it
        return GridSearchCV(model, {"C": _STRENGTHS}, scoring="neg_log_loss", cv=5) if enough else model
    stops = min(np.bincount(y)[np.unique(y)]) >= 10  # scikit-learn's own validation rows hold some of every class
    return MLPClassifier(hidden_layer_sizes=(64, 64), early_stopping=stops, max_iter=_EPOCHS, random_state=seed)
