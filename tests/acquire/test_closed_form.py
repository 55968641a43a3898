"""Closed-form acquisitions against mpmath, `decimal`, quadrature and scipy."""

import math
from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from bonas import acquire

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
# Both sides of the changes of form at 0 and 0.6745, both ends of the promised range, and −21,
# where JAX's log_ndtr is weak.
Z = np.array(
    [
        *(
            -1000.0,
            -300.5,
            -100.0,
            -38.5,
            -21.0,
            -20.0,
            -12.25,
            -8.0,
            -5.0,
            -3.0,
            -2.0,
            -1.5,
            -1.0,
            -0.75,
            -0.25,
            -1e-9,
        ),
        *(0.0, 1e-9, 0.25, 0.5, 0.675, 0.875, 1.0, 1.5, 2.0, 3.5, 5.0, 8.0, 20.0, 40.0),
    ]
)
ei, log_ei, pi, log_pi, lcb, greedy = map(
    jax.jit,
    (
        acquire.ei,
        acquire.log_ei,
        acquire.pi,
        acquire.log_pi,
        acquire.lcb,
        acquire.greedy,
    ),
)
IMPROVING = [ei, log_ei, pi, log_pi]
ALL = [*IMPROVING, lcb, greedy]


def mills(t):
    """Return Φ(−t)/φ(t) by Laplace's continued fraction, to fifty digits for t ≥ 1."""
    tail = t
    for k in range(2000, 0, -1):
        tail = t + k / tail
    return 1 / tail


def normal(z):
    """φ(z), Φ(z) and h(z) = φ + zΦ to forty digits."""
    z = Decimal(float(z))
    density = (-z * z / 2).exp() / (2 * PI).sqrt()
    if abs(z) >= 1:
        upper = density * mills(abs(z))
        cumulative = upper if z < 0 else 1 - upper
    else:
        term = total = z
        for k in range(1, 60):
            term *= z * z / (2 * k + 1)
            total += term
        cumulative = Decimal("0.5") + density * total
    return density, cumulative, density + z * cumulative


@pytest.fixture(scope="module")
def exact():
    """Logarithms and ratios of φ, Φ and h at every Z, rounded to float64 at the very end."""
    with localcontext() as context:
        context.prec = 60
        rows = [
            (h.ln(), cumulative / h, density / h, cumulative.ln(), density / cumulative)
            for density, cumulative, h in map(normal, Z)
        ]
    names = (
        "log_h",
        "cumulative_over_h",
        "density_over_h",
        "log_ndtr",
        "density_over_cumulative",
    )
    return {
        name: np.array([float(row[i]) for row in rows]) for i, name in enumerate(names)
    }


@pytest.fixture(scope="module")
def rows(reference):
    """Return the reference rows for minimization: mean, std (1, 100) and values; best is 0.

    The shift is made in decimal, so that 1e-6 beside 1.25 loses no digit before the library sees
    it.
    """
    table = reference("acquisition")["rows"]
    columns = {name: np.array([float(row[name]) for row in table]) for name in table[0]}
    mean = np.array([float(Decimal(row["best"]) - Decimal(row["mu"])) for row in table])
    return {
        **columns,
        "mean": jnp.asarray(mean)[None, :],
        "std": jnp.asarray(columns["sigma"])[None, :],
    }


def candidates(seed, s=3, m=40):
    keys = jax.random.split(jax.random.key(seed), 2)
    return jax.random.normal(keys[0], (s, m)), jnp.exp(
        jax.random.normal(keys[1], (s, m))
    )


# Values


def test_ei_equals_reference(rows):
    # exp(−z²/2) in float64 is right to z² roundings: 2e-13 at z = −38.5. Below 1e-300 numbers lose
    # digits to underflow.
    np.testing.assert_allclose(
        ei(rows["mean"], rows["std"], 0.0), rows["EI_max"], rtol=4e-13, atol=1e-300
    )


def test_log_ei_equals_reference(rows):
    np.testing.assert_allclose(
        log_ei(rows["mean"], rows["std"], 0.0), rows["logEI"], rtol=2e-15, atol=1e-15
    )


def test_pi_equals_reference(rows):
    np.testing.assert_allclose(
        pi(rows["mean"], rows["std"], 0.0), rows["PI"], rtol=4e-13, atol=1e-300
    )


def test_log_pi_equals_reference(rows):
    # Above z = 5 this is −Φ(−z), which inherits the roundings of exp(−z²/2): 2e-14 at z = 10.
    np.testing.assert_allclose(
        log_pi(rows["mean"], rows["std"], 0.0), rows["logPI"], rtol=4e-14, atol=1e-300
    )


@pytest.mark.parametrize(
    ("kappa", "column"), [(1.0, "UCB_kappa1"), (2.0, "UCB_kappa2")]
)
def test_lcb_of_the_negated_function_is_the_reference_ucb(rows, kappa, column):
    score = lcb(-jnp.asarray(rows["mu"])[None, :], rows["std"], 0.0, kappa=kappa)
    np.testing.assert_allclose(score, rows[column], rtol=1e-14)


def test_lcb_is_the_reference_lcb_with_its_sign_turned(rows):
    score = lcb(jnp.asarray(rows["mu"])[None, :], rows["std"], 0.0)
    np.testing.assert_allclose(-score, rows["LCB_kappa2"], rtol=1e-14)


def test_log_h_is_exact_to_rounding(exact):
    np.testing.assert_allclose(
        acquire.log_h(jnp.asarray(Z)), exact["log_h"], rtol=1e-15, atol=1e-15
    )


def test_log_ndtr_is_exact_to_rounding(exact):
    np.testing.assert_allclose(
        acquire.log_ndtr(jnp.asarray(Z)), exact["log_ndtr"], rtol=3e-14, atol=1e-55
    )


@pytest.mark.parametrize("seed", range(3))
def test_ei_equals_the_integral_of_the_improvement(seed):
    mean, std = candidates(seed, s=1, m=5)
    best, xi = 0.3, 0.1
    expected = [
        quad(
            lambda f: (best - xi - f) * norm.pdf(f, mu, sd),
            mu - 40 * sd,
            best - xi,
            points=[min(mu, best - xi)],
        )[0]
        for mu, sd in zip(np.asarray(mean[0]), np.asarray(std[0]), strict=True)
    ]
    np.testing.assert_allclose(
        ei(mean, std, best, xi=xi), expected, rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("acquisition", IMPROVING)
def test_xi_is_taken_off_the_best(acquisition):
    mean, std = candidates(0)
    np.testing.assert_allclose(
        acquisition(mean, std, 0.5, xi=0.2), acquisition(mean, std, 0.3), rtol=1e-13
    )


@pytest.mark.parametrize("seed", range(3))
def test_log_ei_is_the_log_of_ei(seed):
    mean, std = candidates(seed)
    np.testing.assert_allclose(
        log_ei(mean, std, -0.5), np.log(ei(mean, std, -0.5)), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("seed", range(3))
def test_log_pi_is_the_log_of_pi(seed):
    mean, std = candidates(seed)
    np.testing.assert_allclose(
        log_pi(mean, std, -0.5), np.log(pi(mean, std, -0.5)), rtol=1e-12, atol=1e-14
    )


# The forms the sources print


def test_twists_example_has_the_right_expected_improvement(reference):
    case = reference("acquisition")["seed_errors"][
        "twist_wrong_EI_at_y_star_1_mu_0_8_var_0_04"
    ]
    score = ei(
        -jnp.full((1, 1), case["mu"]),
        jnp.full((1, 1), math.sqrt(case["var"])),
        -case["y_star"],
    )
    np.testing.assert_allclose(score, [case["correct_max"]], rtol=1e-13)


def printed_twist(mean, variance, best):
    """Compute EI as Twist, Section 4, prints it: −std φ, and the variance in place of its root."""
    z = (best - mean) / variance
    return (best - mean) * norm.cdf(z) - variance * norm.pdf(z)


def printed_wilton(mean, variance, best):
    """Compute EI as Wilton 2020 prints it: the variance in place of the standard deviation."""
    z = (best - mean) / variance
    return variance * (z * norm.cdf(z) + norm.pdf(z))


def test_twists_printed_form_gives_the_number_on_record_which_is_wrong(reference):
    case = reference("acquisition")["seed_errors"][
        "twist_wrong_EI_at_y_star_1_mu_0_8_var_0_04"
    ]
    printed = printed_twist(case["mu"], case["var"], case["y_star"])
    np.testing.assert_allclose(
        printed, case["printed_form_uses_minus_and_variance"], rtol=1e-12
    )
    score = ei(
        -jnp.full((1, 1), case["mu"]),
        jnp.full((1, 1), math.sqrt(case["var"])),
        -case["y_star"],
    )
    assert abs(float(score[0]) - printed) > 0.18


@pytest.mark.parametrize("printed", [printed_twist, printed_wilton])
def test_printed_forms_differ_from_ei(printed):
    mean, variance, best = 1.0, 0.04, 0.9
    right = float(
        ei(jnp.full((1, 1), mean), jnp.full((1, 1), math.sqrt(variance)), best)[0]
    )
    assert abs(printed(mean, variance, best) - right) > 0.03


# Gradients


def test_gradient_of_log_h_is_exact_to_rounding(exact):
    slope = jax.jit(jax.vmap(jax.grad(acquire.log_h)))(jnp.asarray(Z))
    np.testing.assert_allclose(slope, exact["cumulative_over_h"], rtol=2e-15)


def test_gradient_of_log_ndtr_is_exact_to_rounding(exact):
    slope = jax.jit(jax.vmap(jax.grad(acquire.log_ndtr)))(jnp.asarray(Z))
    # φ(40) is right to 1600 roundings.
    np.testing.assert_allclose(slope, exact["density_over_cumulative"], rtol=4e-13)


def test_second_derivative_of_log_h_is_right(exact):
    curvature = jax.jit(jax.vmap(jax.grad(jax.grad(acquire.log_h))))(jnp.asarray(Z))
    expected = exact["density_over_h"] - exact["cumulative_over_h"] ** 2
    # Both terms are near z² and their difference near 1, so the expected value is right to z²
    # roundings; 1e-12 for the ripple.
    assert np.all(np.abs(curvature - expected) <= 1e-12 + 1e-15 * Z * Z)


@pytest.mark.parametrize("std", [1e-6, 0.25, 32.0])
def test_gradients_of_log_ei_are_right_and_finite_over_the_whole_range(exact, std):
    std = 2.0 ** round(math.log2(std))  # a power of two, so that z is exactly Z
    rows = -jnp.asarray(Z)[None, :] * std, jnp.full((1, len(Z)), std)
    d_mean, d_std = jax.jit(
        jax.grad(lambda mean, std: log_ei(mean, std, 0.0).sum(), argnums=(0, 1))
    )(*rows)
    np.testing.assert_allclose(d_mean[0] * std, -exact["cumulative_over_h"], rtol=1e-13)
    np.testing.assert_allclose(
        d_std[0] * std, exact["density_over_h"], rtol=1e-13, atol=1e-15
    )


def test_gradients_of_ei_are_minus_phi_and_phi():
    mean, std = candidates(1, s=1)
    d_mean, d_std = jax.jit(
        jax.grad(lambda mean, std: ei(mean, std, 0.2).sum(), argnums=(0, 1))
    )(mean, std)
    z = np.asarray((0.2 - mean) / std)
    np.testing.assert_allclose(d_mean, -norm.cdf(z), rtol=1e-12)
    np.testing.assert_allclose(d_std, norm.pdf(z), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("acquisition", ALL)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_scores_and_gradients_are_finite(acquisition, dtype):
    std = jnp.full((1, len(Z)), 0.5, dtype)
    mean = -jnp.asarray(Z, dtype)[None, :] * 0.5
    score, gradients = jax.jit(
        jax.value_and_grad(lambda *row: acquisition(*row, 0.0).sum(), argnums=(0, 1))
    )(mean, std)
    assert score.dtype == dtype
    assert all(np.isfinite(part).all() for part in (score, *gradients))


def test_log_ei_in_float32_is_as_exact_as_promised(exact):
    mean = -jnp.asarray(Z, jnp.float32)[None, :]
    score = log_ei(mean, jnp.ones_like(mean), 0.0)
    assert np.all(
        np.abs(np.asarray(score, float) - exact["log_h"]) <= 1e-7 * Z**2 + 1e-6
    )


@pytest.mark.parametrize("function", [acquire.log_h, acquire.log_ndtr])
def test_no_branch_makes_a_nan_on_the_way(function):
    """Whoever hunts their own NaN with jax.debug_nans must not be stopped here."""
    with jax.debug_nans(True):
        assert np.isfinite(function(jnp.asarray(Z))).all()


# Averages over hyperparameter samples


@pytest.mark.parametrize(
    "best", [0.2, np.array([0.2, -0.4, 1.0])], ids=["one best", "a best each"]
)
@pytest.mark.parametrize(
    ("acquisition", "undo"),
    [(a, np.exp if a.__name__.startswith("log") else np.asarray) for a in ALL],
)
def test_scores_are_the_mean_over_samples(acquisition, undo, best):
    mean, std = candidates(2)
    bests = np.broadcast_to(best, 3)
    apart = [
        undo(acquisition(mean[i : i + 1], std[i : i + 1], bests[i])) for i in range(3)
    ]
    np.testing.assert_allclose(
        undo(acquisition(mean, std, jnp.asarray(best))),
        np.mean(apart, axis=0),
        rtol=1e-12,
    )


def test_log_ei_averages_in_the_far_tail():
    mean, std = jnp.array([[1000.0], [1001.0]]), jnp.ones((2, 1))
    one, other = (
        float(log_ei(mean[i : i + 1], std[i : i + 1], 0.0)[0]) for i in range(2)
    )
    expected = one + math.log1p(math.exp(other - one)) - math.log(2.0)
    np.testing.assert_allclose(log_ei(mean, std, 0.0), [expected], rtol=1e-15)


# Properties


@pytest.mark.parametrize("seed", range(3))
def test_ei_is_never_negative(seed):
    mean, std = candidates(seed, s=1, m=5000)
    assert np.all(np.asarray(ei(30.0 * mean, std, 0.0)) >= 0.0)


@pytest.mark.parametrize("mean", [-2.0, 0.0, 0.5, 20.0])
def test_ei_grows_with_std(mean):
    std = jnp.logspace(-2, 2, 400)[None, :]
    score = np.asarray(ei(jnp.full_like(std, mean), std, 0.0))
    assert np.all(np.diff(score) >= -4e-16 * score[1:])
    assert score[-1] > score[0]


@pytest.mark.parametrize("mean", [-2.0, -1e-3, 0.0, 1e-3, 2.0])
def test_ei_tends_to_the_certain_improvement(mean):
    score = ei(jnp.full((1, 1), mean), jnp.full((1, 1), 1e-12), 0.0)
    np.testing.assert_allclose(score, [max(-mean, 0.0)], rtol=1e-14, atol=1e-12)


@pytest.mark.parametrize(
    ("acquisition", "nothing"),
    [(a, -np.inf if a.__name__.startswith("log") else 0.0) for a in IMPROVING],
)
def test_a_known_value_is_no_improvement(acquisition, nothing):
    """Hutchinson 2019, eq. 2.40."""
    mean = jnp.array([[-1.0, 0.0, 1.0]])
    np.testing.assert_array_equal(
        acquisition(mean, jnp.zeros_like(mean), 0.0), [nothing] * 3
    )


@pytest.mark.parametrize("acquisition", IMPROVING)
def test_gradients_at_known_values_are_zero(acquisition):
    mean, std = jnp.array([[-1.0, 0.0, 1.0, 0.3]]), jnp.array([[0.0, 0.0, 0.0, 1.0]])
    gradients = jax.jit(
        jax.grad(lambda *row: acquisition(*row, 0.0)[:3].sum(), argnums=(0, 1))
    )(mean, std)
    np.testing.assert_array_equal(gradients, np.zeros((2, 1, 4)))


@pytest.mark.parametrize("acquisition", ALL)
def test_a_bad_prediction_shows(acquisition):
    mean, std = candidates(0, s=2, m=3)
    bad = acquisition(mean.at[0, 1].set(jnp.nan), std.at[1, 2].set(jnp.nan), 0.0)
    expected = [False, True, acquisition is not greedy]
    np.testing.assert_array_equal(np.isnan(bad), expected)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ALL)
def test_jit_and_vmap_change_nothing(acquisition):
    mean, std = (
        jnp.stack(part)
        for part in zip(*(candidates(seed) for seed in range(4)), strict=True)
    )
    best = jnp.linspace(-1.0, 1.0, 4)
    plain = getattr(acquire, acquisition.__name__)
    apart = [plain(mean[i], std[i], best[i]) for i in range(4)]
    np.testing.assert_allclose(
        jax.vmap(acquisition)(mean, std, best), apart, rtol=1e-13, atol=1e-15
    )


def test_greedy_prefers_the_lowest_mean():
    assert (
        int(jnp.argmax(greedy(jnp.array([[3.0, -1.0, 2.0]]), jnp.ones((1, 3)), 0.0)))
        == 1
    )


# The schedule of kappa


@pytest.mark.parametrize(
    ("step", "d", "delta"), [(1, 2, 0.1), (7, 1, 0.1), (40, 6, 0.01)]
)
def test_kappa_schedule_is_the_published_formula(step, d, delta):
    expected = math.sqrt(
        2.0 * math.log(step ** (d / 2 + 2) * math.pi**2 / (3.0 * delta))
    )
    np.testing.assert_allclose(
        acquire.kappa_schedule(step, d, delta), expected, rtol=1e-14
    )


def test_kappa_schedule_is_traceable():
    steps = jnp.arange(1, 20)
    np.testing.assert_array_less(
        0.0, jnp.diff(jax.jit(lambda steps: acquire.kappa_schedule(steps, 2))(steps))
    )


# Errors


@pytest.mark.parametrize("acquisition", ALL)
def test_shapes_are_checked(acquisition):
    with pytest.raises(ValueError, match=r"\(s, m\)"):
        acquisition(jnp.zeros(3), jnp.ones(3), 0.0)
    with pytest.raises(ValueError, match=r"\(s, m\)"):
        acquisition(jnp.zeros((2, 3)), jnp.ones((1, 3)), 0.0)
    with pytest.raises(ValueError, match="best"):
        acquisition(jnp.zeros((2, 3)), jnp.ones((2, 3)), jnp.zeros(3))


def test_delta_must_be_a_probability():
    with pytest.raises(ValueError, match="delta"):
        acquire.kappa_schedule(1, 2, delta=0.0)
