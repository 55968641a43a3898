"""HMC and NUTS: the dynamics against stored values, the step size against the published rule, draws
against normals.

Statistical checks have a tolerance of five Monte-Carlo standard errors, from effective sample
sizes: one fails for about one seed in a million; the seeds are fixed.
"""

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from numpyro.infer import HMC
from numpyro.infer.hmc_util import euclidean_kinetic_energy, velocity_verlet

from bonas import infer

COV = np.array([[1.0, 0.6], [0.6, 0.5]])
MEAN = np.array([1.0, -2.0])


@pytest.fixture(scope="module")
def network(reference):
    """The posterior energy of a small tanh network and a trajectory through it."""
    stored = {
        name: np.asarray(value)
        for name, value in reference("hmc").items()
        if name not in ("how", "order", "gibbs")
    }

    def energy(q):
        sizes = [int(size) for size in stored["sizes"]]
        shapes = list(pairwise(sizes))
        ends = np.cumsum([a * b for a, b in shapes] + sizes[1:])
        parts = jnp.split(q, ends[:-1])
        hidden = jnp.asarray(stored["x"])[:, None]
        for layer, shape in enumerate(shapes):
            hidden = (
                hidden @ parts[layer].reshape(shape)
                + parts[len(shapes) + layer][None, :]
            )
            hidden = jnp.tanh(hidden) if layer < len(shapes) - 1 else hidden
        residual = jnp.asarray(stored["y"]) - hidden[:, 0]
        return (
            0.5 * stored["tau_p"] * q @ q + 0.5 * stored["tau_n"] * residual @ residual
        )

    return energy, stored


def _integrate(energy, q, p, step_size, steps):
    """q and p after leapfrog steps by the integrator that `hmc` runs, with unit masses."""
    first, update = velocity_verlet(energy, euclidean_kinetic_energy)
    masses = jnp.ones_like(q)
    state = jax.lax.fori_loop(
        0, steps, lambda _, state: update(step_size, masses, state), first(q, p)
    )
    return state.z, state.r


def test_the_network_energy_agrees_with_the_stored_one(network):
    energy, stored = network
    value, gradient = jax.jit(jax.value_and_grad(energy))(stored["q0"])
    np.testing.assert_allclose(value, stored["energy"], rtol=1e-12)
    np.testing.assert_allclose(gradient, stored["grad"], rtol=1e-9)


@pytest.fixture(scope="module")
def trajectory(network):
    energy, stored = network
    steps, step_size = int(stored["L"]), float(stored["eps"])
    return (
        energy,
        stored,
        jax.jit(lambda q, p: _integrate(energy, q, p, step_size, steps)),
    )


def test_the_leapfrog_reaches_the_stored_end(trajectory):
    _, stored, integrate = trajectory
    q, p = integrate(stored["q0"], stored["p0"])
    np.testing.assert_allclose(q, stored["q_end"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        p, stored["p_end_before_negation"], rtol=1e-9, atol=1e-12
    )


def test_the_hamiltonian_agrees_with_the_stored_one(trajectory):
    energy, stored, integrate = trajectory
    q, p = integrate(stored["q0"], stored["p0"])
    np.testing.assert_allclose(
        energy(stored["q0"]) + 0.5 * stored["p0"] @ stored["p0"],
        stored["H_start"],
        rtol=1e-12,
    )
    np.testing.assert_allclose(energy(q) + 0.5 * p @ p, stored["H_end"], rtol=1e-10)


def test_the_leapfrog_runs_backwards_when_the_momentum_is_negated(trajectory):
    _, stored, integrate = trajectory
    q, p = integrate(stored["q0"], stored["p0"])
    back, momentum = integrate(q, -p)
    np.testing.assert_allclose(back, stored["q0"], atol=1e-11)
    np.testing.assert_allclose(-momentum, stored["p0"], atol=1e-11)


def test_the_leapfrog_preserves_volume(trajectory):
    _, stored, integrate = trajectory
    d = len(stored["q0"])
    both = jax.jit(
        jax.jacfwd(lambda state: jnp.concatenate(integrate(state[:d], state[d:])))
    )
    sign, log_volume = np.linalg.slogdet(
        both(jnp.concatenate([stored["q0"], stored["p0"]]))
    )
    assert sign == 1.0
    assert abs(log_volume) < 1e-10


@pytest.mark.parametrize("equations", ["right", "printed 3.9", "printed 3.10"])
def test_only_the_right_equations_of_motion_conserve_energy(network, equations):
    """dH/dτ is 0 for dq/dτ = p/m, dp/dτ = −∂E/∂q, not for eqs. 3.9 and 3.10 as printed."""
    energy, stored = network
    q, p = jnp.asarray(stored["q0"]), jnp.asarray(stored["p0"])
    force = -jax.jit(jax.grad(energy))(q)
    dq, dp = {
        "right": (p, force),
        "printed 3.9": (p / q, force),  # the position for the mass
        "printed 3.10": (
            force,
            jnp.zeros_like(p),
        ),  # the position on the left, so that nothing moves the momentum
    }[equations]
    rate = -force @ dq + p @ dp  # ∂E/∂q · dq/dτ + ∂K/∂p · dp/dτ
    scale = jnp.linalg.norm(force) * jnp.linalg.norm(p)
    assert (abs(rate) < 1e-12 * scale) == (equations == "right")


# The chain of `hmc`

STEP, STEPS = 0.4, 5


@partial(jax.jit, static_argnames=("samples", "thin"))
def _moves(samples, thin):
    settings = {
        "samples": samples,
        "burn": 0,
        "thin": thin,
        "steps": STEPS,
        "step_size": STEP,
    }
    return infer.hmc(jax.random.key(0), _standard, jnp.zeros(1), **settings)


@pytest.fixture(scope="module")
def moves():
    return _moves(samples=200, thin=1)


@pytest.mark.slow
def test_thinning_keeps_every_third_move(moves):
    np.testing.assert_allclose(
        _moves(samples=4, thin=3)[0], moves[0][2:12:3], rtol=1e-9
    )


def test_moves_are_leapfrog_trajectories_accepted_by_their_energies(moves):
    """E = q²/2: the trajectory is linear in q and p, so each accepted move tells its momentum, and
    that its acceptance.
    """
    chain, info = moves
    half, full = (
        np.array([[1.0, 0.0], [-STEP / 2, 1.0]]),
        np.array([[1.0, STEP], [0.0, 1.0]]),
    )
    leapfrog = np.linalg.matrix_power(half @ full @ half, STEPS)  # acting on (q, p)
    before, after = np.asarray(chain[:-1, 0]), np.asarray(chain[1:, 0])
    momentum = (after - leapfrog[0, 0] * before) / leapfrog[0, 1]
    end = leapfrog[1, 0] * before + leapfrog[1, 1] * momentum
    gain = 0.5 * (before**2 + momentum**2 - after**2 - end**2)
    moved = before != after
    assert moved.sum() > 150
    np.testing.assert_allclose(
        np.asarray(info.accept)[1:][moved],
        np.exp(np.minimum(gain, 0.0))[moved],
        rtol=1e-9,
    )
    # the momenta are standard normal: five standard errors on their variance, as most moves are
    # accepted
    assert abs(momentum[moved].var() - 1.0) < 5 * np.sqrt(2 / moved.sum())


def _standard(z):
    return -0.5 * jnp.sum(z**2)


def _level(z):
    """No force: energy is conserved to the last digit and every move is accepted."""
    return 0.0 * jnp.sum(z)


def _point(z):
    """All mass in one point: nothing is accepted."""
    return jnp.where(jnp.sum(jnp.abs(z)) == 0.0, 0.0, -1e6)


@pytest.mark.parametrize("burn", [40, 200])
def test_the_step_grows_by_two_per_cent_while_all_is_accepted(burn):
    """The average starts at the target, 0.9, so that the first comparison lets the step shrink.

    The settings are those of the HMC tutorial of Theano, which cites Ranzato et al. 2010.
    """
    _, info = jax.jit(
        lambda: infer.hmc(
            jax.random.key(0), _level, jnp.zeros(2), samples=3, burn=burn, steps=2
        )
    )()
    assert (info.accept == 1.0).all()
    np.testing.assert_allclose(
        info.scale, min(0.01 * 0.98 * 1.02 ** (burn - 1), 0.25), rtol=1e-10
    )


def test_the_step_shrinks_to_its_least_while_nothing_is_accepted():
    _, info = jax.jit(
        lambda: infer.hmc(
            jax.random.key(0), _point, jnp.zeros(2), samples=3, burn=200, steps=2
        )
    )()
    assert (info.accept == 0.0).all()
    np.testing.assert_allclose(info.scale, 0.001, rtol=1e-10)


def test_the_step_follows_the_published_rule_in_burn_in_and_stays_after():
    """Compare with Ranzato's rule in plain Python, around single moves with the same draws."""
    burn, samples, stiffness = 60, 20, 250.0
    key, start = jax.random.key(1), jnp.array([0.05])

    def potential(z):
        return 0.5 * stiffness * jnp.sum(z**2)

    run = jax.jit(
        lambda: infer.hmc(
            key,
            lambda z: -potential(z),
            start,
            samples=samples,
            burn=burn,
            steps=5,
            step_size=0.1,
        )
    )
    chain, info = run()
    settings = {
        "adapt_step_size": False,
        "adapt_mass_matrix": False,
        "inverse_mass_matrix": jnp.ones(1),
    }
    kernel = HMC(
        potential_fn=potential, num_steps=5, trajectory_length=None, **settings
    )
    state = kernel.init(key, 0, start, (), {})
    move = jax.jit(lambda state: kernel.sample(state, (), {}))
    step, average, rows, steps = 0.1, 0.9, [], []
    for i in range(burn + samples):
        adapt_state = state.adapt_state._replace(step_size=jnp.asarray(step))
        state = move(state._replace(adapt_state=adapt_state))
        if i < burn:
            step = float(np.clip(step * (1.02 if average > 0.9 else 0.98), 0.001, 0.25))
            average = 0.9 * average + 0.1 * float(state.accept_prob)
        rows.append(np.asarray(state.z))
        steps.append(step)
    assert len(set(np.sign(np.diff(steps[:burn])))) == 2  # it went both ways
    np.testing.assert_allclose(info.scale, step, rtol=1e-9)
    np.testing.assert_allclose(chain, rows[burn:], rtol=1e-6)


# Draws


def _normal(z):
    centered = z - jnp.asarray(MEAN)
    return -0.5 * centered @ jnp.asarray(np.linalg.inv(COV)) @ centered


@pytest.fixture(
    scope="module",
    params=[
        partial(infer.hmc, steps=10, step_size=0.2),
        infer.nuts,
        pytest.param(partial(infer.nuts, dense=True), marks=pytest.mark.slow),
    ],
    ids=["hmc", "nuts", "nuts, dense"],
)
def normal(request):
    return jax.jit(
        lambda key: request.param(key, _normal, jnp.zeros(2), samples=2500, burn=200)
    )(jax.random.key(2))


def _check_mean(draws, expected, std):
    """draws (s,), of a distribution of this standard deviation."""
    size = infer.effective_sample_size(np.asarray(draws, float)[None])
    assert abs(np.mean(draws) - expected) < 5 * std / np.sqrt(size)


def test_margins_of_a_normal_are_right(normal):
    for i in range(2):
        for probability in (0.05, 0.5, 0.95):
            cut = scipy.stats.norm(MEAN[i], np.sqrt(COV[i, i])).ppf(probability)
            _check_mean(
                normal[0][:, i] < cut,
                probability,
                np.sqrt(probability * (1 - probability)),
            )


def test_the_covariance_of_a_normal_is_right(normal):
    products = np.prod(np.asarray(normal[0]) - MEAN, axis=1)
    _check_mean(products, COV[0, 1], np.sqrt(COV[0, 0] * COV[1, 1] + COV[0, 1] ** 2))


def test_info_holds_the_density_at_each_draw(normal):
    chain, info = normal
    expected = scipy.stats.multivariate_normal(MEAN, COV).logpdf(chain) + 0.5 * np.log(
        np.linalg.det(2 * np.pi * COV)
    )
    np.testing.assert_allclose(info.log_density, expected, rtol=1e-9, atol=1e-12)


def test_a_normal_has_no_divergences(normal):
    assert not normal[1].diverging.any()


@pytest.fixture(
    scope="module",
    params=[partial(infer.hmc, step_size=0.2, steps=5), infer.nuts],
    ids=["hmc", "nuts"],
)
def cliff(request):
    """A chain beside a cliff, and how often it asked for the density."""
    calls = []

    def density(z):
        jax.debug.callback(lambda _: calls.append(None), z)
        return jnp.where(z[0] < 1.0, _standard(z), -1e5)

    chain, info = jax.jit(
        lambda key: request.param(key, density, jnp.zeros(2), samples=100, burn=50)
    )(jax.random.key(3))
    jax.effects_barrier()
    return chain, info, len(calls)


@pytest.mark.slow
def test_trajectories_over_a_cliff_are_reported_as_diverging(cliff):
    assert cliff[1].diverging.any()


def test_no_draw_lies_behind_a_cliff(cliff):
    assert (cliff[0][:, 0] < 1.0).all()


def test_evaluations_are_those_made(cliff):
    assert cliff[1].evaluations == cliff[2]
