"""Spaces of ConfigSpace: what is active, and what exists, is what ConfigSpace's own samples say."""

import math

import jax
import pytest

import bonas
from bonas.interchange import from_configspace

cs = pytest.importorskip("ConfigSpace")

SAMPLES = 200
LOST = "ignore:parameter 'size'. the order:UserWarning"


def network():
    """Every kind of parameter and of condition that both can say."""
    space = cs.ConfigurationSpace(seed=0)
    depth, optimiser = cs.Integer("depth", (1, 5)), cs.Categorical("optimiser", ["sgd", "adam", "none"])
    size = cs.OrdinalHyperparameter("size", ["small", "middle", "large"])
    rate, width = cs.Float("rate", (1e-5, 1.0), log=True), cs.Integer("width", (4, 256), log=True)
    momentum, decay = cs.Float("momentum", (0.0, 0.9)), cs.Float("decay", (0.0, 1.0))
    nesterov, dropout = cs.Categorical("nesterov", [True, False]), cs.Float("dropout", (0.0, 0.8))
    clip, version = cs.Float("clip", (0.5, 2.0)), cs.Constant("version", 3)
    space.add(depth, optimiser, size, rate, width, momentum, decay, nesterov, dropout, clip, version)
    space.add(
        cs.EqualsCondition(momentum, optimiser, "sgd"),
        cs.NotEqualsCondition(decay, optimiser, "none"),
        cs.AndConjunction(
            cs.EqualsCondition(nesterov, optimiser, "sgd"),
            cs.GreaterThanCondition(nesterov, momentum, 0.3),
            cs.InCondition(nesterov, depth, [2, 4, 5]),
        ),
        cs.OrConjunction(cs.GreaterThanCondition(dropout, size, "small"), cs.LessThanCondition(dropout, depth, 3)),
        cs.AndConjunction(cs.GreaterThanCondition(clip, depth, 1), cs.LessThanCondition(clip, depth, 4)),
        cs.InCondition(width, optimiser, ["sgd", "adam"]),
    )
    return space


@pytest.mark.filterwarnings(LOST)
def test_samples_of_theirs_are_points_of_ours_with_the_same_parameters_active():
    theirs = network()
    ours = from_configspace(theirs)
    for sample in theirs.sample_configuration(SAMPLES):
        config = dict(sample)
        decoded = ours.decode(ours.encode(config))  # encode refuses a missing and an inactive name
        assert set(decoded) == set(config)
        for name, value in config.items():
            if isinstance(value, float):
                assert math.isclose(decoded[name], value, rel_tol=1e-9, abs_tol=1e-12)
            else:
                assert decoded[name] == value


@pytest.mark.filterwarnings(LOST)
def test_samples_of_ours_are_legal_for_theirs():
    theirs = network()
    ours = from_configspace(theirs)
    for row in ours.sample(jax.random.key(1), SAMPLES):
        cs.Configuration(theirs, values=ours.decode(row)).check_valid_configuration()


@pytest.mark.filterwarnings(LOST)
def test_ranges_scales_and_options_are_kept():
    ours = from_configspace(network()).parameters
    assert (ours["rate"].low, ours["rate"].high, ours["rate"].log) == (1e-5, 1.0, True)
    assert (ours["width"].low, ours["width"].high, ours["width"].log) == (4, 256, True)
    assert isinstance(ours["depth"], bonas.Int)
    assert ours["size"].names == ("small", "middle", "large")
    assert ours["version"].names == (3,)


@pytest.mark.filterwarnings(LOST)
def test_the_same_configspace_gives_equal_spaces():
    assert from_configspace(network()) == from_configspace(network())


def test_an_order_that_is_lost_is_told():
    with pytest.warns(UserWarning, match="parameter 'size': the order of its options is lost") as told:
        from_configspace(cs.ConfigurationSpace({"size": cs.OrdinalHyperparameter("size", ["small", "large"])}))
    assert told[0].filename == __file__


def conditional(*make):
    """b exists where a is "x"; then whatever `make` adds for c."""
    space = cs.ConfigurationSpace()
    a, b, c = cs.Categorical("a", ["x", "y"]), cs.Categorical("b", ["p", "q"]), cs.Float("c", (0.0, 1.0))
    space.add(a, b, c)
    space.add(cs.EqualsCondition(b, a, "x"))
    for each in make:
        space.add(each(a, b, c))
    return space


def test_a_condition_that_says_its_parent_is_active_is_fine():
    theirs = conditional(
        lambda a, b, c: cs.AndConjunction(cs.NotEqualsCondition(c, b, "p"), cs.EqualsCondition(c, a, "x")),
    )
    ours = from_configspace(theirs)
    for sample in theirs.sample_configuration(50):
        ours.encode(dict(sample))


def forbidden():
    space = conditional()
    space.add(cs.ForbiddenEqualsClause(space["a"], "y"))
    return space


def weighted():
    return cs.ConfigurationSpace({"a": cs.CategoricalHyperparameter("a", ["x", "y"], weights=[1, 3])})


def normal():
    return cs.ConfigurationSpace({"a": cs.NormalFloatHyperparameter("a", 0.0, 1.0, lower=-3.0, upper=3.0)})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda: conditional(lambda a, b, c: cs.NotEqualsCondition(c, b, "p")), "'c': its condition may hold where 'b' is"),
        (
            lambda: conditional(
                lambda a, b, c: cs.OrConjunction(cs.EqualsCondition(c, b, "p"), cs.EqualsCondition(c, a, "y")),
            ),
            "'c': its condition may hold where 'b' is inactive",
        ),
        (forbidden, "forbidden clauses cannot be represented: .*a == 'y'"),
        (weighted, "'a': the weights of its options cannot be represented"),
        (normal, "'a': the prior of a NormalFloatHyperparameter cannot be represented"),
        (lambda: {"a": (0.0, 1.0)}, "expected a ConfigSpace.ConfigurationSpace; got dict"),
    ],
)
def test_what_a_space_cannot_say_is_refused_by_name(given, says):
    with pytest.raises(ValueError, match=says):
        from_configspace(given())


def test_the_way_out_that_the_error_names_works():
    assert from_configspace(weighted().remove_hyperparameter_priors()).names == ("a",)
