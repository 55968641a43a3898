"""Reference models from scikit-learn: a linear model, and an MLP trained without a search.

They are fitted to the same rows, with the same scaling of inputs and targets. To add one, extend
`REFERENCE_NAMES` and the two functions that make the estimators.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bonas.problems.examples import Examples, Split, unscale
from bonas.tabular.scores import Predictive, concatenate
from bonas.tabular.splits import PreparedTable

REFERENCES = ("linear", "mlp")
# Display names.
REFERENCE_NAMES = {
    ("linear", "regression"): "ridge regression",
    ("linear", "classification"): "logistic regression",
    ("mlp", "regression"): "default MLP, 2×64",
    ("mlp", "classification"): "default MLP, 2×64",
}
# Penalties of ridge regression, chosen by leave-one-out cross-validation.
_PENALTIES = np.logspace(-3, 4, 30)
# Inverse penalties of logistic regression, chosen by five-fold cross-validation.
_STRENGTHS = np.logspace(-3, 3, 7)
# Rows of every class that cross-validation needs, and early stopping.
_MIN_ROWS_CV = 5
_MIN_ROWS_EARLY_STOPPING = 10
# Early stopping ends the training of the MLP much earlier.
_MAX_EPOCHS = 1000


def reference_predictions(
    name: str, table: PreparedTable, seed: int
) -> tuple[Predictive, Predictive]:
    """Predict the validation rows of all folds, and the test rows, by a reference model."""
    validation = [
        fit_reference(name, split, seed)(split.validation) for split in table.folds
    ]
    predict_test = fit_reference(name, table.development, seed)
    return concatenate(validation), predict_test(table.development.test)


def fit_reference(
    name: str, split: Split, seed: int
) -> Callable[[Examples], Predictive]:
    """Fit a reference model; return a function that predicts scaled examples."""
    train = split.train
    if train.task == "regression":
        model = _regressor(name, seed).fit(train.x, train.y)
        return lambda examples: Predictive(
            unscale(split.scaling, model.predict(examples.x))
        )
    n_classes = max(len(train.classes), 2)
    model = _classifier(name, seed, train.y).fit(train.x, train.y)

    def predict(examples: Examples) -> Predictive:
        probabilities = np.zeros((len(examples.x), n_classes))
        # A rare class may have no training row.
        probabilities[:, model.classes_] = model.predict_proba(examples.x)
        return Predictive(probabilities)

    return predict


def _regressor(name: str, seed: int) -> Any:
    from sklearn.linear_model import RidgeCV
    from sklearn.neural_network import MLPRegressor

    if name == "linear":
        return RidgeCV(alphas=_PENALTIES)
    return MLPRegressor(
        hidden_layer_sizes=(64, 64),
        early_stopping=True,
        max_iter=_MAX_EPOCHS,
        random_state=seed,
    )


def _classifier(name: str, seed: int, y: np.ndarray) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.neural_network import MLPClassifier

    rarest = min(np.bincount(y)[np.unique(y)])
    if name == "linear":
        model = LogisticRegression(max_iter=1000)
        if rarest < _MIN_ROWS_CV:
            return model
        return GridSearchCV(model, {"C": _STRENGTHS}, scoring="neg_log_loss", cv=5)
    return MLPClassifier(
        hidden_layer_sizes=(64, 64),
        early_stopping=rarest >= _MIN_ROWS_EARLY_STOPPING,
        max_iter=_MAX_EPOCHS,
        random_state=seed,
    )
