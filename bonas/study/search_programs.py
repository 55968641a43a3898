"""The compiled programs of a search, one set for each capacity of its state."""

from collections.abc import Callable
from concurrent.futures import Future

import jax
from jaxtyping import PRNGKeyArray

from bonas.search import Search, in_background, make_observation
from bonas.study.compiled_search import CompiledSearch, compile_search


class SearchPrograms:
    """Compile the programs of a search when they are needed, or earlier in a thread."""

    def __init__(self, search: Search, init_key: PRNGKeyArray, name: str | None):
        """Prepare to compile.

        Args:
            search: The search.
            init_key: The key of its initial state.
            name: Name under which programs are stored, see `compile_search`.
        """
        self._search = search
        self._init_key = init_key
        self._name = name
        self._compiled: dict[int, CompiledSearch] = {}  # by capacity
        self._started: dict[int, Future[None]] = {}
        # called before waiting for the compiler
        self.on_wait: Callable[[], None] = lambda: None

    def __call__(self, capacity: int) -> CompiledSearch:
        """Return the programs for a capacity."""
        if capacity in self._started:
            if not self._started[capacity].done():
                self.on_wait()
            self._started.pop(capacity).result()
        elif capacity not in self._compiled:
            self.on_wait()
            self._compiled[capacity] = self._trace(capacity)
        return self._compiled[capacity]

    def prepare(self, capacity: int) -> None:
        """Start to compile the programs for a capacity in a thread, unless that was done before."""
        if capacity not in self._compiled and capacity not in self._started:
            self._started[capacity] = in_background(lambda: self._compile(capacity))

    def _trace(self, capacity: int) -> CompiledSearch:
        return compile_search(self._search, capacity, self._name)

    def _compile(self, capacity: int) -> None:
        """Compile the programs by calling each of them once."""
        compiled = self._trace(capacity)
        state = compiled.init(self._init_key)
        points, state, _ = compiled.ask(self._init_key, state)
        noise = 0.0 if self._search.uses_known_noise else None
        observation = make_observation(points[0], 0.0, 0.0, ok=True, noise=noise)
        jax.block_until_ready(compiled.tell(state, observation))
        self._compiled[capacity] = compiled
