"""Everything works in float32, without configure(): no NaN, and answers as good as the precision
allows.
"""

import subprocess
import sys

import pytest

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
import bonas
from bonas import gp, infer

space = bonas.Space(
    depth=bonas.Int(0, 3), lr=bonas.Float(1e-4, 1.0, log=True), kind=bonas.Choice("a", "b", "c"),
    width=bonas.Int(1, 64, log=True, when={"depth": (">=", 1)}),
)
u = space.sample(jax.random.key(0), 30)
assert u.dtype == jnp.float32, u.dtype
y = jnp.sin(4 * u[:, 1]) + u[:, 0]
twice = jnp.concatenate([u, u[:5]])
data = bonas.dataset(twice, jnp.concatenate([y, y[:5]]), capacity=64)
arc, box = gp.arc(space.active, categories=space.categories), gp.box(space.active)
for kernel in (arc, box, gp.matern12(), gp.se(), gp.matern52(), gp.rq()):
    target = gp.hyperposterior(kernel, data)
    best, info = infer.maximize(jax.random.key(1), target.maximizing, target.start)
    params = jax.tree.map(lambda leaf: leaf[0], target.constrain(best))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(params)), kernel
    posterior = gp.condition(kernel, params["kernel"], data, noise=0.0)
    mean, std = gp.predict(posterior, u)
    assert posterior.lower.dtype == jnp.float32
    assert posterior.jitter > 0, "duplicates without noise need jitter"
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    # a kernel with rounding of 1e-7 and the jitter that this needs: a few thousandths of values of order 1
    np.testing.assert_allclose(mean, y, atol=0.05)
for method in (infer.slice_sample, infer.nuts, infer.hmc, infer.metropolis):
    samples, info = jax.jit(lambda key: method(key, target.sampling, target.start, samples=10, burn=10))(jax.random.key(2))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(samples)), method
    assert np.isfinite(info.log_density).all(), method
posterior = gp.condition_all(gp.rq(), target.constrain(samples), data)
assert np.isfinite(jax.vmap(gp.predict, (0, None))(posterior, u).mean).all()
assert not jax.config.jax_enable_x64
print("fine")
"""  # noqa: E501


@pytest.mark.slow
def test_float32_without_configure():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "fine\n"
