"""Spaces of ConfigSpace: what is active, and what exists, is what ConfigSpace's own samples say."""

import math

import jax
import pytest

import bonas
from bonas.interchange import from_configspace

cs = pytest.importorskip("ConfigSpace")

SAMPLES = 200


def network():
    """Every kind of parameter and of condition that both can say."""
    space = cs.ConfigurationSpace(seed=0)
    depth, optimizer = (
        cs.Integer("depth", (1, 5)),
        cs.Categorical("optimizer", ["sgd", "adam", "none"]),
    )
    size = cs.OrdinalHyperparameter("size", ["small", "middle", "large"])
    rate, width = (
        cs.Float("rate", (1e-5, 1.0), log=True),
        cs.Integer("width", (4, 256), log=True),
    )
    momentum, decay = cs.Float("momentum", (0.0, 0.9)), cs.Float("decay", (0.0, 1.0))
    nesterov, dropout = (
        cs.Categorical("nesterov", [True, False]),
        cs.Float("dropout", (0.0, 0.8)),
    )
    clip, version = cs.Float("clip", (0.5, 2.0)), cs.Constant("version", 3)
    space.add(
        depth,
        optimizer,
        size,
        rate,
        width,
        momentum,
        decay,
        nesterov,
        dropout,
        clip,
        version,
    )
    space.add(
        cs.EqualsCondition(momentum, optimizer, "sgd"),
        cs.NotEqualsCondition(decay, optimizer, "none"),
        cs.AndConjunction(
            cs.EqualsCondition(nesterov, optimizer, "sgd"),
            cs.GreaterThanCondition(nesterov, momentum, 0.3),
            cs.InCondition(nesterov, depth, [2, 4, 5]),
        ),
        cs.OrConjunction(
            cs.GreaterThanCondition(dropout, size, "small"),
            cs.LessThanCondition(dropout, depth, 3),
        ),
        cs.AndConjunction(
            cs.GreaterThanCondition(clip, depth, 1),
            cs.LessThanCondition(clip, depth, 4),
        ),
        cs.InCondition(width, optimizer, ["sgd", "adam"]),
    )
    return space


def test_configspace_samples_encode_with_the_same_active_parameters():
    theirs = network()
    ours = from_configspace(theirs)
    for sample in theirs.sample_configuration(SAMPLES):
        config = dict(sample)
        # encode refuses a missing and an inactive name
        decoded = ours.decode(ours.encode(config))
        assert set(decoded) == set(config)
        for name, value in config.items():
            if isinstance(value, float):
                assert math.isclose(decoded[name], value, rel_tol=1e-9, abs_tol=1e-12)
            else:
                assert decoded[name] == value


def test_bonas_samples_are_valid_configspace_configurations():
    theirs = network()
    ours = from_configspace(theirs)
    for row in ours.sample(jax.random.key(1), SAMPLES):
        cs.Configuration(theirs, values=ours.decode(row)).check_valid_configuration()


def test_ranges_scales_and_options_are_kept():
    ours = from_configspace(network()).parameters
    assert (ours["rate"].low, ours["rate"].high, ours["rate"].log) == (1e-5, 1.0, True)
    assert (ours["width"].low, ours["width"].high, ours["width"].log) == (4, 256, True)
    assert isinstance(ours["depth"], bonas.Int)
    assert ours["size"] == bonas.Ordinal(("small", "middle", "large"))
    assert ours["version"] == bonas.Choice(3)


def test_the_same_configspace_gives_equal_spaces():
    assert from_configspace(network()) == from_configspace(network())


def conditional(*make):
    """b exists where a is "x"; then whatever `make` adds for c."""
    space = cs.ConfigurationSpace()
    a, b, c = (
        cs.Categorical("a", ["x", "y"]),
        cs.Categorical("b", ["p", "q"]),
        cs.Float("c", (0.0, 1.0)),
    )
    space.add(a, b, c)
    space.add(cs.EqualsCondition(b, a, "x"))
    for each in make:
        space.add(each(a, b, c))
    return space


def test_a_condition_that_includes_the_condition_of_its_parent_is_accepted():
    theirs = conditional(
        lambda a, b, c: cs.AndConjunction(
            cs.NotEqualsCondition(c, b, "p"), cs.EqualsCondition(c, a, "x")
        ),
    )
    ours = from_configspace(theirs)
    for sample in theirs.sample_configuration(50):
        ours.encode(dict(sample))


def forbidden():
    space = conditional()
    space.add(cs.ForbiddenEqualsClause(space["a"], "y"))
    return space


def weighted():
    return cs.ConfigurationSpace(
        {"a": cs.CategoricalHyperparameter("a", ["x", "y"], weights=[1, 3])}
    )


def normal():
    return cs.ConfigurationSpace(
        {"a": cs.NormalFloatHyperparameter("a", 0.0, 1.0, lower=-3.0, upper=3.0)}
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            lambda: conditional(lambda a, b, c: cs.NotEqualsCondition(c, b, "p")),
            "'c': its condition may hold although 'b' is",
        ),
        (
            lambda: conditional(
                lambda a, b, c: cs.OrConjunction(
                    cs.EqualsCondition(c, b, "p"), cs.EqualsCondition(c, a, "y")
                ),
            ),
            "'c': its condition may hold although 'b' is inactive",
        ),
        (forbidden, "cannot represent forbidden clauses: .*a == 'y'"),
        (weighted, "'a': a Space cannot represent weights of options"),
        (normal, "'a': a Space cannot represent the prior of a NormalFloat"),
        (
            lambda: {"a": (0.0, 1.0)},
            "expected a ConfigSpace.ConfigurationSpace; got dict",
        ),
    ],
)
def test_features_that_a_space_cannot_represent_are_refused_by_name(given, says):
    with pytest.raises(ValueError, match=says):
        from_configspace(given())


def test_the_remedy_in_the_error_message_works():
    assert from_configspace(weighted().remove_hyperparameter_priors()).names == ("a",)
